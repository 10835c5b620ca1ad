//! The words of `registries.json` and `histories.json`, frozen: `tests/golden/README.md` says why.

use std::{fs, path::Path, sync::Arc};

use elasticjob::runtime::SystemClock;
use tempfile::TempDir;
use testbed::golden;

use super::{catalog::Adding, connections::Registries};
use crate::history::stores::Books;

const REGISTRY: &str = "zookeeper://ann:secret@zk1:2181/shop";
const HISTORY: &str = "postgres://ann:secret@db1:5432/jobs";

fn adding() -> Adding {
    Adding { is_on: true, hosts: vec!["zk1".to_owned(), "db1".to_owned()] }
}

fn registries(path: &Path) -> Registries {
    Registries::open(&[], adding(), Some(path.to_owned()), Arc::new(SystemClock)).unwrap()
}

fn histories(path: &Path) -> Books {
    Books::open(&[], adding(), Some(path.to_owned()), Arc::new(SystemClock)).unwrap()
}

#[test]
fn what_was_added_is_stored_in_the_same_words() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("registries.json");
    registries(&path).add("shop", REGISTRY).unwrap();
    let stored = golden!("registries.json", fs::read_to_string(&path).unwrap() + "\n");
    fs::write(&path, stored).unwrap();
    assert_eq!(registries(&path).get("shop").unwrap().text, REGISTRY);

    let path = folder.path().join("histories.json");
    histories(&path).add("shop", HISTORY).unwrap();
    let stored = golden!("histories.json", fs::read_to_string(&path).unwrap() + "\n");
    fs::write(&path, stored).unwrap();
    assert_eq!(histories(&path).get("shop").unwrap().text, HISTORY);
}
