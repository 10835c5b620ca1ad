//! The group `regCenter`: converts Java ElasticJob's registry settings to a registry URL.

use elasticjob::registry::RegistryUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{keys::find_name, section::Reader, tree::Node};
use elasticjob::problem::Problem;

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

/// Reads the registry URL.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) {
    let before = reader.problems.len();
    let (mut servers, mut namespace, mut user, mut query) = (None, None, String::new(), Vec::new());
    let entries = reader.group("regCenter", node);
    for (key, value) in entries {
        // Older examples use the singular.
        let name = if find_name(key, &["serverList"]).is_some() { "serverLists" } else { key };
        let Some(name) = find_name(name, &KEYS) else {
            reader.report_unknown(value.line, "regCenter.", key, &KEYS);
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
                    // Not quoted: the value is a secret, or part of one.
                    None => reader.report(value.line, "regCenter.digest is not user:password"),
                }
            }
            // Java treats zero as "use the default".
            _ if text == "0" && name != "maxRetries" => {}
            _ if text.parse::<u32>().is_err() => {
                reader
                    .report(value.line, format!("regCenter.{name} {text:?} is not a whole number"));
            }
            "maxRetries" => query.push(format!("maxRetries={text}")),
            name => query.push(format!("{}={text}ms", name.trim_end_matches("Milliseconds"))),
        }
    }
    let (Some(servers), Some(namespace)) = (servers, namespace) else {
        if reader.problems.len() == before {
            reader.report(node.line, "regCenter needs both serverLists and namespace");
        }
        return;
    };
    // A path after the servers is a prefix of the namespace.
    let (servers, prefix) = servers.split_once('/').unwrap_or((&servers, ""));
    let namespace = format!("{prefix}/{namespace}");
    let path = utf8_percent_encode(namespace.trim_matches('/'), SAFE_IN_PATH);
    let separator = if query.is_empty() { "" } else { "?" };
    let url = format!("zookeeper://{user}{servers}/{path}{separator}{}", query.join("&"));
    if let Err(error) = url.parse::<RegistryUrl>() {
        return reader.report(node.line, format!("regCenter: {}", error.problem));
    }
    let location = reader.location(node.line);
    match &reader.jobs.registry {
        Some((first, other)) if *other != url => {
            let problem = Problem::new(format!("a different registry is set at {first}"));
            reader.report(node.line, problem.with_hint("a node has one registry"));
        }
        _ => reader.jobs.registry = Some((location, url)),
    }
}
