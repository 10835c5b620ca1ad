//! Names of the files in the data directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Error, disk::with_context};

pub(super) const LOCK: &str = "lock";

pub(super) fn log_path(dir: &Path, first: i64) -> PathBuf {
    dir.join(format!("log.{first:016x}"))
}

pub(super) fn snapshot_path(dir: &Path, zxid: i64) -> PathBuf {
    dir.join(format!("snapshot.{zxid:016x}"))
}

/// `path` with `.suffix` appended.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Like [`with_suffix`], with a number appended if the name exists: a file saved for operators must not replace an earlier one.
pub(super) fn unused_name(path: &Path, suffix: &str) -> PathBuf {
    let plain = with_suffix(path, suffix);
    let mut free = plain.clone();
    let mut number = 2;
    while free.exists() {
        free = with_suffix(&plain, &number.to_string());
        number += 1;
    }
    free
}

/// Whether the store writes files of this name, whatever their suffix.
pub(super) fn is_store_name(name: &str) -> bool {
    let mut parts = name.splitn(3, '.');
    match (parts.next(), parts.next()) {
        (Some(kind), Some(zxid)) => Name::parse(&format!("{kind}.{zxid}")).is_some(),
        _ => name == LOCK,
    }
}

/// The store's files in a directory. Files with other names do not belong to the store and are ignored.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// First zxid and path of each log, ascending.
    pub(super) logs: Vec<(i64, PathBuf)>,
    /// Zxid and path of each snapshot, ascending.
    pub(super) snapshots: Vec<(i64, PathBuf)>,
    /// Files whose writer died before it renamed them to their final name.
    pub(super) unfinished: Vec<PathBuf>,
}

impl Listing {
    pub(super) fn of(dir: &Path) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        for entry in with_context("list", dir, || fs::read_dir(dir))? {
            let path = with_context("list", dir, || entry)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let (name, unfinished) = match name.strip_suffix(".tmp") {
                Some(name) => (name, true),
                None => (name, false),
            };
            match Name::parse(name) {
                Some(_) if unfinished => listing.unfinished.push(path),
                Some(Name::Log(first)) => listing.logs.push((first, path)),
                Some(Name::Snapshot(zxid)) => listing.snapshots.push((zxid, path)),
                None => {}
            }
        }
        listing.logs.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Log(i64),
    Snapshot(i64),
}

impl Name {
    fn parse(name: &str) -> Option<Name> {
        let (kind, digits) = name.split_once('.')?;
        // Exactly the format that the store writes, so that two names never have the same zxid.
        let is_exact = digits.len() == 16
            && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let zxid = i64::from_str_radix(digits, 16).ok().filter(|_| is_exact)?;
        match kind {
            "log" => Some(Name::Log(zxid)),
            "snapshot" => Some(Name::Snapshot(zxid)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_round_trips() {
        let dir = Path::new("dir");
        for zxid in [0, 1, 0x66_0000_0001, i64::MAX] {
            let log = log_path(dir, zxid);
            let snapshot = snapshot_path(dir, zxid);

            assert_eq!(parse(&log), Some(Name::Log(zxid)));
            assert_eq!(parse(&snapshot), Some(Name::Snapshot(zxid)));
        }
    }

    #[test]
    fn foreign_file_names_are_ignored() {
        for name in [
            "log",
            "log.",
            "log.1",
            "log.00000000000000ff.torn",
            "log.00000000000000FF",
            "log.+0000000000000ff",
            "log.ffffffffffffffff",
            "log.000000000000000g",
            "backup.00000000000000ff",
            "snapshot.00000000000000ff.bad",
        ] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
    }

    #[test]
    fn store_names_include_the_lock_and_every_suffix() {
        for name in [
            "lock",
            "log.00000000000000ff",
            "log.00000000000000ff.torn.2",
            "snapshot.00000000000000ff.tmp",
            "snapshot.00000000000000ff.bad",
        ] {
            assert!(is_store_name(name), "{name}");
        }
        for name in ["", "log", "locks", "lock.00000000000000ff", "history.db", "log.ff.torn"] {
            assert!(!is_store_name(name), "{name}");
        }
    }

    #[test]
    fn unused_name_never_returns_an_existing_name() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_path(dir.path(), 7);

        for expected in ["torn", "torn.2", "torn.3"] {
            let kept = unused_name(&log, "torn");
            fs::write(&kept, "").unwrap();

            assert_eq!(kept, with_suffix(&log, expected));
        }
    }

    fn parse(path: &Path) -> Option<Name> {
        Name::parse(path.file_name()?.to_str()?)
    }
}
