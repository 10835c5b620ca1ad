//! What can go wrong with the folder, by what its reader does about it.

use std::{io, path::PathBuf};

/// Why the store cannot be opened, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else uses the folder: stop one of the two.
    #[error(
        "{} is in use by {}; hint: stop that server, or give this one a folder of its own",
        dir.display(), holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// The process that holds it, as far as its lock file tells.
        holder: Option<u32>,
    },

    /// The operating system refused: disk full, no permission, a broken disk.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// A log has bytes that no crash of ours leaves there: acknowledged records are damaged.
    #[error(
        "{path} is damaged at byte {offset}: {what}; hint: restore the folder from a backup, or give \
         up this and all later records: copy the folder, move later log files out of it, and run \
         `truncate -s {offset} {path}`",
        path = path.display()
    )]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// Where the first damaged batch begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },

    /// A file has our name but not our header.
    #[error(
        "{} does not begin like a file of this store: {what}; hint: restore it from a backup, or go \
         on without it and all later log files by moving them out of the folder", path.display()
    )]
    BadHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first bytes.
        what: &'static str,
    },

    /// Written by a later program: use that one.
    #[error(
        "{} has format version {found}, and this program reads up to {known}; hint: start the program \
         that wrote it, or a newer one", path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },

    /// Records between two files, or between the snapshot and the logs, are missing.
    #[error(
        "{} continues after zxid {follows:#x}, but what is there before it ends at {reached:#x}; hint: \
         a log or snapshot is missing or unreadable: bring it back, or go on without the later records \
         by moving this and all later log files out of the folder", path.display()
    )]
    Gap {
        /// The log after the gap.
        path: PathBuf,
        /// The zxid it follows.
        follows: i64,
        /// The last zxid there is before it; 0 when there is no readable snapshot and no log.
        reached: i64,
    },

    /// There are snapshots, none can be read, and no log to make up for them.
    #[error(
        "{} cannot be used: {what}, and there is no log to replay instead; hint: restore the folder \
         from a backup, or move the file out of it to start empty", path.display()
    )]
    NoSnapshot {
        /// The newest snapshot.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },

    /// The caller gave a zxid that does not come after what is already there.
    #[error("zxid {zxid:#x} does not come after {newest:#x}")]
    OutOfOrder {
        /// The one given.
        zxid: i64,
        /// The newest before it.
        newest: i64,
    },

    /// The caller put more into one batch than a frame holds.
    #[error("a batch of records exceeds {limit} bytes; hint: commit more often")]
    BatchTooLarge {
        /// The most that fits.
        limit: usize,
    },

    /// The caller began a snapshot before the last one was written or dropped. Nothing happened.
    #[error("a snapshot of {} is still being written", dir.display())]
    SnapshotUnderWay {
        /// The folder.
        dir: PathBuf,
    },

    /// An earlier commit failed; what is on disk since is unknown until the folder is opened again.
    #[error(
        "the store in {} has stopped after an error: {cause}; hint: make room or repair the disk, \
         then restart the server", dir.display()
    )]
    Stopped {
        /// The folder.
        dir: PathBuf,
        /// The error that stopped it.
        cause: String,
    },
}
