//! Who changed what, when: every change that was asked for here, also those that came to nothing, and what was refused.
//!
//! One line of JSON each, in a file that is only ever added to. An entry is in memory at once and on disk when it was [kept](Audit::keep), which a change waits
//! for before it is answered. If the file cannot be written, that is said loudly (log, `/readyz`, every page of the audit), changes go on, and what was not
//! written is written as soon as that is possible again. When the file has grown large it is put aside under the number of its last entry, and a new one is
//! begun; old ones are kept for [`MAX_FILE_AGE`], the newest [`MAX_OLD_FILES`] of them. What is long in an entry is [cut](cut), so that nobody can push others out.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::truncate::truncate_entry;
use crate::http::paging::Order;

/// How many entries can be looked at, and how many bytes of them.
const MEMORY_LIMIT: (usize, usize) = (10_000, 16 * 1024 * 1024);
/// How large a file may grow before a new one is begun.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How many old files there are at most.
const MAX_OLD_FILES: usize = 16;
/// How old they may be.
const MAX_FILE_AGE: SignedDuration = SignedDuration::from_hours(400 * 24);

/// One change, or the attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Counted from one, since the console first ran.
    pub(crate) id: u64,
    /// When.
    pub(crate) at: Timestamp,
    /// Who; what was typed, if nobody could be recognised.
    pub(crate) username: String,
    /// How they came in: `session`, `token NAME`, `accessToken`, `basic`, `login`, `oidc`.
    pub(crate) via: String,
    /// From where.
    pub(crate) address: Option<String>,
    /// In which registry; none if it is about the console itself.
    pub(crate) registry: Option<String>,
    /// What: `job.disable`, `account.put`.
    pub(crate) action: String,
    /// On what: a job, a server, an account.
    pub(crate) target: Option<String>,
    /// What was asked for, secrets masked. What is long is cut: its beginning, its length and its SHA-256.
    #[serde(rename = "asked")]
    pub(crate) request: Value,
    /// What it changed.
    pub(crate) result: Value,
    /// Why it came to nothing.
    pub(crate) problem: Option<String>,
}

/// Who is behind an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) username: String,
    pub(crate) via: String,
    pub(crate) address: Option<String>,
}

impl Entry {
    /// Somebody logged in, or tried to.
    pub(crate) fn login(at: Timestamp, username: &str, via: &str, address: Option<String>) -> Self {
        let author = Author { username: username.to_owned(), via: via.to_owned(), address };
        Self::new(author, at, "login")
    }

    /// One that is to be filled in.
    pub(crate) fn new(author: Author, at: Timestamp, action: &str) -> Self {
        Self {
            id: 0,
            at,
            username: author.username,
            via: author.via,
            address: author.address,
            registry: None,
            action: action.to_owned(),
            target: None,
            request: Value::Null,
            result: Value::Null,
            problem: None,
        }
    }
}

/// The record.
#[derive(Debug)]
pub(crate) struct AuditTrail {
    file: Option<PathBuf>,
    entries: Mutex<Entries>,
    /// Whoever writes to the file holds it.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Entries {
    last: u64,
    /// Each with how long it is.
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
    /// Lines that are not on disk yet.
    unwritten: VecDeque<Vec<u8>>,
    /// Why not, if that was tried.
    problem: Option<String>,
}

impl AuditTrail {
    /// Goes on where the file ends; without a file, in memory alone.
    pub(crate) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let mut entries = Entries::default();
        if let Some(file) = &file {
            let newest = old_files(file)?.pop().map(|(_, path)| path);
            for path in newest.iter().chain([file]).filter(|path| path.exists()) {
                for line in BufReader::new(File::open(path)?).split(b'\n') {
                    let line = line?;
                    // A line may be half written, if the machine went down or the disk was full.
                    let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
                    entries.push(entry, line.len());
                }
            }
        }
        Ok(Self { file, entries: Mutex::new(entries), writing: tokio::sync::Mutex::default() })
    }

    /// Adds an entry; its number is given here. It is on disk once it was [kept](Self::keep).
    pub(crate) fn add(&self, mut entry: Entry) {
        truncate_entry(&mut entry);
        let mut entries = self.lock();
        entry.id = entries.last + 1;
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        let length = line.len();
        if self.file.is_some() {
            line.push(b'\n');
            entries.unwritten.push_back(line);
            if entries.unwritten.len() > MEMORY_LIMIT.0 {
                entries.unwritten.pop_front();
                tracing::error!(
                    "the audit file cannot be written for so long that an entry is lost"
                );
            }
        }
        entries.push(entry, length);
    }

    /// Whether there are entries that are not on disk.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.lock().unwritten.is_empty()
    }

    /// Why entries are not on disk.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Has all entries on disk, or says why they are not.
    pub(crate) async fn flush(&self) {
        let Some(path) = self.file.clone() else { return };
        let _turn = self.writing.lock().await;
        let (lines, last) = {
            let mut entries = self.lock();
            (std::mem::take(&mut entries.unwritten), entries.last)
        };
        let Some(at) = self.newest_at().filter(|_| !lines.is_empty()) else { return };
        let bytes: Vec<u8> = lines.iter().flatten().copied().collect();
        let before = last.saturating_sub(lines.len() as u64);
        let written =
            spawn_blocking(move || append(&path, &bytes, before, MAX_FILE_BYTES, at)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut entries = self.lock();
        if let Err(error) = &written {
            tracing::error!(%error, entries = lines.len(), "changes cannot be written to the audit file");
            for line in lines.into_iter().rev() {
                entries.unwritten.push_front(line);
            }
        }
        entries.problem =
            written.err().map(|error| format!("the audit file cannot be written: {error}"));
    }

    /// Those that are wanted, in this order of time, and how many there are.
    pub(crate) fn page(
        &self,
        order: Order,
        skip: usize,
        count: usize,
        wanted: impl Fn(&Entry) -> bool,
    ) -> (usize, Vec<Entry>) {
        let entries = self.lock();
        let all = entries.entries.iter().map(|(entry, _)| entry);
        let mut wanted: Vec<&Entry> = all.filter(|entry| wanted(entry)).collect();
        if order == Order::Desc {
            wanted.reverse();
        }
        let page = wanted.iter().skip(skip).take(count).map(|entry| (*entry).clone());
        (wanted.len(), page.collect())
    }

    /// When the newest entry was made.
    fn newest_at(&self) -> Option<Timestamp> {
        self.lock().entries.back().map(|(entry, _)| entry.at)
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Nothing under this lock panics half way.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn push(&mut self, entry: Entry, length: usize) {
        self.last = self.last.max(entry.id);
        self.bytes += length;
        self.entries.push_back((entry, length));
        while self.entries.len() > MEMORY_LIMIT.0 || self.bytes > MEMORY_LIMIT.1 {
            let Some((_, length)) = self.entries.pop_front() else { break };
            self.bytes -= length;
        }
    }
}

/// Adds lines to a file, which is put aside if it is large; `before` is the number of its last entry.
fn append(
    path: &Path,
    lines: &[u8],
    before: u64,
    max_bytes: u64,
    now: Timestamp,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() > max_bytes) {
        fs::rename(path, path.with_extension(format!("{before:012}.jsonl")))?;
        remove_old_files(path, now)?;
    }
    let mut file =
        OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    if file.metadata()?.len() > 0 {
        // What was half written stays alone on its line.
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(lines)?;
    file.sync_data()
}

/// Old files by the number of their last entry, the oldest first.
fn old_files(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(|it| it.to_str()))
    else {
        return Ok(Vec::new());
    };
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let number = file.file_name().to_str().and_then(|text| {
            let number = text.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".jsonl")?;
            number.parse().ok()
        });
        files.extend(number.map(|number| (number, file.path())));
    }
    files.sort_unstable();
    Ok(files)
}

/// Removes old files: all but the newest, and those that are too old.
fn remove_old_files(path: &Path, now: Timestamp) -> io::Result<()> {
    let files = old_files(path)?;
    let too_many = files.len().saturating_sub(MAX_OLD_FILES);
    for (index, (_, file)) in files.iter().enumerate() {
        let written = fs::metadata(file)?.modified()?;
        let age = Timestamp::try_from(written).map(|written| now.duration_since(written));
        if index < too_many || age.is_ok_and(|age| age > MAX_FILE_AGE) {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn at() -> Timestamp {
        "2026-11-15T06:36:07Z".parse().unwrap()
    }

    fn entry(username: &str) -> Entry {
        Entry::login(at(), username, "login", None)
    }

    fn names(audit: &AuditTrail) -> Vec<String> {
        audit
            .page(Order::Desc, 0, 100, |_| true)
            .1
            .into_iter()
            .map(|entry| entry.username)
            .collect()
    }

    #[tokio::test]
    async fn half_written_line_hides_no_other_entry() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = AuditTrail::open(Some(path.clone())).unwrap();
        audit.add(entry("ann"));
        audit.flush().await;
        let half = "{\"id\":2,\"username\":\"\u{4f60}".as_bytes();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&half[..half.len() - 1]).unwrap();

        let audit = AuditTrail::open(Some(path.clone())).unwrap();
        audit.add(entry("bob"));
        audit.flush().await;

        assert_eq!(names(&AuditTrail::open(Some(path)).unwrap()), ["bob", "ann"]);
    }

    #[tokio::test]
    async fn failed_write_is_reported_and_retried() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("gone/audit.jsonl");
        let audit = AuditTrail::open(Some(path.clone())).unwrap();
        audit.add(entry("ann"));
        audit.flush().await;
        assert!(audit.problem().is_some() && audit.has_unwritten());
        assert_eq!(names(&audit), ["ann"], "it can be looked at all the same");

        fs::create_dir(path.parent().unwrap()).unwrap();
        audit.add(entry("bob"));
        audit.flush().await;

        assert_eq!((audit.problem(), audit.has_unwritten()), (None, false));
        assert_eq!(names(&AuditTrail::open(Some(path)).unwrap()), ["bob", "ann"]);
    }

    #[test]
    fn large_file_is_rotated_and_the_newest_are_kept() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        let line = |id: u64| {
            let entry = Entry { id, ..entry("ann") };
            [serde_json::to_vec(&entry).unwrap(), b"\n".to_vec()].concat()
        };
        for id in 1..=40 {
            append(&path, &line(id), id - 1, 10, at()).unwrap();
        }

        let old: Vec<u64> = old_files(&path).unwrap().iter().map(|(last, _)| *last).collect();
        assert_eq!(old, (24..40).collect::<Vec<_>>());
        let audit = AuditTrail::open(Some(path)).unwrap();
        assert_eq!(
            audit.page(Order::Desc, 0, 10, |_| true).0,
            2,
            "of the newest old one, and the new one"
        );
        audit.add(entry("bob"));
        assert_eq!(audit.page(Order::Desc, 0, 1, |_| true).1[0].id, 41);
    }
}
