//! Who changed what, when: every change that was asked for here, also those that came to nothing, and what was refused.
//!
//! One line of JSON each, in a file that is only ever added to. An entry is in memory at once and on disk when it was [kept](Audit::keep), which a change waits
//! for before it is answered. If the file cannot be written, that is said loudly (log, `/readyz`, every page of the audit), changes go on, and what was not
//! written is written as soon as that is possible again. When the file has grown large it is put aside under the number of its last entry, and a new one is
//! begun; old ones are kept for [`AGE`], the newest [`OLD`] of them. What is long in an entry is [cut](cut), so that nobody can push others out.

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

use super::truncate::cut;
use crate::http::paging::Order;

/// How many entries can be looked at, and how many bytes of them.
const KEPT: (usize, usize) = (10_000, 16 * 1024 * 1024);
/// How large a file may grow before a new one is begun.
const LARGE: u64 = 64 * 1024 * 1024;
/// How many old files there are at most.
const OLD: usize = 16;
/// How old they may be.
const AGE: SignedDuration = SignedDuration::from_hours(400 * 24);

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
    pub(crate) asked: Value,
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
    pub(crate) fn of_login(
        at: Timestamp,
        username: &str,
        via: &str,
        address: Option<String>,
    ) -> Self {
        let author = Author { username: username.to_owned(), via: via.to_owned(), address };
        Self::by(author, at, "login")
    }

    /// One that is to be filled in.
    pub(crate) fn by(author: Author, at: Timestamp, action: &str) -> Self {
        Self {
            id: 0,
            at,
            username: author.username,
            via: author.via,
            address: author.address,
            registry: None,
            action: action.to_owned(),
            target: None,
            asked: Value::Null,
            result: Value::Null,
            problem: None,
        }
    }
}

/// The record.
#[derive(Debug)]
pub(crate) struct Audit {
    file: Option<PathBuf>,
    kept: Mutex<Kept>,
    /// Whoever writes to the file holds it.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    /// Each with how long it is.
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
    /// Lines that are not on disk yet.
    unwritten: VecDeque<Vec<u8>>,
    /// Why not, if that was tried.
    problem: Option<String>,
}

impl Audit {
    /// Goes on where the file ends; without a file, in memory alone.
    pub(crate) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let mut kept = Kept::default();
        if let Some(file) = &file {
            let newest = old_files(file)?.pop().map(|(_, path)| path);
            for path in newest.iter().chain([file]).filter(|path| path.exists()) {
                for line in BufReader::new(File::open(path)?).split(b'\n') {
                    let line = line?;
                    // A line may be half written, if the machine went down or the disk was full.
                    let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
                    kept.push(entry, line.len());
                }
            }
        }
        Ok(Self { file, kept: Mutex::new(kept), writing: tokio::sync::Mutex::default() })
    }

    /// Adds an entry; its number is given here. It is on disk once it was [kept](Self::keep).
    pub(crate) fn add(&self, mut entry: Entry) {
        cut(&mut entry);
        let mut kept = self.lock();
        entry.id = kept.last + 1;
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        let length = line.len();
        if self.file.is_some() {
            line.push(b'\n');
            kept.unwritten.push_back(line);
            if kept.unwritten.len() > KEPT.0 {
                kept.unwritten.pop_front();
                tracing::error!(
                    "the audit file cannot be written for so long that an entry is lost"
                );
            }
        }
        kept.push(entry, length);
    }

    /// Whether there are entries that are not on disk.
    pub(crate) fn is_behind(&self) -> bool {
        !self.lock().unwritten.is_empty()
    }

    /// Why entries are not on disk.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Has all entries on disk, or says why they are not.
    pub(crate) async fn keep(&self) {
        let Some(path) = self.file.clone() else { return };
        let _turn = self.writing.lock().await;
        let (lines, last) = {
            let mut kept = self.lock();
            (std::mem::take(&mut kept.unwritten), kept.last)
        };
        let Some(at) = self.newest().filter(|_| !lines.is_empty()) else { return };
        let bytes: Vec<u8> = lines.iter().flatten().copied().collect();
        let before = last.saturating_sub(lines.len() as u64);
        let written = spawn_blocking(move || append(&path, &bytes, before, LARGE, at)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut kept = self.lock();
        if let Err(error) = &written {
            tracing::error!(%error, entries = lines.len(), "changes cannot be written to the audit file");
            for line in lines.into_iter().rev() {
                kept.unwritten.push_front(line);
            }
        }
        kept.problem =
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
        let kept = self.lock();
        let all = kept.entries.iter().map(|(entry, _)| entry);
        let mut wanted: Vec<&Entry> = all.filter(|entry| wanted(entry)).collect();
        if order == Order::Desc {
            wanted.reverse();
        }
        let page = wanted.iter().skip(skip).take(count).map(|entry| (*entry).clone());
        (wanted.len(), page.collect())
    }

    /// When the newest entry was made.
    fn newest(&self) -> Option<Timestamp> {
        self.lock().entries.back().map(|(entry, _)| entry.at)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing under this lock panics half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, entry: Entry, length: usize) {
        self.last = self.last.max(entry.id);
        self.bytes += length;
        self.entries.push_back((entry, length));
        while self.entries.len() > KEPT.0 || self.bytes > KEPT.1 {
            let Some((_, length)) = self.entries.pop_front() else { break };
            self.bytes -= length;
        }
    }
}

/// Adds lines to a file, which is put aside if it is large; `before` is the number of its last entry.
fn append(path: &Path, lines: &[u8], before: u64, large: u64, now: Timestamp) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() > large) {
        fs::rename(path, path.with_extension(format!("{before:012}.jsonl")))?;
        forget(path, now)?;
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
fn forget(path: &Path, now: Timestamp) -> io::Result<()> {
    let files = old_files(path)?;
    let too_many = files.len().saturating_sub(OLD);
    for (place, (_, file)) in files.iter().enumerate() {
        let written = fs::metadata(file)?.modified()?;
        let age = Timestamp::try_from(written).map(|written| now.duration_since(written));
        if place < too_many || age.is_ok_and(|age| age > AGE) {
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
        Entry::of_login(at(), username, "login", None)
    }

    fn names(audit: &Audit) -> Vec<String> {
        audit
            .page(Order::Desc, 0, 100, |_| true)
            .1
            .into_iter()
            .map(|entry| entry.username)
            .collect()
    }

    #[tokio::test]
    async fn a_line_that_was_half_written_hides_no_other() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(path.clone())).unwrap();
        audit.add(entry("ann"));
        audit.keep().await;
        let half = "{\"id\":2,\"username\":\"\u{4f60}".as_bytes();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&half[..half.len() - 1]).unwrap();

        let audit = Audit::open(Some(path.clone())).unwrap();
        audit.add(entry("bob"));
        audit.keep().await;

        assert_eq!(names(&Audit::open(Some(path)).unwrap()), ["bob", "ann"]);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_said_and_written_later() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("gone/audit.jsonl");
        let audit = Audit::open(Some(path.clone())).unwrap();
        audit.add(entry("ann"));
        audit.keep().await;
        assert!(audit.problem().is_some() && audit.is_behind());
        assert_eq!(names(&audit), ["ann"], "it can be looked at all the same");

        fs::create_dir(path.parent().unwrap()).unwrap();
        audit.add(entry("bob"));
        audit.keep().await;

        assert_eq!((audit.problem(), audit.is_behind()), (None, false));
        assert_eq!(names(&Audit::open(Some(path)).unwrap()), ["bob", "ann"]);
    }

    #[test]
    fn a_large_file_is_put_aside_and_the_newest_of_them_are_kept() {
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
        let audit = Audit::open(Some(path)).unwrap();
        assert_eq!(
            audit.page(Order::Desc, 0, 10, |_| true).0,
            2,
            "of the newest old one, and the new one"
        );
        audit.add(entry("bob"));
        assert_eq!(audit.page(Order::Desc, 0, 1, |_| true).1[0].id, 41);
    }
}

/// The words of `audit.jsonl`, frozen: `tests/golden/README.md` says why. The names of actions are frozen where the console is asked for them.
#[cfg(test)]
mod golden {
    use serde_json::json;
    use tempfile::TempDir;
    use testbed::golden;

    use super::*;

    fn entry() -> Entry {
        Entry {
            id: 1,
            at: "2026-11-15T06:36:07Z".parse().unwrap(),
            username: "ann".to_owned(),
            via: "session".to_owned(),
            address: Some("10.0.0.7".to_owned()),
            registry: Some("shop".to_owned()),
            action: "job.disable".to_owned(),
            target: Some("settle".to_owned()),
            asked: json!({ "what": "was sent" }),
            result: json!({ "what": "became of it" }),
            problem: Some("why not".to_owned()),
        }
    }

    #[tokio::test]
    async fn entries_are_stored_in_the_same_words() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(path.clone())).unwrap();
        audit.add(entry());
        audit.keep().await;

        let stored = golden!("audit.jsonl", fs::read_to_string(&path).unwrap());

        fs::write(&path, stored).unwrap();
        let read = Audit::open(Some(path)).unwrap().page(Order::Asc, 0, 10, |_| true);
        assert_eq!(read, (1, vec![entry()]));
    }

    #[test]
    fn files_that_are_put_aside_keep_their_names() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        for before in [0, 41] {
            append(&path, b"{}\n", before, 1, entry().at).unwrap();
        }

        let files = fs::read_dir(folder.path()).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap() + "\n");
        let mut files: Vec<String> = files.collect();
        files.sort_unstable();
        golden!("audit-files.txt", files.concat());

        assert_eq!(old_files(&path).unwrap()[0].0, 41);
    }
}
