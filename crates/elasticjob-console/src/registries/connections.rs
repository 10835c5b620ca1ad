//! The registries this console looks at: which there are, and the line to each.
//!
//! A line is connected when it is first asked for, by a task of its own, and tried again for ever; one that is down answers at once that it is, and
//! hurts no other. What an administrator adds are our own URL schemes, to hosts on the list.

use std::{
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    admin::{Admin, mirror::Mirror},
    problem,
    registry::{RegistryUrl, UrlError},
    runtime::{Clock, Tasks},
};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::catalog::{Adding, Shelf, Shelved, Tag};
use crate::http::problem::{Code, Problem};

/// How long a request waits for a line that is just being connected.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after a failed connection the next one is tried: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// All of them.
#[derive(Debug)]
pub(crate) struct Registries {
    shelf: Shelf<Place>,
    /// The one that is meant where nobody says which: the first that was named.
    first: Option<String>,
    clock: Arc<dyn Clock>,
}

impl Deref for Registries {
    type Target = Shelf<Place>;

    fn deref(&self) -> &Shelf<Place> {
        &self.shelf
    }
}

/// One registry.
#[derive(Debug)]
pub(crate) struct Place {
    tag: Tag,
    pub(crate) url: RegistryUrl,
    pub(crate) mirror: Arc<Mirror>,
    line: watch::Sender<Line>,
    /// Who keeps the line; nobody before it is first asked for.
    keeper: Mutex<Option<Tasks>>,
}

/// The line to a registry.
#[derive(Debug, Clone)]
enum Line {
    /// Nobody asked for it yet.
    Idle,
    /// It is being connected.
    Connecting,
    /// Here it is.
    Up(Admin),
    /// It cannot be connected, and why.
    Down(String),
}

/// How a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LineState {
    /// Nobody asked for it yet.
    Idle,
    /// It is being connected.
    Connecting,
    /// The registry answers.
    Connected,
    /// It does not.
    Down,
}

impl Registries {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        adding: Adding,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let first = named.first().map(|(name, _)| name.clone());
        Ok(Self { shelf: Shelf::open(named, adding, file)?, first, clock })
    }

    /// The one that is meant where nobody says which.
    pub(crate) fn first(&self) -> Option<Arc<Place>> {
        let first = self.first.as_deref().and_then(|name| self.get(name));
        first.or_else(|| self.all().into_iter().next())
    }

    /// The door to a registry.
    pub(crate) async fn door(&self, place: &Arc<Place>) -> Result<Admin, Problem> {
        let mut line = self.line(place);
        let deadline = self.clock.monotonic() + PATIENCE;
        loop {
            let now = line.borrow_and_update().clone();
            match now {
                Line::Up(admin) => return Ok(admin),
                Line::Down(problem) => {
                    return Err(Problem::new(Code::Unreachable, problem).after(PAUSES.1.as_secs()));
                }
                Line::Idle | Line::Connecting => {}
            }
            tokio::select! {
                changed = line.changed() => {
                    if changed.is_err() {
                        return Err(unknown(&place.name));
                    }
                }
                () = self.clock.sleep_until(deadline) => {
                    let text = format!("registry {} does not answer; hint: is ZooKeeper listening there?", place.name);
                    return Err(Problem::new(Code::Unreachable, text).after(PAUSES.1.as_secs()));
                }
            }
        }
    }

    /// The line to a registry; from now on somebody keeps it.
    fn line(&self, place: &Arc<Place>) -> watch::Receiver<Line> {
        let mut keeper = place.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            place.line.send_replace(Line::Connecting);
            let mut tasks = Tasks::new();
            tasks.spawn(keep(
                place.url.clone(),
                place.line.clone(),
                Arc::clone(&place.mirror),
                Arc::clone(&self.clock),
            ));
            *keeper = Some(tasks);
        }
        place.line.subscribe()
    }
}

impl Deref for Place {
    type Target = Tag;

    fn deref(&self) -> &Tag {
        &self.tag
    }
}

impl Shelved for Place {
    type Url = RegistryUrl;

    const KIND: &'static str = "registries";
    const FIELD: &'static str = "name";
    const FLAG: &'static str = "--registry";
    const ADDING: &'static str = "addRegistries";

    fn new(tag: Tag) -> Result<Self, Problem> {
        let name = &tag.name;
        let is_good = !name.is_empty()
            && name.len() <= 64
            && name.chars().all(|each| each.is_ascii_alphanumeric() || "._-".contains(each))
            && name.chars().any(|each| each.is_ascii_alphanumeric());
        if !is_good {
            return Err(Problem::invalid(
                "name",
                format!(
                    "{name:?} cannot be the name of a registry; hint: letters, digits, dots, dashes and underscores, at most 64"
                ),
            ));
        }
        Ok(Self {
            url: parsed(&tag.text)?,
            tag,
            mirror: Arc::new(Mirror::default()),
            line: watch::Sender::new(Line::Idle),
            keeper: Mutex::new(None),
        })
    }

    fn tag(&self) -> &Tag {
        &self.tag
    }

    fn addable(text: &str) -> Result<(RegistryUrl, Vec<String>), Problem> {
        let url = parsed(text)?;
        let RegistryUrl::ZooKeeper(settings) = &url else {
            return Err(Problem::invalid(
                "url",
                "memory: is a tree of one process; hint: zookeeper://host:2181/namespace",
            ));
        };
        if settings.tls.is_some() {
            return Err(Problem::invalid(
                "url",
                "zookeepers:// reads files of this machine; hint: name it with --registry or in the configuration file",
            ));
        }
        let hosts = settings.servers.iter().map(|server| server.host.clone()).collect();
        Ok((url, hosts))
    }

    fn called(name: &str) -> String {
        format!("registry {name}")
    }

    fn none(name: &str) -> Problem {
        unknown(name)
    }
}

impl Place {
    /// How the line stands, and why it is down.
    pub(crate) fn state(&self) -> (LineState, Option<String>) {
        match &*self.line.borrow() {
            Line::Idle => (LineState::Idle, None),
            Line::Connecting => (LineState::Connecting, None),
            Line::Up(..) if self.mirror.seen(|seen| seen.as_of.is_some() && !seen.is_current) => {
                (LineState::Down, Some("the connection is lost; it is being repaired".to_owned()))
            }
            Line::Up(..) => (LineState::Connected, None),
            Line::Down(problem) => (LineState::Down, Some(problem.clone())),
        }
    }
}

/// Keeps a line: connects, follows, and begins again.
async fn keep(
    url: RegistryUrl,
    line: watch::Sender<Line>,
    mirror: Arc<Mirror>,
    clock: Arc<dyn Clock>,
) {
    let mut pause = PAUSES.0;
    loop {
        match Admin::connect(&url).await {
            Ok(admin) => {
                pause = PAUSES.0;
                let admin = admin.clock(Arc::clone(&clock));
                line.send_replace(Line::Up(admin.clone()));
                follow(&admin, &mirror, &*clock).await;
                admin.close().await;
                line.send_replace(Line::Connecting);
            }
            Err(error) => {
                tracing::debug!(registry = %url, %error, "a registry cannot be reached: trying again");
                let problem = problem::Problem::of(&error);
                line.send_replace(Line::Down(match problem.hint {
                    Some(hint) => format!("{}; hint: {hint}", problem.message),
                    None => problem.message,
                }));
            }
        }
        mirror.cut_off();
        clock.sleep_until(clock.monotonic() + pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Keeps the mirror, as long as the registry is open. What cannot be watched can still be asked.
async fn follow(admin: &Admin, mirror: &Mirror, clock: &dyn Clock) {
    while let Err(error) = mirror.follow(admin).await {
        tracing::warn!(%error, "a registry cannot be followed: trying again");
        mirror.cut_off();
        clock.sleep_until(clock.monotonic() + PAUSES.1).await;
    }
}

fn parsed(url: &str) -> Result<RegistryUrl, Problem> {
    url.parse().map_err(|error: UrlError| {
        let text = format!("registry URL: {}; hint: for example {}", error.problem, error.example);
        Problem::invalid("url", text)
    })
}

/// There is no registry of this name, or none for this user: they are not told which.
pub(crate) fn unknown(name: &str) -> Problem {
    Problem::new(
        Code::NotFound,
        format!("there is no registry {name}; hint: GET /api/v1/registries lists them"),
    )
}

#[cfg(test)]
mod tests {
    use elasticjob::runtime::SystemClock;

    use super::*;

    fn open(adding: Adding) -> Registries {
        Registries::open(&[], adding, None, Arc::new(SystemClock)).unwrap()
    }

    #[test]
    fn only_what_is_on_the_list_can_be_added() {
        let hosts = vec!["zk1".to_owned(), "*.zk.example.com".to_owned()];
        let registries = open(Adding { is_on: true, hosts });

        for url in ["zookeeper://zk1/shop", "zookeeper://a.zk.example.com:2182,ZK1/shop"] {
            assert!(registries.check(url).is_ok(), "{url}");
        }
        for url in [
            "zookeeper://127.0.0.1/shop",
            "zookeeper://zk1,169.254.169.254/shop",
            "zookeeper://zk.example.com/shop",
            "zookeeper://evilzk.example.com/shop",
            "zookeepers://zk1/shop?tls.ca=/etc/passwd",
            "memory:",
            "jdbc:h2:mem:x",
            "http://zk1/shop",
        ] {
            let problem = registries.check(url).unwrap_err();
            assert_eq!(
                (problem.code, problem.field.as_deref()),
                (Code::Invalid, Some("url")),
                "{url}"
            );
        }
        assert_eq!(
            open(Adding::default()).check("zookeeper://zk1/shop").unwrap_err().code,
            Code::Refused
        );
    }

    #[test]
    fn a_name_is_one_word_of_a_path() {
        let registries = open(Adding { is_on: true, hosts: vec!["zk1".to_owned()] });

        for name in ["", "a/b", "..", "a b", "ü", "a?b"] {
            assert!(registries.add(name, "zookeeper://zk1/shop").is_err(), "{name:?}");
        }
        registries.add("prod.eu-1", "zookeeper://zk1/shop").unwrap();
        assert_eq!(
            registries.add("prod.eu-1", "zookeeper://zk1/shop").unwrap_err().code,
            Code::Conflict
        );
        registries.remove("prod.eu-1").unwrap();
        assert_eq!(registries.remove("prod.eu-1").unwrap_err().code, Code::NotFound);
    }
}
