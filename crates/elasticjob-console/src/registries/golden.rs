//! The words of `registries.json` and `histories.json`, frozen: `tests/golden/README.md` says why.

use std::{fs, path::Path, sync::Arc};

use elasticjob::runtime::SystemClock;
use tempfile::TempDir;
use testbed::golden;

use super::{catalog::AdditionPolicy, connections::Registries};
use crate::history::stores::HistoryConnections;

const REGISTRY: &str = "zookeeper://ann:secret@zk1:2181/shop";
const HISTORY: &str = "postgres://ann:secret@db1:5432/jobs";

fn additions() -> AdditionPolicy {
    AdditionPolicy { is_enabled: true, allowed_hosts: vec!["zk1".to_owned(), "db1".to_owned()] }
}

fn registries(path: &Path) -> Registries {
    Registries::open(&[], additions(), Some(path.to_owned()), Arc::new(SystemClock)).unwrap()
}

fn histories(path: &Path) -> HistoryConnections {
    HistoryConnections::open(&[], additions(), Some(path.to_owned()), Arc::new(SystemClock))
        .unwrap()
}

#[test]
fn added_connections_keep_their_stored_words() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("registries.json");
    registries(&path).add("shop", REGISTRY).unwrap();
    let stored = golden!("registries.json", fs::read_to_string(&path).unwrap() + "\n");
    fs::write(&path, stored).unwrap();
    assert_eq!(registries(&path).get("shop").unwrap().raw_url, REGISTRY);

    let path = folder.path().join("histories.json");
    histories(&path).add("shop", HISTORY).unwrap();
    let stored = golden!("histories.json", fs::read_to_string(&path).unwrap() + "\n");
    fs::write(&path, stored).unwrap();
    assert_eq!(histories(&path).get("shop").unwrap().raw_url, HISTORY);
}
