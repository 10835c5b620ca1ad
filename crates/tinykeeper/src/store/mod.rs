//! What survives a restart: an append-only log of transactions and, now and then, a snapshot.
//!
//! The store knows nothing of trees. It keeps records `(zxid, payload)` and opaque snapshots, and it
//! promises one thing: **what was acknowledged is there again.** Acknowledged means that
//! [`Store::commit`] returned `Ok`; the promise holds whenever the process is killed, and with
//! [`Options::fsync`] also when the machine loses power.
//!
//! ```text
//! dir/lock                      held (flock) by the one store that may write here; names its process
//! dir/log.{first zxid}          header, then one frame per committed batch, then zeros        log.rs, batch.rs
//! dir/snapshot.{zxid}           header, body, length and checksum: all records up to zxid     snapshot.rs
//! dir/*.tmp                     being written, worth nothing: the next open removes it
//! dir/log.….torn                bytes of a batch that was never acknowledged, cut from the log's end
//! dir/snapshot.….bad            a snapshot that failed its checksum
//! ```
//!
//! Zxids are 16 hex digits in names, so that a listing is in order. `.torn` and `.bad` are kept for
//! people; the store never reads or deletes them.
//!
//! # Who writes what, and what holds at each point a crash can hit
//!
//! A log file is written by one life of one process. The first commit of a life, and the first
//! after a snapshot was begun, makes a new one. Its header names the last zxid before it, so the
//! files form a chain, and a missing or shortened file is noticed instead of skipped.
//!
//! * **Making a log**: header into `.tmp`, fsync, rename, fsync of the folder; then the first batch.
//!   A log under its final name has a whole header. The log before it was trimmed and synced first.
//! * **Commit**: one write of a frame, one fdatasync. A crash leaves the frame whole, absent, or in
//!   pieces that its checksum does not match; nothing is written after it until it is durable. So
//!   only the last frame of the last log can be torn. Open cuts it off, and keeps the bytes.
//! * **Snapshot**: `.tmp`, fsync, rename, fsync of the folder. Until then nothing of the old state is
//!   touched. Then files are deleted that neither of the newest two snapshots needs, so that one bad
//!   snapshot costs nothing: open falls back to the older one and its logs.
//! * **Open** reads and decides first, and changes files after. It syncs what it read before it
//!   returns it: a batch found in the page cache will be shown to clients, so it must last.
//!
//! Damage that no crash explains — in a log that is not the last, or before a batch that was
//! committed later — is an [`Error`], never a shorter history.

mod batch;
mod disk;
mod error;
mod files;
mod header;
mod lock;
mod log;
mod recovery;
mod replay;
mod snapshot;

#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod platter;
#[cfg(test)]
mod tape;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use bytes::Bytes;

use self::{batch::Batch, lock::Lock, log::Log, snapshot::Ticket};
pub use self::{error::Error, snapshot::SnapshotWriter};

/// How a [`Store`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Wait for the disk in every commit. Without it a killed process loses nothing, but a machine
    /// that loses power loses what the system had not written yet, up to about half a minute.
    pub fsync: bool,
    /// By how many bytes a log grows at a time; 0 to grow with every commit. Ahead of the records the
    /// file is sparse, so this costs no space. It saves the journal write that a changed file size
    /// makes of every fdatasync, which small commits feel. Filling the space with real zeros was no
    /// faster, and stalled at every block.
    pub preallocate: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { fsync: true, preallocate: 16 * 1024 * 1024 }
    }
}

/// What [`Store::open`] found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The newest readable snapshot and the zxid up to which it holds everything.
    pub snapshot: Option<(i64, Bytes)>,
    /// Every record after the snapshot, by ascending zxid.
    pub records: Vec<(i64, Bytes)>,
    /// A batch that was being written when the last process died, and is no longer in the log.
    pub torn: Option<TornTail>,
}

/// The end of a log that a crash left half written. Nobody was told that it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The log it was cut from.
    pub log: PathBuf,
    /// Where in that log the cut is.
    pub offset: u64,
    /// How many bytes were cut; zeros after them were never written and do not count.
    pub bytes: u64,
    /// The file that now holds these bytes.
    pub kept: PathBuf,
}

/// What would be replayed if the store were opened now; the server takes a snapshot when it is much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Records since the last snapshot was begun.
    pub records: u64,
    /// Bytes of log since then.
    pub bytes: u64,
    /// Log files since then. Every life of the server that writes anything makes one.
    pub logs: u64,
}

/// A folder of logs and snapshots, locked for this process.
///
/// Invariant: `position <= newest`. Both only grow, and the chain of logs on disk ends at `position`.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    options: Options,
    lock: Arc<Lock>,
    /// The log being written; none before the first commit of this life or after `begin_snapshot`.
    log: Option<Log>,
    batch: Batch,
    /// Zxid of the last record in any log: what the next log says it follows.
    position: i64,
    /// What the next record's zxid must exceed: the last record appended, or the last snapshot.
    newest: i64,
    snapshot: i64,
    snapshot_under_way: Weak<Ticket>,
    progress: Progress,
    /// Why the batch being built cannot be committed; the next commit answers with it.
    refused: Option<Error>,
    /// Why nothing further is written.
    failed: Option<String>,
}

impl Store {
    /// Opens (creating when absent) `dir`, takes its lock, and returns everything that was acknowledged.
    ///
    /// A torn tail is cut off, see [`Recovered::torn`]. The caller may find records here whose commit
    /// never returned: they had reached the disk when the process died.
    pub fn open(dir: &Path, options: Options) -> Result<(Store, Recovered), Error> {
        disk::create_dir(dir)?;
        let lock = Arc::new(Lock::take(dir)?);
        let plan = recovery::plan(dir)?;
        let (position, progress) = (plan.position, plan.progress);
        let recovered = plan.carry_out(dir)?;
        let snapshot = recovered.snapshot.as_ref().map_or(0, |(zxid, _)| *zxid);
        tracing::info!(
            dir = %dir.display(),
            snapshot = format_args!("{snapshot:#x}"),
            records = recovered.records.len(),
            logs = progress.logs,
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
            snapshot_under_way: Weak::new(),
            progress,
            refused: None,
            failed: None,
        };
        Ok((store, recovered))
    }

    /// Adds a record to the batch being built; nothing is durable until [`commit`](Store::commit).
    ///
    /// The zxid must be greater than that of every record and snapshot before. If it is not, or the
    /// batch grows beyond 1 GiB, the commit fails.
    pub fn append(&mut self, zxid: i64, payload: &[u8]) {
        if self.failed.is_some() || self.refused.is_some() {
            return;
        }
        if zxid <= self.newest {
            self.refused = Some(Error::OutOfOrder { zxid, newest: self.newest });
        } else if !self.batch.push(zxid, payload) {
            self.refused = Some(Error::BatchTooLarge { limit: batch::MAX_BODY });
        } else {
            self.newest = zxid;
        }
    }

    /// Writes the batch with one write and ([`Options::fsync`]) one fdatasync: it is there again
    /// whole, or, if this fails, perhaps not at all.
    ///
    /// After an error the store refuses everything further. An fdatasync that failed cannot be
    /// repeated: the system may have dropped the pages and answers `Ok` the second time.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.check_usable()?;
        if let Some(refused) = self.refused.take() {
            return self.fail(refused);
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.write_batch() {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// What a restart would have to replay.
    pub fn since_snapshot(&self) -> Progress {
        self.progress
    }

    /// Commits what was appended and starts a new log: records appended from now on go there.
    ///
    /// `zxid` is the last one the snapshot contains. The snapshot may hold nothing that the records up
    /// to `zxid` do not make, because a later open may have to do without it. This call is fast; the
    /// writer may be given to another thread, and only one exists at a time.
    pub fn begin_snapshot(&mut self, zxid: i64) -> Result<SnapshotWriter, Error> {
        self.commit()?;
        if self.snapshot_under_way.strong_count() > 0 {
            return Err(Error::SnapshotUnderWay { dir: self.dir.clone() });
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
        self.progress = Progress::default();
        let writer = SnapshotWriter::new(self.dir.clone(), zxid, Arc::clone(&self.lock));
        self.snapshot_under_way = writer.ticket();
        Ok(writer)
    }

    fn write_batch(&mut self) -> Result<(), Error> {
        let log = match &mut self.log {
            Some(log) => log,
            none => {
                let log = Log::create(&self.dir, self.batch.first(), self.position, self.options)?;
                self.progress.logs += 1;
                none.insert(log)
            }
        };
        self.progress.bytes += log.write(&mut self.batch)?;
        self.progress.records += self.batch.records();
        self.position = self.batch.last();
        self.batch.clear();
        Ok(())
    }

    fn check_usable(&self) -> Result<(), Error> {
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(Error::Stopped { dir: self.dir.clone(), cause: cause.clone() }),
        }
    }

    fn fail<T>(&mut self, error: Error) -> Result<T, Error> {
        let source = std::error::Error::source(&error);
        let source = source.map_or_else(String::new, |source| format!(": {source}"));
        self.failed = Some(format!("{error}{source}"));
        self.batch.clear();
        Err(error)
    }
}

impl Drop for Store {
    /// Gives back the space reserved ahead. Records appended but not committed are lost.
    fn drop(&mut self) {
        if self.failed.is_none()
            && let Some(log) = &mut self.log
        {
            // The next open trims it too; this only spares people a file that looks like 16 MiB.
            let _ = log.trim();
        }
    }
}
