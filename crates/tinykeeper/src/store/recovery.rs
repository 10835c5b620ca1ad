//! Opening a folder: first read and decide, then change what has to change.
//!
//! The newest readable snapshot counts, or the empty beginning if there is none. From there the logs
//! must follow without a gap: the first of them reaches back to the snapshot, each other one follows
//! where the one before it ends, and only the last may be torn. Nothing is changed unless all of
//! that holds, so a folder that cannot be opened stays as it was.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    Error, Progress, Recovered, TornTail,
    disk::{self, Output, attempt},
    files::{self, Listing},
    replay::{self, Contents, Tail},
    snapshot::{self, Reading},
};

/// What a folder holds and what has to be done before it is written again.
#[derive(Debug)]
pub(super) struct Plan {
    snapshot: Option<Snapshot>,
    records: Vec<(i64, Bytes)>,
    /// Zxid of the last record in any log.
    pub(super) position: i64,
    pub(super) progress: Progress,
    unfinished: Vec<PathBuf>,
    unreadable: Vec<Unreadable>,
    last_log: Option<LastLog>,
}

/// The log that the last life of a store wrote to.
#[derive(Debug)]
struct LastLog {
    path: PathBuf,
    end: u64,
    empty: bool,
    torn: Option<(u64, &'static str)>,
}

/// Reads the folder; changes nothing.
pub(super) fn plan(dir: &Path) -> Result<Plan, Error> {
    let Listing { mut logs, snapshots, unfinished } = Listing::of(dir)?;
    let (snapshot, unreadable) = newest_readable(snapshots)?;
    let after = snapshot.as_ref().map_or(0, |(zxid, _)| *zxid);
    if snapshot.is_none()
        && logs.is_empty()
        && let Some((path, what)) = unreadable.first()
    {
        return Err(Error::NoSnapshot { path: path.clone(), what });
    }
    let needed = logs.split_off(first_needed(&logs, after)?);
    let mut plan = Plan {
        position: after,
        progress: Progress::default(),
        records: Vec::new(),
        snapshot,
        unfinished,
        unreadable,
        last_log: None,
    };
    for (index, (first, path)) in needed.iter().enumerate() {
        let contents = replay::contents(path, after)?;
        // The first log needed may begin before the snapshot; behind it the chain must be whole.
        if index > 0 && contents.follows != plan.position {
            return Err(Error::Gap {
                path: path.clone(),
                follows: contents.follows,
                reached: plan.position,
            });
        }
        let is_last = index + 1 == needed.len();
        let torn = judge(&contents, path, *first, is_last)?;
        plan.position = contents.last;
        plan.progress.logs += 1;
        plan.progress.bytes += contents.bytes;
        plan.progress.records += contents.records.len() as u64;
        plan.last_log = Some(LastLog {
            path: path.clone(),
            end: contents.end,
            empty: contents.first.is_none(),
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
            Reading::Whole(body) => return Ok((Some((zxid, body)), unreadable)),
            Reading::Damaged(what) => unreadable.push((path, what)),
        }
    }
    Ok((None, unreadable))
}

/// Index of the newest log that reaches back to `after`: earlier ones have no later records.
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

/// Decides whether a log may be as it is; answers what is torn off its end, if anything.
fn judge(
    contents: &Contents,
    path: &Path,
    named: i64,
    is_last: bool,
) -> Result<Option<(u64, &'static str)>, Error> {
    if let Some(first) = contents.first
        && first != named
    {
        return Err(Error::BadHeader {
            path: path.to_owned(),
            what: "its first record is not the one its name says",
        });
    }
    match contents.tail {
        Tail::Clean => Ok(None),
        Tail::Torn { bytes, what } if is_last => Ok(Some((bytes, what))),
        Tail::Torn { what, .. } | Tail::Damaged { what } => {
            Err(Error::Corrupt { path: path.to_owned(), offset: contents.end, what })
        }
    }
}

impl Plan {
    /// Makes the folder fit to be written again, so that a crash in the middle leaves it as readable
    /// as it was: what is cut or set aside is durable elsewhere before it goes.
    pub(super) fn carry_out(self, dir: &Path) -> Result<Recovered, Error> {
        for path in &self.unfinished {
            disk::remove(path)?;
        }
        for (path, what) in &self.unreadable {
            let kept = files::free_beside(path, "bad");
            disk::rename(path, &kept)?;
            tracing::warn!(
                file = %path.display(),
                what,
                kept = %kept.display(),
                "snapshot unreadable, using an older one and its logs"
            );
        }
        let torn = self.last_log.map(LastLog::settle).transpose()?.flatten();
        disk::sync_dir(dir)?;
        Ok(Recovered { snapshot: self.snapshot, records: self.records, torn })
    }
}

impl LastLog {
    /// Leaves exactly the whole batches in the file, durably: they are about to be shown to clients,
    /// and from now on this log is not the last one.
    fn settle(self) -> Result<Option<TornTail>, Error> {
        let torn = match self.torn {
            Some((bytes, what)) => Some(self.keep_torn(bytes, what)?),
            None => None,
        };
        if self.empty {
            // Its name may be later than that of the next log, which would break the chain.
            disk::remove(&self.path)?;
            return Ok(torn);
        }
        let mut file = Output::reopen(self.path, self.end)?;
        file.set_len(self.end)?;
        file.sync_all()?;
        Ok(torn)
    }

    fn keep_torn(&self, bytes: u64, what: &'static str) -> Result<TornTail, Error> {
        let kept = files::free_beside(&self.path, "torn");
        if let Err(error) = self.copy_torn(bytes, &kept) {
            // The log still has the bytes; what matters is not to fill the disk with half copies.
            let _ = disk::remove(&kept);
            return Err(error);
        }
        tracing::warn!(
            file = %self.path.display(),
            offset = self.end,
            bytes,
            what,
            kept = %kept.display(),
            "torn end of the log cut off: it was never acknowledged"
        );
        Ok(TornTail { log: self.path.clone(), offset: self.end, bytes, kept })
    }

    fn copy_torn(&self, bytes: u64, kept: &Path) -> Result<(), Error> {
        let mut source = attempt("open", &self.path, || File::open(&self.path))?;
        attempt("read", &self.path, || source.seek(SeekFrom::Start(self.end)))?;
        let mut copy = Output::create(kept.to_owned())?;
        let mut buffer = Vec::new();
        let mut left = bytes;
        while left > 0 {
            buffer.clear();
            let chunk = left.min(1 << 16);
            let read =
                attempt("read", &self.path, || (&mut source).take(chunk).read_to_end(&mut buffer))?;
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
