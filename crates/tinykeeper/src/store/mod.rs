//! Durable storage: an append-only log of transactions, and occasional snapshots.
//!
//! The store knows nothing about trees. It stores records `(zxid, payload)` and opaque snapshots, and guarantees one thing:
//! **acknowledged records survive.** A record is acknowledged when [`Store::commit`] returns `Ok`. The guarantee holds whenever
//! the process is killed, and with [`Options::fsync`] also when the machine loses power.
//!
//! ```text
//! dir/lock                      held (flock) by the one store that may write here; contains its process id
//! dir/log.{first zxid}          header, then one frame per committed batch, then zeros        log.rs, batch.rs
//! dir/snapshot.{zxid}           header, body, length and checksum: all records up to zxid     snapshot.rs
//! dir/*.tmp                     unfinished file, worthless: the next open deletes it
//! dir/log.….torn                bytes of an unacknowledged batch, cut off the end of the log
//! dir/snapshot.….bad            a snapshot that failed its checksum
//! ```
//!
//! Only the user of the process can read the directory and its files; wider modes are tightened by open (privacy.rs).
//!
//! Zxids in file names have 16 hex digits, so that names sort by zxid. `.torn` and `.bad` files are for operators; the store
//! never reads or deletes them.
//!
//! # Writing, and the guarantees at each point where a crash can happen
//!
//! Each log file is written by one opened store. The first commit after opening, and the first commit after a snapshot was begun,
//! creates a new log. Its header contains the last zxid before it, so the logs form a chain, and a missing or shortened log is
//! detected instead of skipped.
//!
//! * **Creating a log**: the header is written to `.tmp` and synced, the file renamed, the directory synced; then follows the
//!   first batch. A log under its final name has a complete header. The previous log was trimmed and synced before.
//! * **Commit**: one write of a frame, one fdatasync. A crash leaves the frame complete, absent, or in pieces that do not match
//!   its checksum. Nothing is written after a frame until it is durable, so only the last frame of the last log can be torn.
//!   Open cuts it off and saves the bytes.
//! * **Snapshot**: the file is written to `.tmp` and synced, renamed, and the directory synced. Until then no other file is
//!   touched. Afterwards the files that neither of the newest two snapshots needs are deleted. One damaged snapshot therefore
//!   loses nothing: open uses the older snapshot and its logs.
//! * **Open** reads and decides first, and changes files only then. It syncs what it has read before it returns: a batch that was
//!   found in the page cache becomes visible to clients, so it must be durable.
//!
//! Damage that no crash can cause, in a log that is not the last or before a later committed batch, is an [`Error`]; the store
//! never silently drops acknowledged records.

mod batch;
mod disk;
mod error;
mod files;
mod header;
mod lock;
mod log;
mod privacy;
mod recovery;
mod replay;
mod snapshot;

#[cfg(test)]
mod corruption_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod simulated_disk;
#[cfg(test)]
mod step_recorder;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use bytes::Bytes;

use self::{batch::Batch, lock::DirLock, log::Log, snapshot::WriterGuard};
pub use self::{error::Error, snapshot::SnapshotWriter};

/// Write options of a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Sync to disk in every commit. Without it a killed process loses nothing, but a power loss loses what the system had not
    /// written yet, up to about half a minute.
    pub fsync: bool,
    /// Number of bytes by which a log grows at a time; 0 to grow with every commit. The file is sparse after the last record, so
    /// this costs no space. It avoids the write to the file system's journal that every fdatasync after a size change causes and
    /// that slows small commits. Writing real zeros ahead was no faster, and stalled at every block.
    pub preallocate: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { fsync: true, preallocate: 16 * 1024 * 1024 }
    }
}

/// The data that [`Store::open`] recovered.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The newest readable snapshot, with the last zxid it contains.
    pub snapshot: Option<(i64, Bytes)>,
    /// Every record after the snapshot, by ascending zxid.
    pub records: Vec<(i64, Bytes)>,
    /// A partly written batch of a crashed process, which was removed from the log.
    pub torn: Option<TornTail>,
}

/// The partly written end of a log after a crash. It was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    pub log: PathBuf,
    /// Offset in the log at which it was cut off.
    pub offset: u64,
    /// Number of bytes cut off, without trailing zeros, which were never written.
    pub bytes: u64,
    /// The file to which the bytes were saved.
    pub saved_to: PathBuf,
}

/// The part of the log that an open would replay now. The server takes a snapshot when it is large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Records since the last snapshot was begun.
    pub records: u64,
    /// Bytes of log since then.
    pub bytes: u64,
    /// Log files since then. Every opened store that writes anything creates one.
    pub logs: u64,
}

/// A directory of logs and snapshots, locked for this process.
///
/// Invariant: `position <= newest`. Both only grow, and the chain of logs on disk ends at `position`.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    options: Options,
    lock: Arc<DirLock>,
    /// The log being written; `None` before the first commit and after `begin_snapshot`.
    log: Option<Log>,
    batch: Batch,
    /// Zxid of the last record in any log; the header of the next log contains it.
    position: i64,
    /// Zxid of the last appended record or the last snapshot; the next record's zxid must be greater.
    newest: i64,
    snapshot: i64,
    snapshot_in_progress: Weak<WriterGuard>,
    backlog: Backlog,
    /// Why the current batch cannot be committed; the next commit returns it.
    batch_error: Option<Error>,
    /// Why the store has stopped writing.
    failure: Option<String>,
}

impl Store {
    /// Opens `dir`, or creates it, locks it, and returns everything that was acknowledged.
    ///
    /// A torn tail is cut off, see [`Recovery::torn`]. The result may contain records whose commit never returned: they had
    /// reached the disk when the process died.
    pub fn open(dir: &Path, options: Options) -> Result<(Store, Recovery), Error> {
        disk::create_dir(dir)?;
        privacy::tighten(dir);
        let lock = Arc::new(DirLock::acquire(dir)?);
        let plan = recovery::plan(dir)?;
        let (position, backlog) = (plan.position, plan.backlog);
        let recovery = plan.execute(dir)?;
        let snapshot = recovery.snapshot.as_ref().map_or(0, |(zxid, _)| *zxid);
        tracing::info!(
            folder = %dir.display(),
            snapshot = format_args!("{snapshot:#x}"),
            records = recovery.records.len(),
            logs = backlog.logs,
            "store opened"
        );
        let store = Store {
            dir: dir.to_owned(),
            options,
            lock,
            log: None,
            batch: Batch::default(),
            position,
            newest: position.max(snapshot),
            snapshot,
            snapshot_in_progress: Weak::new(),
            backlog,
            batch_error: None,
            failure: None,
        };
        Ok((store, recovery))
    }

    /// Adds a record to the current batch; it is not durable until [`commit`](Store::commit) returns.
    ///
    /// The zxid must be greater than that of every earlier record and snapshot. If it is not, or the batch exceeds 1 GiB, the
    /// commit fails.
    pub fn append(&mut self, zxid: i64, payload: &[u8]) {
        if self.failure.is_some() || self.batch_error.is_some() {
            return;
        }
        if zxid <= self.newest {
            self.batch_error = Some(Error::OutOfOrder { zxid, newest: self.newest });
        } else if !self.batch.push(zxid, payload) {
            self.batch_error = Some(Error::BatchTooLarge { limit: batch::MAX_BODY });
        } else {
            self.newest = zxid;
        }
    }

    /// Writes the current batch with one write and, with [`Options::fsync`], one fdatasync. On success the whole batch survives; on
    /// an error it survives completely or not at all.
    ///
    /// After an error the store refuses all further writes. A failed fdatasync cannot be repeated: the system may have dropped the
    /// pages and return `Ok` the second time.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.check_usable()?;
        if let Some(error) = self.batch_error.take() {
            return self.fail(error);
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.write_batch() {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// The part of the log that a restart would replay.
    pub fn since_snapshot(&self) -> Backlog {
        self.backlog
    }

    /// Commits the current batch and starts a new log for the records appended from now on.
    ///
    /// `zxid` is the last one that the snapshot contains. The snapshot must contain nothing that does not follow from the records
    /// up to `zxid`, because a later open may have to do without it. This call is fast. The writer may be sent to another thread;
    /// only one exists at a time.
    pub fn begin_snapshot(&mut self, zxid: i64) -> Result<SnapshotWriter, Error> {
        self.commit()?;
        if self.snapshot_in_progress.strong_count() > 0 {
            return Err(Error::SnapshotInProgress { dir: self.dir.clone() });
        }
        if zxid < self.snapshot {
            return Err(Error::OutOfOrder { zxid, newest: self.snapshot });
        }
        if let Some(log) = self.log.take()
            && let Err(error) = log.finish()
        {
            return self.fail(error);
        }
        self.snapshot = zxid;
        self.newest = self.newest.max(zxid);
        self.backlog = Backlog::default();
        let writer = SnapshotWriter::new(self.dir.clone(), zxid, Arc::clone(&self.lock));
        self.snapshot_in_progress = writer.guard();
        Ok(writer)
    }

    fn write_batch(&mut self) -> Result<(), Error> {
        let log = match &mut self.log {
            Some(log) => log,
            none => {
                let log = Log::create(&self.dir, self.batch.first(), self.position, self.options)?;
                self.backlog.logs += 1;
                none.insert(log)
            }
        };
        self.backlog.bytes += log.write(&mut self.batch)?;
        self.backlog.records += self.batch.records();
        self.position = self.batch.last();
        self.batch.clear();
        Ok(())
    }

    fn check_usable(&self) -> Result<(), Error> {
        match &self.failure {
            None => Ok(()),
            Some(cause) => Err(Error::Stopped { dir: self.dir.clone(), cause: cause.clone() }),
        }
    }

    fn fail<T>(&mut self, error: Error) -> Result<T, Error> {
        let source = std::error::Error::source(&error);
        let source = source.map_or_else(String::new, |source| format!(": {source}"));
        self.failure = Some(format!("{error}{source}"));
        self.batch.clear();
        Err(error)
    }
}

impl Drop for Store {
    /// Trims the log to its records. Records that were appended but not committed are lost.
    fn drop(&mut self) {
        if self.failure.is_none()
            && let Some(log) = &mut self.log
        {
            // The next open trims it too; this only avoids a file that looks like 16 MiB.
            let _ = log.trim();
        }
    }
}
