//! Spill files: events wait here while their sink cannot store them, first in, first out, up to a limit.
//!
//! ```text
//!   folder/0/lock              held by the process that owns slot 0
//!          0/00000007.events   being read: deleted when all of it is stored
//!          0/00000008.events   being written
//!          1/…                 another process of this machine
//! ```
//!
//! * **A slot belongs to one process**, by a lock that ends with the process. A process that starts takes the first free slot, and the files of
//!   all other free slots.
//! * **Files of earlier processes are only read**: a line that a crash tore is the last of its file, and is skipped.
//! * **A file is deleted when all of it is stored.** After a crash, some events of one file are sent twice, which a sink can handle.
//! * **The last part of the space is reserved for important events**: output may use three quarters of it, starts seven eighths, so that during a
//!   long outage output does not displace the ends of runs.
//! * Spilled events survive the death of the process but not a power failure: that would take an fsync for each batch.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{
    queue::Importance,
    spill_line,
    weight::{Capacity, weight},
};
use crate::history::Event;

/// A new file is started when the current one has this many bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Maximum number of processes that share a folder.
const MAX_SLOTS: usize = 256;

const EXTENSION: &str = "events";

/// Why events could not be spilled.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpillError {
    #[error("the limit of {limit} bytes is reached")]
    Full { limit: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub(super) struct Spill {
    slot: PathBuf,
    limit: u64,
    /// Oldest first.
    files: VecDeque<SpillFile>,
    /// Read position in the first file.
    offset: u64,
    /// The last file, if this process writes it.
    open: Option<File>,
    next: u64,
    _lock: File,
}

#[derive(Debug)]
struct SpillFile {
    path: PathBuf,
    length: u64,
}

/// A batch of the oldest events.
#[derive(Debug, Default)]
pub(super) struct SpilledBatch {
    pub(super) events: Vec<Event>,
    /// Number of torn or damaged lines that were skipped.
    pub(super) unreadable: u64,
    /// Number of files that are read to their end.
    files: usize,
    /// Read position in the file after those.
    offset: u64,
}

impl Spill {
    /// Takes a slot in this folder, with the files in it and in all other free slots.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        create_folder(folder)?;
        let mut own: Option<Self> = None;
        for slot in 0..MAX_SLOTS {
            let path = folder.join(slot.to_string());
            if own.is_some() && !path.exists() {
                break;
            }
            create_folder(&path)?;
            tighten_folder(&path);
            let lock = private_file().create(true).truncate(true).open(path.join("lock"))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            match &mut own {
                Some(own) => own.adopt(&path)?,
                None => own = Some(Self::of(path, limit, lock)?),
            }
        }
        own.ok_or_else(|| io::Error::other(format!("already used by {MAX_SLOTS} processes")))
    }

    fn of(slot: PathBuf, limit: u64, lock: File) -> io::Result<Self> {
        let files = spill_files(&slot)?;
        let next = files.back().and_then(|file| number(&file.path)).map_or(1, |last| last + 1);
        Ok(Self { slot, limit, files, offset: 0, open: None, next, _lock: lock })
    }

    /// Takes over the files of a process that is gone.
    fn adopt(&mut self, slot: &Path) -> io::Result<()> {
        for SpillFile { path, length } in spill_files(slot)? {
            let ours = self.next_path();
            fs::rename(path, &ours)?;
            self.files.push_back(SpillFile { path: ours, length });
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Number of bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum::<u64>().saturating_sub(self.offset)
    }

    /// Appends these events, except those that may not use the reserved space, whose worth is returned. If there is no room for an event that may
    /// use all of the space, none is appended.
    pub(super) fn append(&mut self, events: &[Event]) -> Result<Vec<Importance>, SpillError> {
        let (mut text, mut rejected) = (String::new(), Vec::new());
        for event in events {
            let (line, worth) = (spill_line::encode(event), Importance::of(event));
            let capacity = match worth {
                Importance::Output => self.limit - self.limit / 4,
                Importance::Progress => self.limit - self.limit / 8,
                Importance::Success | Importance::Failure => self.limit,
            };
            if self.bytes() + (text.len() + line.len()) as u64 <= capacity {
                text.push_str(&line);
            } else if capacity < self.limit {
                rejected.push(worth);
            } else {
                return Err(SpillError::Full { limit: self.limit });
            }
        }
        let length = text.len() as u64;
        if self.open.is_none() || self.files.back().is_none_or(|file| file.length >= MAX_FILE) {
            let path = self.next_path();
            self.open = Some(private_file().create_new(true).append(true).open(&path)?);
            self.files.push_back(SpillFile { path, length: 0 });
        }
        let (Some(file), Some(spill_file)) = (&mut self.open, self.files.back_mut()) else {
            return Ok(rejected);
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part of the text may have been written.
            if file.set_len(spill_file.length).is_err() {
                self.open = None;
            }
            return Err(error.into());
        }
        spill_file.length += length;
        Ok(rejected)
    }

    /// The oldest events within `capacity`, and at least one. They stay until they are [removed](Self::remove).
    pub(super) fn read_oldest(&self, capacity: Capacity) -> io::Result<SpilledBatch> {
        let mut batch = SpilledBatch { offset: self.offset, ..SpilledBatch::default() };
        let mut bytes = 0;
        for spill_file in &self.files {
            let file = match File::open(&spill_file.path) {
                Ok(file) => file,
                // The file was deleted from outside.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    batch.files += 1;
                    batch.offset = 0;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut file = BufReader::new(file);
            file.seek(SeekFrom::Start(batch.offset))?;
            let mut line = Vec::new();
            while batch.events.len() < capacity.events {
                line.clear();
                let length = file.read_until(b'\n', &mut line)?;
                if length == 0 {
                    break;
                }
                match spill_line::decode(line.strip_suffix(b"\n").unwrap_or(&line)) {
                    Some(event) => {
                        bytes += weight(&event);
                        if bytes > capacity.bytes && !batch.events.is_empty() {
                            return Ok(batch);
                        }
                        batch.events.push(event);
                    }
                    None => batch.unreadable += 1,
                }
                batch.offset += length as u64;
            }
            if batch.offset < spill_file.length {
                break;
            }
            batch.files += 1;
            batch.offset = 0;
        }
        Ok(batch)
    }

    /// Removes a batch that was stored.
    pub(super) fn remove(&mut self, batch: &SpilledBatch) -> io::Result<()> {
        self.offset = batch.offset;
        let files: Vec<SpillFile> = self.files.drain(..batch.files).collect();
        if self.files.is_empty() {
            self.open = None;
        }
        files.iter().try_for_each(|file| match fs::remove_file(&file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
    }

    fn next_path(&mut self) -> PathBuf {
        let path = self.slot.join(format!("{:08}.{EXTENSION}", self.next));
        self.next += 1;
        path
    }
}

/// Creates a folder that only this user can read: output and failures of jobs may be confidential.
fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Takes the access of others to an existing slot away. The folder of the slots may be shared by users.
fn tighten_folder(folder: &Path) {
    let is_open = |folder: fs::Metadata| folder.permissions().mode() & 0o077 != 0;
    if fs::metadata(folder).is_ok_and(is_open) {
        // It fails for the slot of another user, whose files are private in any case.
        let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    }
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn spill_files(slot: &Path) -> io::Result<VecDeque<SpillFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(slot)? {
        let entry = entry?;
        if let Some(number) = number(&entry.path()) {
            let length = entry.metadata()?.len();
            files.push((number, SpillFile { path: entry.path(), length }));
        }
    }
    files.sort_by_key(|(number, _)| *number);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

fn number(path: &Path) -> Option<u64> {
    let is_ours = path.extension()? == EXTENSION;
    path.file_stem()?.to_str()?.parse().ok().filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::recorder::fixture::{done, printed, started};

    const LIMIT: u64 = 64 * 1024 * 1024;
    const LARGE: Capacity = Capacity { events: 9, bytes: 64 * 1024 * 1024 };

    fn all(spill: &mut Spill) -> (Vec<Event>, u64) {
        let (mut events, mut unreadable) = (Vec::new(), 0);
        while !spill.is_empty() {
            let batch = spill.read_oldest(Capacity { events: 3, ..LARGE }).unwrap();
            spill.remove(&batch).unwrap();
            events.extend(batch.events);
            unreadable += batch.unreadable;
        }
        (events, unreadable)
    }

    #[test]
    fn events_keep_their_order_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<Event> = (0..20).map(started).collect();

        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events[..7]).unwrap();
        spill.append(&events[7..12]).unwrap();
        drop(spill);
        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events[12..]).unwrap();

        assert_eq!(all(&mut spill), (events, 0));
        assert_eq!(spill.bytes(), 0);
        assert_eq!(fs::read_dir(folder.path().join("0")).unwrap().count(), 1, "only the lock");
    }

    #[test]
    fn space_is_freed_file_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = "x".repeat(300 * 1024);
        let events: Vec<Event> = (0..12).map(|part| printed(1, part, &text)).collect();

        let mut spill = Spill::open(folder.path(), 5 * 1024 * 1024).unwrap();
        for event in &events {
            spill.append(std::slice::from_ref(event)).unwrap();
        }
        let files = spill.files.len();
        let full = spill.append(&events).unwrap();
        let first = spill.read_oldest(Capacity { events: 6, ..LARGE }).unwrap();
        spill.remove(&first).unwrap();

        assert_eq!(files, 3);
        assert_eq!(full, [Importance::Output; 12]);
        assert_eq!(spill.append(&events[..6]).unwrap(), []);
        assert_eq!(first.events, events[..6]);
        assert_eq!(all(&mut spill).0, [&events[6..], &events[..6]].concat());
    }

    #[test]
    fn torn_and_damaged_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<Event> = (0..5).map(started).collect();
        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events).unwrap();
        drop(spill);
        let path = folder.path().join("0/00000001.events");
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 10);
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 50;
        bytes[second] ^= 0xff;
        fs::write(&path, bytes).unwrap();

        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events[4..]).unwrap();

        let kept = [&events[..1], &events[2..4], &events[4..]].concat();
        assert_eq!(all(&mut spill), (kept, 2));
    }

    #[test]
    fn large_events_are_read_in_small_batches() {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<Event> = (0..7)
            .map(|part| printed(1, part, &"x".repeat(if part == 3 { 90_000 } else { 9_000 })))
            .collect();
        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events).unwrap();

        let mut batches = Vec::new();
        while !spill.is_empty() {
            let batch = spill.read_oldest(Capacity { events: 9, bytes: 25_000 }).unwrap();
            spill.remove(&batch).unwrap();
            batches.push(batch.events);
        }

        let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1, 2, 1]);
        assert_eq!(batches.concat(), events);
    }

    #[test]
    fn reserved_space_is_for_ends_and_full_spill_rejects_batch() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::open(folder.path(), 40_000).unwrap();
        let text = "x".repeat(1000);
        let mut kept = [0; 4];

        for number in 0..200 {
            let attempt = [started(number), printed(number, 0, &text), done(number)];
            let Ok(rejected) = spill.append(&attempt) else { break };
            for event in attempt {
                kept[Importance::of(&event) as usize] += 1;
            }
            for worth in rejected {
                kept[worth as usize] -= 1;
            }
        }
        let before = spill.bytes();
        let full = spill.append(&[started(500), done(500)]);

        let [output, starts, ends, _] = kept;
        assert!(output >= 10 && starts > output && ends > starts, "{kept:?}");
        assert!(matches!(full, Err(SpillError::Full { .. })), "{full:?}");
        assert_eq!(spill.bytes(), before);
        assert_eq!(all(&mut spill).0.len(), kept.iter().sum::<usize>());
    }

    #[test]
    fn spill_files_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("below/history");
        let mut spill = Spill::open(&folder, LIMIT).unwrap();
        spill.append(&[started(1)]).unwrap();

        let mode =
            |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".."), mode(""), mode("0")), (0o700, 0o700, 0o700));
        assert_eq!((mode("0/lock"), mode("0/00000001.events")), (0o600, 0o600));

        drop(spill);
        fs::set_permissions(folder.join("0"), Permissions::from_mode(0o755)).unwrap();
        Spill::open(&folder, LIMIT).unwrap();
        assert_eq!(mode("0"), 0o700, "tightened");
    }

    #[test]
    fn processes_use_own_slots_and_adopt_abandoned_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Spill::open(folder.path(), LIMIT).unwrap();
        let mut other = Spill::open(folder.path(), LIMIT).unwrap();
        one.append(&[started(1)]).unwrap();
        other.append(&[started(2)]).unwrap();
        assert_eq!(other.read_oldest(LARGE).unwrap().events, [started(2)]);

        drop((one, other));
        let mut both = Spill::open(folder.path(), LIMIT).unwrap();

        assert_eq!(all(&mut both).0, [started(1), started(2)]);
    }
}
