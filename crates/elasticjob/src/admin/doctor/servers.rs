//! The registry's servers: do they answer, and are they new enough?

use std::time::Duration;

use crate::registry::{Endpoint, ZooKeeperSettings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Check, Finding};

/// How long a server may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(3);
/// What came with 3.6 and is needed here: one watch on everything below a node.
const OLDEST: (u32, u32) = (3, 6);

/// Asks every server, not only the one that is connected to.
pub(super) async fn look(settings: &ZooKeeperSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in &settings.servers {
        let name = server.to_string();
        findings.push(if settings.tls.is_some() {
            let says = "it speaks TLS, which the question for its version does not";
            Finding::fact(Check::Server, Some(&name), says)
        } else {
            let answer = timeout(PATIENCE, ask(server)).await;
            judge(&name, answer.ok().and_then(Result::ok).as_deref())
        });
    }
    findings
}

/// The four letters by which a server tells its version.
async fn ask(server: &Endpoint) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
    stream.write_all(b"srvr").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn judge(server: &str, answer: Option<&str>) -> Finding {
    let about = Some(server);
    let Some(answer) = answer else {
        let hint = "is it down? take it out of the registry URL if it is not coming back";
        return Finding::problem(Check::Server, about, "it does not answer", hint);
    };
    let line = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if answer.contains("not currently serving requests") {
        let says = "it is up and serves nobody: it has no quorum";
        return Finding::problem(Check::Server, about, says, "start more servers of the ensemble");
    }
    let version = line("Zookeeper version:").unwrap_or_default();
    let version = version.split([',', ' ']).next().unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        let says = "it does not tell its version; 4lw.commands.whitelist=srvr lets it";
        return Finding::fact(Check::Server, about, says);
    };
    let mode = line("Mode:").unwrap_or("mode unknown");
    let says = format!("ZooKeeper {version}, {mode}");
    if (major, minor) < OLDEST {
        let hint = "upgrade it to 3.6 or newer: older ones cannot watch a whole job";
        return Finding::problem(Check::Server, about, says, hint);
    }
    Finding::fact(Check::Server, about, says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_judged_by_what_it_says() {
        let new = "Zookeeper version: 3.8.4-9316c2a, built on 2024\nLatency: 0\nMode: follower\n";
        let old = "Zookeeper version: 3.4.14-4c25d48, built on 2019\nMode: standalone\n";
        let shut = "srvr is not executed because it is not in the whitelist.\n";
        let lonely = "This ZooKeeper instance is not currently serving requests\n";
        for (answer, is_problem, says) in [
            (Some(new), false, "ZooKeeper 3.8.4-9316c2a, follower"),
            (Some(old), true, "ZooKeeper 3.4.14-4c25d48, standalone"),
            (
                Some(shut),
                false,
                "it does not tell its version; 4lw.commands.whitelist=srvr lets it",
            ),
            (Some(lonely), true, "it is up and serves nobody: it has no quorum"),
            (Some(""), false, "it does not tell its version; 4lw.commands.whitelist=srvr lets it"),
            (None, true, "it does not answer"),
        ] {
            let finding = judge("zk:2181", answer);

            assert_eq!((finding.is_problem, &*finding.message), (is_problem, says));
            assert_eq!(finding.hint.is_some(), is_problem);
        }
    }
}
