//! Which secrets a job may use, and where it may send them.
//!
//! Everyone who can write to the registry can write `secret:NAME` into a job. A secret is therefore used only
//!
//! * by a job of the local files, as long as the stored request or alert is the file's in every property: with another host, another header or
//!   another mail server it is the registry's; or
//! * by any job, if the operator allowed this secret for this target: `--secrets-for NAME=ORIGIN`.

use std::{
    io,
    path::{Path, PathBuf},
};

use elasticjob::{
    execution::{Outgoing, SecretUse, Secrets},
    job::Job,
};

use super::{
    outgoing_properties::{changed_key, outgoing_of},
    permissions::Permissions,
};
use crate::error::Error;

/// Credentials of the worker itself, which systemd has in the same folder: the URLs of registry and history.
const OWN_CREDENTIALS: &str = "elasticjob.";

/// A secret that jobs of the registry may send to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretGrant {
    name: String,
    /// As `SecretUse` has it: without a default port, in lower case.
    origin: String,
}

impl SecretGrant {
    /// Parses `NAME=ORIGIN`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected =
            "NAME=ORIGIN, for example shop=https://shop.example or mail=smtps://mail.example:465";
        let (name, origin) = text.split_once('=').ok_or(expected)?;
        let origin = origin.trim_end_matches('/').to_ascii_lowercase();
        let (scheme, host) = origin.split_once("://").ok_or(expected)?;
        let default_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            "smtp" | "smtps" if host.contains(':') => "",
            _ => return Err(expected.to_owned()),
        };
        let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', '*', ' ']);
        if name.is_empty() || !is_host {
            return Err(expected.to_owned());
        }
        let host = match default_port {
            "" => host,
            port => host.strip_suffix(port).unwrap_or(host),
        };
        Ok(Self { name: name.to_owned(), origin: format!("{scheme}://{host}") })
    }
}

/// The secrets of a worker: those in this folder, else in the one of systemd, if there is one.
pub(crate) fn secrets(
    folder: Option<&Path>,
    systemd: Option<PathBuf>,
    grants: Vec<SecretGrant>,
    permissions: &Permissions,
) -> Result<Secrets, Error> {
    let permissions = permissions.clone();
    let may_use = move |job: &Job, secret: &SecretUse<'_>| {
        if secret.name.starts_with(OWN_CREDENTIALS) {
            return false;
        }
        let is_of_the_file =
            permissions.file_job(&job.name).is_some_and(|file| is_same(&file, job, secret.key));
        is_of_the_file || grants.iter().any(|grant| grant.covers(secret))
    };
    match (folder, systemd) {
        (Some(folder), _) => Secrets::new(folder, may_use).map_err(|error: io::Error| {
            Error::bad_input(format!("--secrets-dir {}: {error}", folder.display()))
        }),
        // The variable may be left over from another service.
        (None, Some(folder)) => Ok(Secrets::new(folder, may_use).unwrap_or_default()),
        (None, None) => Ok(Secrets::default()),
    }
}

impl SecretGrant {
    fn covers(&self, secret: &SecretUse<'_>) -> bool {
        self.name == secret.name && secret.origin.is_none_or(|origin| origin == self.origin)
    }
}

/// Whether two jobs have the same request, or the same alert, whichever this property belongs to.
fn is_same(file: &Job, stored: &Job, key: &str) -> bool {
    let outgoing = outgoing_of(key);
    (outgoing == Outgoing::Request || file.error_handler_type == stored.error_handler_type)
        && changed_key(outgoing, file, stored).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(props: &[(&str, &str)]) -> Job {
        let job = Job::named("j").unwrap();
        props.iter().fold(job, |job, (key, value)| job.prop(*key, *value).unwrap())
    }

    #[test]
    fn secret_of_a_file_job_is_bound_to_the_whole_request_or_alert() {
        let uri = ("http.uri", "https://shop/?key=secret:shop");
        let mail = [("email.host", "mail"), ("email.password", "secret:mail")];
        let file = job(&[&[uri][..], &mail].concat());

        assert!(is_same(&file, &file, "http.uri") && is_same(&file, &file, "email.password"));
        let other_cron = file.clone().cron("* * * * * ?").unwrap();
        assert!(is_same(&file, &other_cron, "http.uri"));
        let slow = file.clone().prop("http.read.timeout.milliseconds", "9000").unwrap();
        assert!(is_same(&file, &slow, "http.uri"));
        for (key, value) in [
            ("http.uri", "https://attacker/?key=secret:shop"),
            ("http.method", "TRACE"),
            ("elasticjob.http.header.Host-Of", "attacker"),
            ("elasticjob.http.header.X-Milliseconds", "secret:other"),
        ] {
            let stored = file.clone().prop(key, value).unwrap();
            assert!(!is_same(&file, &stored, "http.uri"), "{key}");
            assert!(is_same(&file, &stored, "email.password"), "{key}");
        }
        for (key, value) in
            [("email.host", "attacker"), ("email.ssl.trust", "*"), ("email.useSsl", "false")]
        {
            let stored = file.clone().prop(key, value).unwrap();
            assert!(!is_same(&file, &stored, "email.password"), "{key}");
        }
    }

    #[test]
    fn grant_is_for_one_secret_and_one_origin() {
        for (text, origin) in [
            ("shop=https://Shop.example:443/", "https://shop.example"),
            ("shop=https://shop.example:8443", "https://shop.example:8443"),
            ("shop=http://127.0.0.1:80", "http://127.0.0.1"),
            ("shop=smtps://mail:465", "smtps://mail:465"),
        ] {
            let grant = SecretGrant::parse(text).unwrap();
            assert_eq!((grant.name.as_str(), grant.origin.as_str()), ("shop", origin));
        }
        for text in [
            "shop",
            "=https://shop",
            "shop=",
            "shop=shop.example",
            "shop=https://",
            "shop=https://u@shop",
            "shop=https://shop/path",
            "shop=https://*",
            "shop=smtps://mail",
            "shop=ftp://shop",
        ] {
            assert!(SecretGrant::parse(text).is_err(), "{text}");
        }
    }
}
