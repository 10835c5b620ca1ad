//! The audit trail: every requested change, including failed ones, every login, and refused requests.
//!
//! Each entry is a line of JSON in an append-only file. An entry is in memory at once and on disk after a [flush](AuditTrail::flush), which a
//! change waits for before it is answered. If the file cannot be written, this is reported in the log, by `/readyz` and on every page of the
//! audit; changes go on, and the entries are written as soon as possible. A file that has grown too large is renamed after the id of its last
//! entry; old files are kept up to [`MAX_FILE_AGE`], the newest [`MAX_OLD_FILES`] of them. Long values are [truncated](truncate_entry), so that
//! one user cannot push out the entries of others.

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

use super::{mask::mask_entry, truncate::truncate_entry};
use crate::http::paging::Order;

/// Entries and bytes that are kept in memory and can be queried.
const MEMORY_LIMIT: (usize, usize) = (10_000, 16 * 1024 * 1024);
/// Size at which a new file is started.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
const MAX_OLD_FILES: usize = 16;
const MAX_FILE_AGE: SignedDuration = SignedDuration::from_hours(400 * 24);

/// A change, a login, or an attempt at one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Consecutive number, starting at 1 when the console first ran.
    pub(crate) id: u64,
    pub(crate) at: Timestamp,
    /// Username; for a failed login the name that was typed.
    pub(crate) username: String,
    /// How the user authenticated: `session`, `token NAME`, `accessToken`, `basic`, `login`, `oidc`.
    pub(crate) via: String,
    /// Address of the client.
    pub(crate) address: Option<String>,
    /// The registry; null for changes of the console itself.
    pub(crate) registry: Option<String>,
    /// For example `job.disable` or `account.put`.
    pub(crate) action: String,
    /// What the action applies to: a job, a server, an account.
    pub(crate) target: Option<String>,
    /// The request, secrets masked. Long values are truncated to their beginning, length and SHA-256.
    #[serde(rename = "asked")]
    pub(crate) request: Value,
    /// The result.
    pub(crate) result: Value,
    /// Why the action failed.
    pub(crate) problem: Option<String>,
}

/// The user that an entry is attributed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) username: String,
    pub(crate) via: String,
    pub(crate) address: Option<String>,
}

impl Entry {
    /// A login or a failed attempt.
    pub(crate) fn login(at: Timestamp, username: &str, via: &str, address: Option<String>) -> Self {
        let author = Author { username: username.to_owned(), via: via.to_owned(), address };
        Self::new(author, at, "login")
    }

    /// An entry without details.
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

#[derive(Debug)]
pub(crate) struct AuditTrail {
    file: Option<PathBuf>,
    state: Mutex<TrailState>,
    /// Held while writing to the file.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct TrailState {
    last_id: u64,
    /// Entries with their length in bytes.
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
    /// Lines that are not on disk.
    unwritten: VecDeque<Vec<u8>>,
    /// Why the last write failed.
    problem: Option<String>,
}

impl AuditTrail {
    /// Continues an existing file; without a file, entries are in memory only.
    pub(crate) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let mut state = TrailState::default();
        if let Some(file) = &file {
            let newest = old_files(file)?.pop().map(|(_, path)| path);
            for path in newest.iter().chain([file]).filter(|path| path.exists()) {
                for line in BufReader::new(File::open(path)?).split(b'\n') {
                    let line = line?;
                    // A line may be incomplete after a crash or when the disk was full.
                    let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
                    state.push(entry, line.len());
                }
            }
        }
        Ok(Self { file, state: Mutex::new(state), writing: tokio::sync::Mutex::default() })
    }

    /// Adds an entry and assigns its id. It is on disk after a [flush](Self::flush).
    pub(crate) fn add(&self, mut entry: Entry) {
        mask_entry(&mut entry);
        truncate_entry(&mut entry);
        let mut state = self.lock();
        entry.id = state.last_id + 1;
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        let length = line.len();
        if self.file.is_some() {
            line.push(b'\n');
            state.unwritten.push_back(line);
            if state.unwritten.len() > MEMORY_LIMIT.0 {
                state.unwritten.pop_front();
                tracing::error!("audit entry lost: too many unwritten entries");
            }
        }
        state.push(entry, length);
    }

    /// Whether some entries are not on disk.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.lock().unwritten.is_empty()
    }

    /// Why the last write failed, if it did.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Writes all pending entries to disk; a failure is reported by [`problem`](Self::problem).
    pub(crate) async fn flush(&self) {
        let Some(path) = self.file.clone() else { return };
        let _guard = self.writing.lock().await;
        let (lines, last) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.unwritten), state.last_id)
        };
        let Some(at) = self.newest_at().filter(|_| !lines.is_empty()) else { return };
        let bytes: Vec<u8> = lines.iter().flatten().copied().collect();
        let before = last.saturating_sub(lines.len() as u64);
        let written =
            spawn_blocking(move || append(&path, &bytes, before, MAX_FILE_BYTES, at)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        let mut state = self.lock();
        if let Err(error) = &written {
            tracing::error!(%error, entries = lines.len(), "cannot write audit file");
            for line in lines.into_iter().rev() {
                state.unwritten.push_front(line);
            }
        }
        state.problem = written.err().map(|error| format!("cannot write the audit file: {error}"));
    }

    /// One page of the matching entries, and how many match.
    pub(crate) fn page(
        &self,
        order: Order,
        skip: usize,
        count: usize,
        wanted: impl Fn(&Entry) -> bool,
    ) -> (usize, Vec<Entry>) {
        let state = self.lock();
        let all = state.entries.iter().map(|(entry, _)| entry);
        let mut wanted: Vec<&Entry> = all.filter(|entry| wanted(entry)).collect();
        if order == Order::Desc {
            wanted.reverse();
        }
        let page = wanted.iter().skip(skip).take(count).map(|entry| (*entry).clone());
        (wanted.len(), page.collect())
    }

    fn newest_at(&self) -> Option<Timestamp> {
        self.lock().entries.back().map(|(entry, _)| entry.at)
    }

    fn lock(&self) -> MutexGuard<'_, TrailState> {
        // No code panics while holding this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrailState {
    fn push(&mut self, entry: Entry, length: usize) {
        self.last_id = self.last_id.max(entry.id);
        self.bytes += length;
        self.entries.push_back((entry, length));
        while self.entries.len() > MEMORY_LIMIT.0 || self.bytes > MEMORY_LIMIT.1 {
            let Some((_, length)) = self.entries.pop_front() else { break };
            self.bytes -= length;
        }
    }
}

/// Appends lines. A file over `max_bytes` is renamed first; `before` is the id of its last entry.
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
        // Terminates an incomplete line, so that it spoils no other.
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

/// Old files by the id of their last entry, oldest first.
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

/// Removes old files that are too many or too old.
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
        assert_eq!(names(&audit), ["ann"], "entries in memory are still listed");

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
            "entries of the newest old file and of the current one"
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
            request: json!({ "what": "was sent" }),
            result: json!({ "what": "became of it" }),
            problem: Some("why not".to_owned()),
        }
    }

    #[tokio::test]
    async fn entries_keep_their_stored_words() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = AuditTrail::open(Some(path.clone())).unwrap();
        audit.add(entry());
        audit.flush().await;

        let stored = golden!("audit.jsonl", fs::read_to_string(&path).unwrap());

        fs::write(&path, stored).unwrap();
        let read = AuditTrail::open(Some(path)).unwrap().page(Order::Asc, 0, 10, |_| true);
        assert_eq!(read, (1, vec![entry()]));
    }

    #[test]
    fn rotated_files_keep_their_names() {
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
