//! The databases that history is kept in, one for each registry that has any, and the line to each.
//!
//! A line is opened when it is first asked for. One that does not open is left alone for a moment, so that nobody waits for it again and again. Those from
//! flags and the configuration file are fixed. An administrator may add others, if that is switched on: only to hosts on the list, and nothing that reads files
//! of this machine.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use elasticjob::{
    history::{HistoryUrl, Run, Store, StoreError},
    runtime::{Clock, Monotonic, Tasks},
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::news;
use crate::api::{
    files,
    problem::{Code, Problem},
    registries::{Adding, matches},
};

/// How long a request waits for a database to open.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one that did not open is left alone.
const PAUSE: Duration = Duration::from_secs(5);
/// How many runs a listener may be behind.
const BACKLOG: usize = 1_024;

/// All of them, by registry.
#[derive(Debug)]
pub(crate) struct Books {
    by_registry: RwLock<BTreeMap<String, Arc<Book>>>,
    adding: Adding,
    file: Option<PathBuf>,
    clock: Arc<dyn Clock>,
}

/// The history of a registry.
#[derive(Debug)]
pub(crate) struct Book {
    /// Whose.
    pub(crate) registry: String,
    pub(crate) url: HistoryUrl,
    /// As it was given; with passwords.
    text: String,
    /// Whether it was added while the console ran.
    pub(crate) is_added: bool,
    line: tokio::sync::Mutex<Line>,
    /// Runs that are new or changed; nothing where some may have been missed.
    pub(super) news: broadcast::Sender<Option<Arc<Run>>>,
    /// Who looks for them; nobody before somebody listens.
    pub(super) reporter: Mutex<Option<Tasks>>,
}

#[derive(Debug, Default)]
enum Line {
    #[default]
    Idle,
    Open(Store),
    Down(Monotonic, Problem),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Filed {
    histories: BTreeMap<String, String>,
}

impl Books {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        adding: Adding,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let mut books = BTreeMap::new();
        for (registry, url) in named {
            let book = Book::new(registry, url, false)?;
            if books.insert(registry.clone(), Arc::new(book)).is_some() {
                let text = format!("the history of registry {registry} is named twice");
                return Err(Problem::invalid("history", text));
            }
        }
        let cannot = |error: io::Error| {
            let text = format!("cannot read the file of added histories: {error}");
            Problem::new(Code::Internal, text)
        };
        if adding.is_on
            && let Some(path) = file.as_ref().filter(|path| path.exists())
        {
            let filed: Filed = serde_json::from_slice(&fs::read(path).map_err(cannot)?)
                .map_err(|error| cannot(error.into()))?;
            for (registry, url) in filed.histories {
                let book = Book::new(&registry, &url, true)?;
                books.entry(registry).or_insert_with(|| Arc::new(book));
            }
        }
        Ok(Self { by_registry: RwLock::new(books), adding, file, clock })
    }

    pub(crate) fn all(&self) -> Vec<Arc<Book>> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn get(&self, registry: &str) -> Option<Arc<Book>> {
        self.read().get(registry).cloned()
    }

    pub(crate) fn adding(&self) -> &Adding {
        &self.adding
    }

    /// The history of a registry, open.
    pub(crate) async fn of(&self, registry: &str) -> Result<Store, Problem> {
        let book = self.get(registry).ok_or_else(|| none(registry))?;
        book.store(&*self.clock).await
    }

    /// Runs of a registry that are new or changed, from now on; nothing if it has no history.
    pub(crate) fn listen(&self, registry: &str) -> Option<broadcast::Receiver<Option<Arc<Run>>>> {
        let book = self.get(registry)?;
        let news = book.news.subscribe();
        let mut reporter = book.reporter.lock().unwrap_or_else(PoisonError::into_inner);
        if reporter.is_none() {
            let mut tasks = Tasks::new();
            tasks.spawn(news::report(Arc::downgrade(&book), Arc::clone(&self.clock)));
            *reporter = Some(tasks);
        }
        Some(news)
    }

    /// What an administrator gave, if it may be looked at.
    pub(crate) fn check(&self, text: &str) -> Result<HistoryUrl, Problem> {
        if !self.adding.is_on {
            return Err(Problem::new(
                Code::Refused,
                "histories cannot be added while this console runs; hint: name it with --history, or set addHistories in the configuration file",
            ));
        }
        let host = host(text)?;
        let url = parsed(text)?;
        if !self.adding.hosts.iter().any(|allowed| matches(allowed, host)) {
            let text = format!(
                "{host} is not on the list of hosts; hint: addHistories.hosts in the configuration file names them"
            );
            return Err(Problem::invalid("url", text));
        }
        Ok(url)
    }

    /// Adds one for good.
    pub(crate) fn add(&self, registry: &str, url: &str) -> Result<Arc<Book>, Problem> {
        self.check(url)?;
        let book = Arc::new(Book::new(registry, url, true)?);
        let mut books = self.by_registry.write().unwrap_or_else(PoisonError::into_inner);
        if books.contains_key(registry) {
            let text =
                format!("registry {registry} has a history already; hint: remove that one first");
            return Err(Problem::new(Code::Conflict, text).of("registry"));
        }
        books.insert(registry.to_owned(), Arc::clone(&book));
        self.keep(&books)?;
        Ok(book)
    }

    /// Takes one away that was added. The database stays as it is.
    pub(crate) fn remove(&self, registry: &str) -> Result<(), Problem> {
        let mut books = self.by_registry.write().unwrap_or_else(PoisonError::into_inner);
        match books.get(registry) {
            None => return Err(none(registry)),
            Some(book) if !book.is_added => {
                let text = format!(
                    "the history of {registry} is from the command line or the configuration file; hint: take it away there"
                );
                return Err(Problem::new(Code::Refused, text));
            }
            Some(_) => books.remove(registry),
        };
        self.keep(&books)
    }

    /// The same if there is one: what is added under the name of a registry later is another registry.
    pub(crate) fn forget(&self, registry: &str) -> Result<(), Problem> {
        match self.get(registry) {
            Some(book) if book.is_added => self.remove(registry),
            _ => Ok(()),
        }
    }

    fn keep(&self, books: &BTreeMap<String, Arc<Book>>) -> Result<(), Problem> {
        let Some(path) = &self.file else { return Ok(()) };
        let added = books.values().filter(|book| book.is_added);
        let histories = added.map(|book| (book.registry.clone(), book.text.clone())).collect();
        files::replace(path, &Filed { histories })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<Book>>> {
        self.by_registry.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn new(registry: &str, text: &str, is_added: bool) -> Result<Self, Problem> {
        Ok(Self {
            registry: registry.to_owned(),
            url: parsed(text)?,
            text: text.to_owned(),
            is_added,
            line: tokio::sync::Mutex::default(),
            news: broadcast::Sender::new(BACKLOG),
            reporter: Mutex::new(None),
        })
    }

    /// The database, open.
    pub(crate) async fn store(&self, clock: &dyn Clock) -> Result<Store, Problem> {
        let mut line = self.line.lock().await;
        match &*line {
            Line::Open(store) => return Ok(store.clone()),
            Line::Down(since, problem) if clock.monotonic().saturating_since(*since) < PAUSE => {
                return Err(problem.clone());
            }
            Line::Down(..) | Line::Idle => {}
        }
        match opened(&self.url, clock).await {
            Ok(store) => {
                *line = Line::Open(store.clone());
                Ok(store)
            }
            Err(problem) => {
                let problem = problem.after(PAUSE.as_secs());
                *line = Line::Down(clock.monotonic(), problem.clone());
                Err(problem)
            }
        }
    }

    /// Whether it is open, and why not.
    pub(crate) fn state(&self) -> (bool, Option<String>) {
        match self.line.try_lock().as_deref() {
            Ok(Line::Open(_)) => (true, None),
            Ok(Line::Down(_, problem)) => (false, Some(problem.detail.clone())),
            Ok(Line::Idle) | Err(_) => (false, None),
        }
    }
}

/// Opens a database, if it does so soon. A file that is not there is not made.
pub(crate) async fn opened(url: &HistoryUrl, clock: &dyn Clock) -> Result<Store, Problem> {
    if url.file().is_some_and(|file| !file.exists()) {
        return Err(Problem::new(
            Code::Unreachable,
            format!("there is no {url}; hint: elasticjob run and elasticjob dev write it"),
        ));
    }
    tokio::select! {
        store = Store::open(url) => Ok(store?),
        () = clock.sleep_until(clock.monotonic() + PATIENCE) => Err(Problem::new(
            Code::Unreachable,
            format!("history in {url} does not answer; hint: is the server running?"),
        )),
    }
}

/// There is no history there.
pub(crate) fn none(registry: &str) -> Problem {
    Problem::new(
        Code::NoHistory,
        format!(
            "registry {registry} has no history here; hint: elasticjob console --history {registry}=URL, or POST /api/v1/histories"
        ),
    )
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            // What was given is named by its field.
            StoreError::Url { problem, hint } => {
                Self::new(Code::Invalid, format!("{problem}; hint: {hint}"))
            }
            _ => Self::new(Code::Unreachable, error.to_string()),
        }
    }
}

fn parsed(text: &str) -> Result<HistoryUrl, Problem> {
    text.parse().map_err(|error: StoreError| Problem::from(error).of("url"))
}

/// The host a database is on, in a URL that says nothing else than where and who: no socket, no file, no other host behind the question mark.
fn host(text: &str) -> Result<&str, Problem> {
    let wrong = |text: &str| {
        let hint = "postgres://user:password@host:5432/database or mysql://…, and at most sslmode or ssl-mode";
        Problem::invalid("url", format!("{text}; hint: {hint}"))
    };
    if text.chars().any(|each| !each.is_ascii_graphic() || "#\\".contains(each)) {
        return Err(wrong("there is a character in it that does not belong there"));
    }
    let (scheme, rest) =
        text.split_once("://").ok_or_else(|| wrong("a database on a server is wanted"))?;
    if !["postgres", "postgresql", "mysql", "mariadb"].contains(&scheme) {
        return Err(wrong("a database on a server is wanted"));
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        if !["sslmode", "ssl-mode"].contains(&name) {
            return Err(wrong("not every parameter can be given here"));
        }
    }
    let authority = place.split('/').next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    let host = match address.strip_prefix('[').and_then(|address| address.split_once(']')) {
        Some((host, _)) => host,
        None => address.split(':').next().unwrap_or_default(),
    };
    let is_plain = host.chars().all(|each| each.is_ascii_alphanumeric() || ".-_:".contains(each));
    if host.is_empty() || !is_plain {
        return Err(wrong("it names no host"));
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use elasticjob::runtime::SystemClock;

    use super::*;

    fn open(adding: Adding) -> Books {
        Books::open(&[], adding, None, Arc::new(SystemClock)).unwrap()
    }

    #[test]
    fn only_what_is_on_the_list_can_be_added() {
        let hosts = vec!["db1".to_owned(), "*.db.example.com".to_owned()];
        let books = open(Adding { is_on: true, hosts });

        for url in [
            "postgres://jane:x@db1:5432/h",
            "mysql://a.db.example.com/h",
            "postgres://jane:a@b@db1/h?sslmode=require",
        ] {
            assert!(books.check(url).is_ok(), "{url}");
        }
        for url in [
            "sqlite:/etc/passwd",
            "sqlite::memory:",
            "postgres://169.254.169.254/h",
            "postgres://db1@evil/h",
            "postgres://db1/h?host=/var/run/postgresql",
            "postgres://db1/h?hostaddr=10.0.0.1",
            "postgres://db1/h?sslrootcert=/etc/passwd",
            "postgres://%2Fvar%2Frun/h",
            "postgres:///h",
            "mysql://db1\t.evil/h",
            "mysql://db1/h#@evil",
            "jdbc:mysql://db1/h",
        ] {
            let problem = books.check(url).unwrap_err();
            let told = (problem.code, problem.field.as_deref());
            assert_eq!(told, (Code::Invalid, Some("url")), "{url}");
        }
        let off = open(Adding::default()).check("postgres://db1/h").unwrap_err();
        assert_eq!(off.code, Code::Refused);
    }
}
