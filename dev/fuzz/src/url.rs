//! Registry, history and JDBC URLs. A URL that was read prints as one that reads as the same settings, and no error shows the password.

use std::net::SocketAddr;

use elasticjob::{
    history::{HistoryUrl, from_jdbc},
    problem::Problem,
    registry::RegistryUrl,
};
use libfuzzer_sys::Corpus;

use crate::limits::Limits;

const LIMITS: Limits = Limits { fixed: 256 << 10, per_byte: 256 };
/// No URL contains it by accident.
const PASSWORD: &str = "hunter2hunter2";

pub fn check(bytes: &[u8]) -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    LIMITS.check(text.len(), || {
        registry(text);
        history(text);
        if let Ok(url) = from_jdbc(text, Some("jane"), Some(PASSWORD)) {
            history(&url);
        }
        let _ = text.parse::<SocketAddr>();
    });
    Corpus::Keep
}

fn registry(text: &str) {
    let url = match text.parse::<RegistryUrl>() {
        Ok(url) => url,
        Err(error) => return hides_password(text, &Problem::of(&error).to_string()),
    };
    hides_password(text, &url.to_string());
    if let RegistryUrl::ZooKeeper(settings) = &url
        && settings.digest.is_none()
    {
        assert_eq!(url.to_string().parse::<RegistryUrl>().as_ref(), Ok(&url), "{url}");
    }
}

fn history(text: &str) {
    match text.parse::<HistoryUrl>() {
        Ok(url) => hides_password(text, &url.to_string()),
        Err(error) => hides_password(text, &Problem::of(&error).to_string()),
    }
}

/// Where a URL has a user and [`PASSWORD`], the password is nowhere in what is shown.
fn hides_password(text: &str, shown: &str) {
    // The path of an SQLite file is shown, and has no password.
    let has_password = !text.starts_with("sqlite:")
        && text
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once(&format!(":{PASSWORD}@")))
            .is_some_and(|(user, rest)| {
                !user.contains(['@', '/', '?', '#']) && !rest.contains(PASSWORD)
            });
    assert!(!has_password || !shown.contains(PASSWORD), "{shown}");
}
