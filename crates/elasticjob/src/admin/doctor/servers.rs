//! Checks the registry's servers: whether they answer, and whether they are new enough.

use std::time::Duration;

use crate::registry::{Endpoint, ZooKeeperSettings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Check, Finding};

/// How long to wait for a server's status.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Oldest supported version: 3.6 introduced recursive watches, which are required.
const MIN_VERSION: (u32, u32) = (3, 6);

/// Checks every server of the URL, not only the one that the session is connected to.
pub(super) async fn check(settings: &ZooKeeperSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in &settings.servers {
        let name = server.to_string();
        findings.push(if settings.tls.is_some() {
            let message = "version unknown: it is not queried over TLS";
            Finding::fact(Check::Server, Some(&name), message)
        } else {
            let status = timeout(TIMEOUT, query_status(server)).await;
            evaluate(&name, status.ok().and_then(Result::ok).as_deref())
        });
    }
    findings
}

/// Sends the four-letter command `srvr`, whose response contains the server's version.
async fn query_status(server: &Endpoint) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
    stream.write_all(b"srvr").await?;
    let mut status = Vec::new();
    stream.read_to_end(&mut status).await?;
    Ok(String::from_utf8_lossy(&status).into_owned())
}

fn evaluate(server: &str, status: Option<&str>) -> Finding {
    let about = Some(server);
    let Some(status) = status else {
        let hint = "is it down? remove it from the registry URL if it is not coming back";
        return Finding::problem(Check::Server, about, "it does not answer", hint);
    };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if status.contains("not currently serving requests") {
        let message = "it is up but does not serve requests: it has no quorum";
        return Finding::problem(
            Check::Server,
            about,
            message,
            "start more servers of the ensemble",
        );
    }
    let version = field("Zookeeper version:").unwrap_or_default();
    let version = version.split([',', ' ']).next().unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        let message = "version unknown; set 4lw.commands.whitelist=srvr to allow the query";
        return Finding::fact(Check::Server, about, message);
    };
    let mode = field("Mode:").unwrap_or("mode unknown");
    let message = format!("ZooKeeper {version}, {mode}");
    if (major, minor) < MIN_VERSION {
        let hint = "upgrade it to 3.6 or newer: older servers cannot watch a whole job";
        return Finding::problem(Check::Server, about, message, hint);
    }
    Finding::fact(Check::Server, about, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_evaluated_by_its_status() {
        let new = "Zookeeper version: 3.8.4-9316c2a, built on 2024\nLatency: 0\nMode: follower\n";
        let old = "Zookeeper version: 3.4.14-4c25d48, built on 2019\nMode: standalone\n";
        let not_allowed = "srvr is not executed because it is not in the whitelist.\n";
        let no_quorum = "This ZooKeeper instance is not currently serving requests\n";
        for (status, is_problem, message) in [
            (Some(new), false, "ZooKeeper 3.8.4-9316c2a, follower"),
            (Some(old), true, "ZooKeeper 3.4.14-4c25d48, standalone"),
            (
                Some(not_allowed),
                false,
                "version unknown; set 4lw.commands.whitelist=srvr to allow the query",
            ),
            (Some(no_quorum), true, "it is up but does not serve requests: it has no quorum"),
            (
                Some(""),
                false,
                "version unknown; set 4lw.commands.whitelist=srvr to allow the query",
            ),
            (None, true, "it does not answer"),
        ] {
            let finding = evaluate("zk:2181", status);

            assert_eq!((finding.is_problem, &*finding.message), (is_problem, message));
            assert_eq!(finding.hint.is_some(), is_problem);
        }
    }
}
