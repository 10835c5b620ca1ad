//! The words of events that wait in files, frozen: `tests/golden/README.md` says why. A newer version reads what an older one left.

use std::{collections::BTreeSet, fs, path::Path};

use testbed::golden;

use super::{spill::Spill, spill_line};
use crate::history::{Event, golden::events};

#[test]
fn spill_line_format_is_frozen() {
    let events = events();

    let written: String = events.iter().map(spill_line::encode).collect();
    let stored = golden!("history-spill.txt", written);

    let read: Vec<Option<Event>> =
        stored.lines().map(|line| spill_line::decode(line.as_bytes())).collect();
    assert_eq!(read, events.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn events_wait_under_the_same_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut spill = Spill::open(folder.path(), 1024 * 1024).unwrap();
    spill.append(&events()).unwrap();

    let mut files = BTreeSet::new();
    list(folder.path(), folder.path(), &mut files);

    golden!("history-spill-files.txt", files.into_iter().collect::<String>());
}

fn list(root: &Path, folder: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            list(root, &entry.path(), files);
        } else {
            let path = entry.path();
            files.insert(format!("{}\n", path.strip_prefix(root).unwrap().display()));
        }
    }
}
