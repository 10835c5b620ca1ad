//! Where events wait while their sink cannot keep them: files of lines, first in first out, up to a limit.
//!
//! ```text
//!   folder/0/lock            held by the process whose slot it is
//!          0/00000007.events   being read: deleted when all of it is kept
//!          0/00000008.events   being written
//!          1/…                 another process of this machine
//! ```
//!
//! * **A slot belongs to one process**, by a lock that ends with it. Whoever starts takes the first that is free, and what it finds in other free ones.
//! * **What was there before is only read**: a line that a crash tore is the last of its file, and skipped.
//! * **A file is forgotten when all of it is kept.** After a crash some events of one file are told twice, which a sink can take.
//! * **The last of the room is for what is worth most**: output may take three quarters of it, beginnings seven eighths, so that a long outage does not cost
//!   the ends of runs for the sake of what they printed.
//! * What a process wrote outlives its death, not a power cut: that would take an fsync for each batch.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    line,
    queue::Worth,
    weight::{Room, weight},
};
use crate::history::Event;

/// A file is closed when it is this long.
const LONG: u64 = 1024 * 1024;

/// More processes than this do not share a folder.
const SLOTS: usize = 256;

const ENDING: &str = "events";

/// Why events could not be put there.
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
    files: VecDeque<Waiting>,
    /// How far the first of them has been read.
    offset: u64,
    /// The last of them, if it is ours to write.
    open: Option<File>,
    next: u64,
    _lock: File,
}

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    length: u64,
}

/// The oldest events.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    pub(super) events: Vec<Event>,
    /// Lines among them that were torn or damaged.
    pub(super) unreadable: u64,
    /// Files that are read to their end.
    files: usize,
    /// How far the one after them is read.
    offset: u64,
}

impl Spill {
    /// Takes a slot in this folder, and what waits there and in slots that nobody has.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        create_folder(folder)?;
        let mut own: Option<Self> = None;
        for slot in 0..SLOTS {
            let path = folder.join(slot.to_string());
            if own.is_some() && !path.exists() {
                break;
            }
            create_folder(&path)?;
            let lock = private().create(true).truncate(true).open(path.join("lock"))?;
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
        own.ok_or_else(|| io::Error::other(format!("{SLOTS} processes use it already")))
    }

    fn of(slot: PathBuf, limit: u64, lock: File) -> io::Result<Self> {
        let files = waiting(&slot)?;
        let next = files.back().and_then(|file| number(&file.path)).map_or(1, |last| last + 1);
        Ok(Self { slot, limit, files, offset: 0, open: None, next, _lock: lock })
    }

    /// Takes over what somebody left who is gone.
    fn adopt(&mut self, slot: &Path) -> io::Result<()> {
        for Waiting { path, length } in waiting(slot)? {
            let ours = self.next_path();
            fs::rename(path, &ours)?;
            self.files.push_back(Waiting { path: ours, length });
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum::<u64>().saturating_sub(self.offset)
    }

    /// Puts these at the end, but for those that only the room of others is left for: they are the answer. If there is no room for one that may take all
    /// there is, none is put there.
    pub(super) fn append(&mut self, events: &[Event]) -> Result<Vec<Worth>, SpillError> {
        let (mut text, mut left_out) = (String::new(), Vec::new());
        for event in events {
            let (line, worth) = (line::write(event), Worth::of(event));
            let room = match worth {
                Worth::Output => self.limit - self.limit / 4,
                Worth::Progress => self.limit - self.limit / 8,
                Worth::Ending | Worth::Failure => self.limit,
            };
            if self.bytes() + (text.len() + line.len()) as u64 <= room {
                text.push_str(&line);
            } else if room < self.limit {
                left_out.push(worth);
            } else {
                return Err(SpillError::Full { limit: self.limit });
            }
        }
        let length = text.len() as u64;
        if self.open.is_none() || self.files.back().is_none_or(|file| file.length >= LONG) {
            let path = self.next_path();
            self.open = Some(private().create_new(true).append(true).open(&path)?);
            self.files.push_back(Waiting { path, length: 0 });
        }
        let (Some(file), Some(waiting)) = (&mut self.open, self.files.back_mut()) else {
            return Ok(left_out);
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part of it may have been written.
            if file.set_len(waiting.length).is_err() {
                self.open = None;
            }
            return Err(error.into());
        }
        waiting.length += length;
        Ok(left_out)
    }

    /// The oldest events, as many as there is room for, and at least one. They stay until they are [forgotten](Self::forget).
    pub(super) fn oldest(&self, room: Room) -> io::Result<Oldest> {
        let mut oldest = Oldest { offset: self.offset, ..Oldest::default() };
        let mut bytes = 0;
        for waiting in &self.files {
            let file = match File::open(&waiting.path) {
                Ok(file) => file,
                // Somebody tidied up.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    oldest.files += 1;
                    oldest.offset = 0;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut file = BufReader::new(file);
            file.seek(SeekFrom::Start(oldest.offset))?;
            let mut line = Vec::new();
            while oldest.events.len() < room.events {
                line.clear();
                let length = file.read_until(b'\n', &mut line)?;
                if length == 0 {
                    break;
                }
                match line::read(line.strip_suffix(b"\n").unwrap_or(&line)) {
                    Some(event) => {
                        bytes += weight(&event);
                        if bytes > room.bytes && !oldest.events.is_empty() {
                            return Ok(oldest);
                        }
                        oldest.events.push(event);
                    }
                    None => oldest.unreadable += 1,
                }
                oldest.offset += length as u64;
            }
            if oldest.offset < waiting.length {
                break;
            }
            oldest.files += 1;
            oldest.offset = 0;
        }
        Ok(oldest)
    }

    /// These are kept elsewhere.
    pub(super) fn forget(&mut self, oldest: &Oldest) -> io::Result<()> {
        self.offset = oldest.offset;
        let files: Vec<Waiting> = self.files.drain(..oldest.files).collect();
        if self.files.is_empty() {
            self.open = None;
        }
        files.iter().try_for_each(|file| match fs::remove_file(&file.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
    }

    fn next_path(&mut self) -> PathBuf {
        let path = self.slot.join(format!("{:08}.{ENDING}", self.next));
        self.next += 1;
        path
    }
}

/// For nobody but this user: what jobs print, and why they fail, may be nobody else's business.
fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn waiting(slot: &Path) -> io::Result<VecDeque<Waiting>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(slot)? {
        let entry = entry?;
        if let Some(number) = number(&entry.path()) {
            let length = entry.metadata()?.len();
            files.push((number, Waiting { path: entry.path(), length }));
        }
    }
    files.sort_by_key(|(number, _)| *number);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

fn number(path: &Path) -> Option<u64> {
    let is_ours = path.extension()? == ENDING;
    path.file_stem()?.to_str()?.parse().ok().filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::history::recorder::fixture::{done, printed, started};

    const LIMIT: u64 = 64 * 1024 * 1024;
    const MANY: Room = Room { events: 9, bytes: 64 * 1024 * 1024 };

    fn all(spill: &mut Spill) -> (Vec<Event>, u64) {
        let (mut events, mut unreadable) = (Vec::new(), 0);
        while !spill.is_empty() {
            let oldest = spill.oldest(Room { events: 3, ..MANY }).unwrap();
            spill.forget(&oldest).unwrap();
            events.extend(oldest.events);
            unreadable += oldest.unreadable;
        }
        (events, unreadable)
    }

    #[test]
    fn what_waits_comes_out_in_the_order_it_went_in_also_after_a_restart() {
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
    fn long_waits_are_cut_into_files_and_space_comes_back_as_they_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let text = "x".repeat(300 * 1024);
        let events: Vec<Event> = (0..12).map(|part| printed(1, part, &text)).collect();

        let mut spill = Spill::open(folder.path(), 5 * 1024 * 1024).unwrap();
        for event in &events {
            spill.append(std::slice::from_ref(event)).unwrap();
        }
        let files = spill.files.len();
        let full = spill.append(&events).unwrap();
        let first = spill.oldest(Room { events: 6, ..MANY }).unwrap();
        spill.forget(&first).unwrap();

        assert_eq!(files, 3);
        assert_eq!(full, [Worth::Output; 12]);
        assert_eq!(spill.append(&events[..6]).unwrap(), []);
        assert_eq!(first.events, events[..6]);
        assert_eq!(all(&mut spill).0, [&events[6..], &events[..6]].concat());
    }

    #[test]
    fn a_torn_tail_and_a_damaged_line_are_skipped_and_nothing_else() {
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
    fn large_events_come_out_in_small_batches_and_none_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<Event> = (0..7)
            .map(|part| printed(1, part, &"x".repeat(if part == 3 { 90_000 } else { 9_000 })))
            .collect();
        let mut spill = Spill::open(folder.path(), LIMIT).unwrap();
        spill.append(&events).unwrap();

        let mut batches = Vec::new();
        while !spill.is_empty() {
            let oldest = spill.oldest(Room { events: 9, bytes: 25_000 }).unwrap();
            spill.forget(&oldest).unwrap();
            batches.push(oldest.events);
        }

        let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1, 2, 1]);
        assert_eq!(batches.concat(), events);
    }

    #[test]
    fn the_last_of_the_room_is_for_ends_and_what_is_full_takes_no_part_of_a_batch() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::open(folder.path(), 40_000).unwrap();
        let text = "x".repeat(1000);
        let mut kept = [0; 4];

        for number in 0..200 {
            let attempt = [started(number), printed(number, 0, &text), done(number)];
            let Ok(left_out) = spill.append(&attempt) else { break };
            for event in attempt {
                kept[Worth::of(&event) as usize] += 1;
            }
            for worth in left_out {
                kept[worth as usize] -= 1;
            }
        }
        let before = spill.bytes();
        let full = spill.append(&[started(500), done(500)]);

        let [output, beginnings, ends, _] = kept;
        assert!(output >= 10 && beginnings > output && ends > beginnings, "{kept:?}");
        assert!(matches!(full, Err(SpillError::Full { .. })), "{full:?}");
        assert_eq!(spill.bytes(), before);
        assert_eq!(all(&mut spill).0.len(), kept.iter().sum::<usize>());
    }

    #[test]
    fn what_waits_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("below/history");
        let mut spill = Spill::open(&folder, LIMIT).unwrap();
        spill.append(&[started(1)]).unwrap();

        let mode =
            |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".."), mode(""), mode("0")), (0o700, 0o700, 0o700));
        assert_eq!((mode("0/lock"), mode("0/00000001.events")), (0o600, 0o600));
    }

    #[test]
    fn two_processes_have_a_slot_each_and_what_one_leaves_the_next_takes() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Spill::open(folder.path(), LIMIT).unwrap();
        let mut other = Spill::open(folder.path(), LIMIT).unwrap();
        one.append(&[started(1)]).unwrap();
        other.append(&[started(2)]).unwrap();
        assert_eq!(other.oldest(MANY).unwrap().events, [started(2)]);

        drop((one, other));
        let mut both = Spill::open(folder.path(), LIMIT).unwrap();

        assert_eq!(all(&mut both).0, [started(1), started(2)]);
    }
}
