//! Recovers a data directory: first reads and decides, then makes the necessary changes.
//!
//! Recovery starts from the newest readable snapshot, or from the empty state if there is none. From there the logs must follow
//! without a gap: the first one reaches back to the snapshot, each other one continues where the previous one ends, and only the
//! last may be torn. Nothing is changed unless all of that holds, so a directory that cannot be opened stays as it was.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    Backlog, Error, Recovery, TornTail,
    disk::{self, OutputFile, with_context},
    files::{self, Listing},
    replay::{self, LogContents, Tail},
    snapshot::{self, SnapshotFile},
};

/// The contents of a directory, and the changes to make before it is written again.
#[derive(Debug)]
pub(super) struct Plan {
    snapshot: Option<Snapshot>,
    records: Vec<(i64, Bytes)>,
    /// Zxid of the last record in any log.
    pub(super) position: i64,
    pub(super) backlog: Backlog,
    unfinished: Vec<PathBuf>,
    unreadable: Vec<Unreadable>,
    last_log: Option<LastLog>,
}

/// The newest log.
#[derive(Debug)]
struct LastLog {
    path: PathBuf,
    end: u64,
    is_empty: bool,
    torn: Option<(u64, &'static str)>,
}

/// Reads the directory; changes nothing.
pub(super) fn plan(dir: &Path) -> Result<Plan, Error> {
    let Listing { mut logs, snapshots, unfinished } = Listing::of(dir)?;
    let (snapshot, unreadable) = newest_readable(snapshots)?;
    let after = snapshot.as_ref().map_or(0, |(zxid, _)| *zxid);
    if snapshot.is_none()
        && logs.is_empty()
        && let Some((path, problem)) = unreadable.first()
    {
        return Err(Error::UnreadableSnapshots { path: path.clone(), problem });
    }
    let needed = logs.split_off(first_needed(&logs, after)?);
    let mut plan = Plan {
        position: after,
        backlog: Backlog::default(),
        records: Vec::new(),
        snapshot,
        unfinished,
        unreadable,
        last_log: None,
    };
    for (index, (first, path)) in needed.iter().enumerate() {
        let contents = replay::contents(path, after)?;
        // The first log needed may begin before the snapshot; after it the chain must have no gap.
        if index > 0 && contents.follows != plan.position {
            return Err(Error::Gap {
                path: path.clone(),
                follows: contents.follows,
                reached: plan.position,
            });
        }
        let is_last = index + 1 == needed.len();
        let torn = check_log(&contents, path, *first, is_last)?;
        plan.position = contents.last;
        plan.backlog.logs += 1;
        plan.backlog.bytes += contents.bytes;
        plan.backlog.records += contents.records.len() as u64;
        plan.last_log = Some(LastLog {
            path: path.clone(),
            end: contents.end,
            is_empty: contents.first.is_none(),
            torn,
        });
        plan.records.extend(contents.records);
    }
    Ok(plan)
}

type Snapshot = (i64, Bytes);
type Unreadable = (PathBuf, &'static str);

fn newest_readable(
    snapshots: Vec<(i64, PathBuf)>,
) -> Result<(Option<Snapshot>, Vec<Unreadable>), Error> {
    let mut unreadable = Vec::new();
    for (zxid, path) in snapshots.into_iter().rev() {
        match snapshot::read(&path, zxid)? {
            SnapshotFile::Intact(body) => return Ok((Some((zxid, body)), unreadable)),
            SnapshotFile::Damaged(problem) => unreadable.push((path, problem)),
        }
    }
    Ok((None, unreadable))
}

/// Index of the newest log that reaches back to `after`; earlier logs contain no records after it.
fn first_needed(logs: &[(i64, PathBuf)], after: i64) -> Result<usize, Error> {
    let mut gap = None;
    for (index, (_, path)) in logs.iter().enumerate().rev() {
        let follows = replay::header(path)?.zxid;
        if follows <= after {
            return Ok(index);
        }
        gap = Some(Error::Gap { path: path.clone(), follows, reached: after });
    }
    gap.map_or(Ok(0), Err)
}

/// Checks that a log is valid; returns its torn tail, if it has one that is allowed.
fn check_log(
    contents: &LogContents,
    path: &Path,
    named: i64,
    is_last: bool,
) -> Result<Option<(u64, &'static str)>, Error> {
    if let Some(first) = contents.first
        && first != named
    {
        return Err(Error::BadHeader {
            path: path.to_owned(),
            problem: "its first record differs from the one in its name",
        });
    }
    match contents.tail {
        Tail::Clean => Ok(None),
        Tail::Torn { bytes, problem } if is_last => Ok(Some((bytes, problem))),
        Tail::Torn { problem, .. } | Tail::Damaged { problem } => {
            Err(Error::Corrupt { path: path.to_owned(), offset: contents.end, problem })
        }
    }
}

impl Plan {
    /// Prepares the directory for writing. A crash in the middle leaves it as readable as before: bytes that are cut off or moved
    /// aside are durable elsewhere before they are removed.
    pub(super) fn execute(self, dir: &Path) -> Result<Recovery, Error> {
        for path in &self.unfinished {
            disk::remove(path)?;
        }
        for (path, problem) in &self.unreadable {
            let saved_to = files::unused_name(path, "bad");
            disk::rename(path, &saved_to)?;
            tracing::warn!(
                file = %path.display(),
                problem,
                saved_to = %saved_to.display(),
                "snapshot unreadable, using an older one and its logs"
            );
        }
        let torn = self.last_log.map(LastLog::finalize).transpose()?.flatten();
        disk::sync_dir(dir)?;
        Ok(Recovery { snapshot: self.snapshot, records: self.records, torn })
    }
}

impl LastLog {
    /// Truncates the log to its complete batches and syncs it: the batches become visible to clients, and from now on this log is
    /// not the last one.
    fn finalize(self) -> Result<Option<TornTail>, Error> {
        let torn = match self.torn {
            Some((bytes, problem)) => Some(self.save_torn_tail(bytes, problem)?),
            None => None,
        };
        if self.is_empty {
            // The zxid in its name may be greater than that of the next log, which would break the chain.
            disk::remove(&self.path)?;
            return Ok(torn);
        }
        let mut file = OutputFile::reopen(self.path, self.end)?;
        file.set_len(self.end)?;
        file.sync_all()?;
        Ok(torn)
    }

    fn save_torn_tail(&self, bytes: u64, problem: &'static str) -> Result<TornTail, Error> {
        let saved_to = files::unused_name(&self.path, "torn");
        if let Err(error) = self.copy_torn_tail(bytes, &saved_to) {
            // The log still has the bytes; partial copies must not fill the disk.
            let _ = disk::remove(&saved_to);
            return Err(error);
        }
        tracing::warn!(
            file = %self.path.display(),
            offset = self.end,
            bytes,
            problem,
            saved_to = %saved_to.display(),
            "torn end of the log cut off: it was never acknowledged"
        );
        Ok(TornTail { log: self.path.clone(), offset: self.end, bytes, saved_to })
    }

    fn copy_torn_tail(&self, bytes: u64, saved_to: &Path) -> Result<(), Error> {
        let mut source = with_context("open", &self.path, || File::open(&self.path))?;
        with_context("read", &self.path, || source.seek(SeekFrom::Start(self.end)))?;
        let mut copy = OutputFile::create(saved_to.to_owned())?;
        let mut buffer = Vec::new();
        let mut left = bytes;
        while left > 0 {
            buffer.clear();
            let chunk = left.min(1 << 16);
            let read = with_context("read", &self.path, || {
                (&mut source).take(chunk).read_to_end(&mut buffer)
            })?;
            if read == 0 {
                break;
            }
            copy.write(&buffer)?;
            left -= read as u64;
        }
        copy.sync_all()?;
        self.path.parent().map_or(Ok(()), disk::sync_dir)
    }
}
