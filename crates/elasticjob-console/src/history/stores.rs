//! The databases that history is kept in, one for each registry that has any, and the line to each.
//!
//! A line is opened when it is first asked for. One that does not open is left alone for a moment, so that nobody waits for it again and again. What an
//! administrator adds is on hosts on the list, and nothing that reads files of this machine.

use std::{
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    history::{HistoryUrl, Run, Store, StoreError},
    runtime::{Clock, Monotonic, Tasks},
};
use tokio::sync::broadcast;

use super::news;
use crate::{
    http::problem::{Code, Problem},
    registries::catalog::{Adding, Shelf, Shelved, Tag},
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
    shelf: Shelf<Book>,
    clock: Arc<dyn Clock>,
}

impl Deref for Books {
    type Target = Shelf<Book>;

    fn deref(&self) -> &Shelf<Book> {
        &self.shelf
    }
}

/// The history of a registry, under the registry's name.
#[derive(Debug)]
pub(crate) struct Book {
    tag: Tag,
    pub(crate) url: HistoryUrl,
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

impl Books {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        adding: Adding,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        Ok(Self { shelf: Shelf::open(named, adding, file)?, clock })
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

    /// Takes one away if there is one that was added: what is added under the name of a registry later is another registry.
    pub(crate) fn forget(&self, registry: &str) -> Result<(), Problem> {
        match self.get(registry) {
            Some(book) if book.is_added => self.remove(registry),
            _ => Ok(()),
        }
    }
}

impl Deref for Book {
    type Target = Tag;

    fn deref(&self) -> &Tag {
        &self.tag
    }
}

impl Shelved for Book {
    type Url = HistoryUrl;

    const KIND: &'static str = "histories";
    const FIELD: &'static str = "registry";
    const FLAG: &'static str = "--history";
    const ADDING: &'static str = "addHistories";

    fn new(tag: Tag) -> Result<Self, Problem> {
        Ok(Self {
            url: parsed(&tag.text)?,
            tag,
            line: tokio::sync::Mutex::default(),
            news: broadcast::Sender::new(BACKLOG),
            reporter: Mutex::new(None),
        })
    }

    fn tag(&self) -> &Tag {
        &self.tag
    }

    fn addable(text: &str) -> Result<(HistoryUrl, Vec<String>), Problem> {
        let host = host(text)?.to_owned();
        Ok((parsed(text)?, vec![host]))
    }

    fn called(name: &str) -> String {
        format!("the history of {name}")
    }

    fn none(name: &str) -> Problem {
        none(name)
    }
}

impl Book {
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
