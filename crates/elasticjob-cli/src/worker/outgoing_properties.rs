//! Which properties of a job belong to its request, and which to its alert.
//!
//! Everything of a request or an alert is trusted together, or not at all: a host of the file with a header of the registry is the registry's request.
//! Timeouts are left out: they change neither what is sent nor where.

use elasticjob::{
    execution::Outgoing,
    job::{Job, keys},
};

/// Beginnings of the properties of a request.
const REQUEST: [&str; 2] = ["http.", keys::HTTP_HEADER];

/// Beginnings of the properties of an alert.
const ALERT: [&str; 5] =
    ["email.", "wechat.", "dingtalk.", "elasticjob.webhook.", "elasticjob.alert"];

/// Whole names: the name of a header may end as a timeout does.
const TIMEOUTS: [&str; 8] = [
    "http.connect.timeout.milliseconds",
    "http.read.timeout.milliseconds",
    "wechat.connectTimeoutMilliseconds",
    "wechat.readTimeoutMilliseconds",
    "dingtalk.connectTimeoutMilliseconds",
    "dingtalk.readTimeoutMilliseconds",
    keys::WEBHOOK_CONNECT_TIMEOUT,
    keys::WEBHOOK_READ_TIMEOUT,
];

/// What a property belongs to. Only a property that a secret can be in is asked for, and that is one or the other.
pub(super) fn outgoing_of(key: &str) -> Outgoing {
    if belongs(key, Outgoing::Request) { Outgoing::Request } else { Outgoing::Alert }
}

/// A property in which the requests, or the alerts, of two jobs differ.
pub(super) fn changed_key<'a>(
    outgoing: Outgoing,
    file: &'a Job,
    stored: &'a Job,
) -> Option<&'a str> {
    let keys = file.props.iter().chain(stored.props.iter()).map(|(key, _)| key);
    let mut keys = keys.filter(|key| belongs(key, outgoing) && !TIMEOUTS.contains(key));
    keys.find(|key| file.props.get(key) != stored.props.get(key))
}

fn belongs(key: &str, outgoing: Outgoing) -> bool {
    let beginnings = match outgoing {
        Outgoing::Request => &REQUEST[..],
        Outgoing::Alert => &ALERT[..],
    };
    beginnings.iter().any(|beginning| key.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_but_timeouts_belongs_to_what_is_sent() {
        let file = Job::named("j").unwrap();
        for (key, outgoing, is_change) in [
            ("http.uri", Outgoing::Request, true),
            ("http.of.a.later.version", Outgoing::Request, true),
            ("elasticjob.http.header.X-Milliseconds", Outgoing::Request, true),
            ("http.read.timeout.milliseconds", Outgoing::Request, false),
            ("email.to", Outgoing::Alert, true),
            ("elasticjob.webhook.url", Outgoing::Alert, true),
            ("dingtalk.readTimeoutMilliseconds", Outgoing::Alert, false),
            ("script.command.line", Outgoing::Alert, false),
        ] {
            let value = if key.ends_with("illiseconds") { "9" } else { "http://x" };
            let stored = file.clone().prop(key, value).unwrap();

            let changed = changed_key(outgoing, &file, &stored);

            assert_eq!(changed, is_change.then_some(key));
            assert_eq!(outgoing_of(key) == Outgoing::Request, outgoing == Outgoing::Request);
        }
    }
}
