//! The group `regCenter`: a registry as the ancestor describes it becomes a registry URL.

use elasticjob::registry::RegistryUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{keys::known, section::Reader, tree::Node};

pub(super) const KEYS: [&str; 8] = [
    "serverLists",
    "namespace",
    "digest",
    "baseSleepTimeMilliseconds",
    "maxSleepTimeMilliseconds",
    "maxRetries",
    "sessionTimeoutMilliseconds",
    "connectionTimeoutMilliseconds",
];

const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const SAFE_IN_PATH: &AsciiSet = &SAFE.remove(b'/');

/// Reads where the instances meet.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) {
    let before = reader.problems.len();
    let (mut servers, mut namespace, mut user, mut query) = (None, None, String::new(), Vec::new());
    let entries = reader.group("regCenter", node);
    for (key, value) in entries {
        // Older examples have it in the singular.
        let name = if known(key, &["serverList"]).is_some() { "serverLists" } else { key };
        let Some(name) = known(name, &KEYS) else {
            reader.unknown(value.line, "regCenter.", key, &KEYS);
            continue;
        };
        let Some(text) = reader.text(name, value) else { continue };
        let text = text.trim();
        match name {
            "serverLists" => servers = Some(text.replace(' ', "")),
            "namespace" => namespace = Some(text.trim_matches('/').to_owned()),
            "digest" => {
                let encoded = |part| utf8_percent_encode(part, SAFE).to_string();
                match text.split_once(':') {
                    Some((name, password)) => {
                        user = format!("{}:{}@", encoded(name), encoded(password));
                    }
                    // The value is a secret, or half of one.
                    None => reader.wrong(value.line, "regCenter.digest is not user:password"),
                }
            }
            // For the ancestor zero is the default.
            _ if text == "0" && name != "maxRetries" => {}
            _ if text.parse::<u32>().is_err() => {
                reader
                    .wrong(value.line, format!("regCenter.{name} {text:?} is not a whole number"));
            }
            "maxRetries" => query.push(format!("maxRetries={text}")),
            name => query.push(format!("{}={text}ms", name.trim_end_matches("Milliseconds"))),
        }
    }
    let (Some(servers), Some(namespace)) = (servers, namespace) else {
        if reader.problems.len() == before {
            reader.wrong(node.line, "regCenter needs both serverLists and namespace");
        }
        return;
    };
    // A path after the servers is a prefix of the namespace.
    let (servers, prefix) = servers.split_once('/').unwrap_or((&servers, ""));
    let namespace = format!("{prefix}/{namespace}");
    let path = utf8_percent_encode(namespace.trim_matches('/'), SAFE_IN_PATH);
    let mark = if query.is_empty() { "" } else { "?" };
    let url = format!("zookeeper://{user}{servers}/{path}{mark}{}", query.join("&"));
    if let Err(error) = url.parse::<RegistryUrl>() {
        return reader.wrong(node.line, format!("regCenter: {}", error.problem));
    }
    let place = reader.place(node.line);
    match &reader.jobs.registry {
        Some((first, other)) if *other != url => {
            let problem = format!("another registry than at {first}; hint: a node has one");
            reader.wrong(node.line, problem);
        }
        _ => reader.jobs.registry = Some((place, url)),
    }
}
