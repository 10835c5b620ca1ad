//! Who changed what, when: every change that was asked for here, also those that came to nothing.
//!
//! One line of JSON each, in a file that is only ever added to. The newest are kept in memory to be looked at; when the file has grown large it is put aside
//! as `audit.1.jsonl` and a new one is begun.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// How many entries can be looked at.
const KEPT: usize = 10_000;
/// How large a file may grow before a new one is begun.
const LARGE: u64 = 64 * 1024 * 1024;

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
    /// What was asked for, secrets masked.
    pub(crate) asked: Value,
    /// What it changed.
    pub(crate) result: Value,
    /// Why it came to nothing.
    pub(crate) problem: Option<String>,
}

impl Entry {
    /// Somebody logged in, or tried to.
    pub(crate) fn of_login(
        at: Timestamp,
        username: &str,
        via: &str,
        address: Option<String>,
    ) -> Self {
        Self {
            id: 0,
            at,
            username: username.to_owned(),
            via: via.to_owned(),
            address,
            registry: None,
            action: "login".to_owned(),
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
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    entries: VecDeque<Entry>,
}

impl Audit {
    /// Goes on where the file ends; without a file, in memory alone.
    pub(crate) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let mut kept = Kept::default();
        if let Some(file) = file.as_ref().filter(|file| file.exists()) {
            for line in BufReader::new(File::open(file)?).lines() {
                // The last line may be half written, if the machine went down.
                let Ok(entry) = serde_json::from_str::<Entry>(&line?) else { continue };
                kept.push(entry);
            }
        }
        Ok(Self { file, kept: Mutex::new(kept) })
    }

    /// Adds an entry; its number is given here.
    pub(crate) fn add(&self, mut entry: Entry) {
        let mut kept = self.lock();
        entry.id = kept.last + 1;
        if let Err(error) = self.write(&entry) {
            tracing::error!(%error, action = entry.action, "a change could not be written to the audit file");
        }
        kept.push(entry);
    }

    /// The newest first, those that are wanted, and how many there are.
    pub(crate) fn page(
        &self,
        skip: usize,
        count: usize,
        wanted: impl Fn(&Entry) -> bool,
    ) -> (usize, Vec<Entry>) {
        let kept = self.lock();
        let wanted: Vec<&Entry> = kept.entries.iter().rev().filter(|entry| wanted(entry)).collect();
        let page = wanted.iter().skip(skip).take(count).map(|entry| (*entry).clone());
        (wanted.len(), page.collect())
    }

    fn write(&self, entry: &Entry) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        if fs::metadata(path).is_ok_and(|file| file.len() > LARGE) {
            fs::rename(path, path.with_extension("1.jsonl"))?;
        }
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        file.write_all(&line)?;
        file.sync_data()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing under this lock panics half way.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, entry: Entry) {
        self.last = self.last.max(entry.id);
        self.entries.push_back(entry);
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }
}
