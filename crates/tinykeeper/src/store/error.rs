//! Errors of the store, by what the operator or caller does about them.

use std::{io, path::PathBuf};

/// Why the store cannot be opened, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process uses the directory.
    #[error(
        "{} is in use by {}",
        dir.display(), holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        dir: PathBuf,
        /// The process that holds the lock, if the lock file contains its id.
        holder: Option<u32>,
    },

    /// The operating system returned an error: disk full, no permission, hardware failure.
    #[error("cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    /// A log has bytes that no crash can leave: acknowledged records are damaged.
    #[error(
        "{path} is damaged at byte {offset}: {problem}",
        path = path.display()
    )]
    Corrupt {
        path: PathBuf,
        /// Offset of the first damaged batch.
        offset: u64,
        problem: &'static str,
    },

    /// A file has the name of a log or snapshot, but not its header.
    #[error(
        "{} has no valid header: {problem}", path.display()
    )]
    BadHeader { path: PathBuf, problem: &'static str },

    /// A later version of the program wrote the file.
    #[error(
        "{} has format version {found}, and this program reads up to {known}", path.display()
    )]
    NewerVersion { path: PathBuf, found: u32, known: u32 },

    /// Records between two files, or between the snapshot and the logs, are missing.
    #[error(
        "{} continues after zxid {follows:#x}, but the data before it ends at {reached:#x}", path.display()
    )]
    Gap {
        /// The log after the gap.
        path: PathBuf,
        /// The last zxid before the log, according to its header.
        follows: i64,
        /// The last zxid found before it; 0 if there is no readable snapshot and no log.
        reached: i64,
    },

    /// There are snapshots, but none is readable, and there is no log to replay instead.
    #[error(
        "{} cannot be used: {problem}, and there is no log to replay instead", path.display()
    )]
    UnreadableSnapshots {
        /// The newest snapshot.
        path: PathBuf,
        problem: &'static str,
    },

    /// The caller passed a zxid that is not greater than the newest one.
    #[error("zxid {zxid:#x} does not come after {newest:#x}")]
    OutOfOrder { zxid: i64, newest: i64 },

    /// The caller added more records to one batch than a frame can hold.
    #[error("a batch of records exceeds {limit} bytes")]
    BatchTooLarge { limit: usize },

    /// The caller began a snapshot before the previous one was written or dropped. Nothing has changed.
    #[error("a snapshot of {} is still being written", dir.display())]
    SnapshotInProgress { dir: PathBuf },

    /// An earlier commit failed; the state on disk is unknown until the directory is opened again.
    #[error(
        "the store in {} has stopped after an error: {cause}", dir.display()
    )]
    Stopped { dir: PathBuf, cause: String },
}

impl Error {
    /// What the operator can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Locked { .. } => "stop that server, or give this one another directory",
            Self::Corrupt { path, offset, .. } => {
                return Some(format!(
                    "restore the directory from a backup, or give up this and all later records: copy the directory, move later log files \
                     out of it, and run `truncate -s {offset} {}`",
                    path.display()
                ));
            }
            Self::BadHeader { .. } => {
                "restore it from a backup, or continue without it and all later log files by moving them out of the directory"
            }
            Self::NewerVersion { .. } => "start the program that wrote it, or a newer one",
            Self::Gap { .. } => {
                "a log or snapshot is missing or unreadable: restore it, or continue without the later records by moving this and all later \
                 log files out of the directory"
            }
            Self::UnreadableSnapshots { .. } => {
                "restore the directory from a backup, or move the file out of it to start empty"
            }
            Self::BatchTooLarge { .. } => "commit more often",
            Self::Stopped { .. } => "make room or repair the disk, then restart the server",
            Self::Io { .. } | Self::OutOfOrder { .. } | Self::SnapshotInProgress { .. } => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}
