//! ZooKeeper's unmodified Java client prints the same with tinykeeper as with ZooKeeper.

use testbed::{ZooKeeper, zookeeper_shell};
use tinykeeper::server::{Config, Server};

const COMMANDS: &[&str] = &[
    "create /greeting hello",
    "addWatch /greeting",
    "set /greeting goodbye",
    "get /greeting",
    "create -e -s /greeting/visitor-",
    "ls /greeting",
    "create /greeting/visitor-0000000000/child x",
    "set -v 7 /greeting late",
    "delete /greeting",
    "create -c /container",
    "create -t 60000 /brief",
    "getEphemerals",
    "getAllChildrenNumber /greeting",
    "getAcl /greeting",
    "addauth digest jane:secret",
    "setAcl /greeting auth::crdwa",
    "getAcl /greeting",
    "whoami",
    "stat /missing",
    "sync /",
    "deleteall /greeting",
    "ls /",
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn java_client_prints_the_same_as_with_zookeeper() {
    let zookeeper = ZooKeeper::start();
    let tinykeeper = Server::start(Config::in_memory()).await.unwrap();

    let theirs =
        tokio::task::spawn_blocking(move || zookeeper_shell(zookeeper.address(), COMMANDS));
    let address = tinykeeper.address();
    let ours = tokio::task::spawn_blocking(move || zookeeper_shell(address, COMMANDS));
    let (theirs, ours) =
        (comparable_lines(&theirs.await.unwrap()), comparable_lines(&ours.await.unwrap()));

    assert!(
        theirs.iter().any(|line| line.contains("NodeDataChanged path:/greeting")),
        "{theirs:#?}"
    );
    assert_eq!(ours, theirs);
}

/// The output of the shell, sorted, without its log and without lines that must differ. It prints notifications and errors from
/// another thread than results, so the order of lines is not defined.
fn comparable_lines(output: &str) -> Vec<String> {
    let is_log = |line: &str| {
        [" INFO ", " WARN ", " ERROR ", "EndOfStreamException"]
            .iter()
            .any(|mark| line.contains(mark))
            || line.starts_with('\t')
            // It may exit before it prints that it was closed, or the heading of that line.
            || line.contains("state:Closed")
            || *line == *"WATCHER::"
    };
    let mut lines: Vec<String> = output
        .lines()
        .filter(|line| !is_log(line) && !line.starts_with("Connecting to ") && !line.is_empty())
        .map(String::from)
        .collect();
    lines.sort();
    lines
}
