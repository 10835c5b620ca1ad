//! The registries this console looks at: which there are, and the line to each.
//!
//! A line is connected when it is first asked for, by a task of its own, and tried again for ever; one that is down answers at once that it is, and
//! hurts no other. Those from flags and the configuration file are fixed. An administrator may add others while the console runs, if that is switched on: our own
//! URL schemes, only to hosts on the list, kept in a file on this machine.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use elasticjob::{
    admin::Admin,
    registry::{self, Registry, RegistryUrl},
    runtime::{Clock, Tasks},
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

use super::{
    files,
    mirror::Mirror,
    problem::{Code, Problem},
};

/// How long a request waits for a line that is just being connected.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after a failed connection the next one is tried: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// How many a console may look at.
const MOST: usize = 100;

/// All of them.
#[derive(Debug)]
pub(crate) struct Registries {
    places: RwLock<BTreeMap<String, Arc<Place>>>,
    /// The one that is meant where nobody says which: the first that was named.
    first: Option<String>,
    adding: Adding,
    file: Option<PathBuf>,
    clock: Arc<dyn Clock>,
}

/// What an administrator may add.
#[derive(Debug, Clone, Default)]
pub(crate) struct Adding {
    /// Whether anything.
    pub(crate) is_on: bool,
    /// To which hosts: names, addresses, or `*.example.com`.
    pub(crate) hosts: Vec<String>,
}

/// One registry.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) url: RegistryUrl,
    /// As it was given; with passwords.
    text: String,
    /// Whether it was added while the console ran.
    pub(crate) is_added: bool,
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
    Up(Admin, Arc<dyn Registry>),
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

#[derive(Debug, Default, Serialize, Deserialize)]
struct Filed {
    registries: BTreeMap<String, String>,
}

impl Registries {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        adding: Adding,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let mut places = BTreeMap::new();
        for (name, url) in named {
            let place = Place::new(name, url, false)?;
            if places.insert(name.clone(), Arc::new(place)).is_some() {
                return Err(Problem::invalid(
                    "registry",
                    format!("registry {name} is named twice"),
                ));
            }
        }
        let cannot = |error: io::Error| {
            Problem::new(
                Code::Internal,
                format!("cannot read the file of added registries: {error}"),
            )
        };
        if adding.is_on
            && let Some(path) = file.as_ref().filter(|path| path.exists())
        {
            let filed: Filed = serde_json::from_slice(&fs::read(path).map_err(cannot)?)
                .map_err(|error| cannot(error.into()))?;
            for (name, url) in filed.registries {
                let place = Place::new(&name, &url, true)?;
                places.entry(name).or_insert_with(|| Arc::new(place));
            }
        }
        let first = named.first().map(|(name, _)| name.clone());
        Ok(Self { places: RwLock::new(places), first, adding, file, clock })
    }

    /// All, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Place>> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Place>> {
        self.read().get(name).cloned()
    }

    /// The one that is meant where nobody says which.
    pub(crate) fn first(&self) -> Option<Arc<Place>> {
        let first = self.first.as_deref().and_then(|name| self.get(name));
        first.or_else(|| self.read().values().next().cloned())
    }

    pub(crate) fn adding(&self) -> &Adding {
        &self.adding
    }

    /// What an administrator gave, if it may be looked at.
    pub(crate) fn check(&self, url: &str) -> Result<RegistryUrl, Problem> {
        if !self.adding.is_on {
            return Err(Problem::new(
                Code::Refused,
                "registries cannot be added while this console runs; hint: name it with --registry, or set addRegistries in the configuration file",
            ));
        }
        let url = parsed(url)?;
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
        for server in &settings.servers {
            if !self.adding.hosts.iter().any(|allowed| matches(allowed, &server.host)) {
                return Err(Problem::invalid(
                    "url",
                    format!(
                        "{} is not on the list of hosts; hint: addRegistries.hosts in the configuration file names them",
                        server.host
                    ),
                ));
            }
        }
        Ok(url)
    }

    /// Adds one for good.
    pub(crate) fn add(&self, name: &str, url: &str) -> Result<Arc<Place>, Problem> {
        self.check(url)?;
        let place = Arc::new(Place::new(name, url, true)?);
        let mut places = self.write();
        if places.contains_key(name) {
            let text = format!(
                "there is a registry {name} already; hint: choose another name, or remove that one"
            );
            return Err(Problem::new(Code::Conflict, text).of("name"));
        }
        if places.len() >= MOST {
            let text = format!("there are {MOST} registries already; hint: remove one");
            return Err(Problem::new(Code::Refused, text));
        }
        places.insert(name.to_owned(), Arc::clone(&place));
        self.keep(&places)?;
        Ok(place)
    }

    /// Takes one away that was added.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        let mut places = self.write();
        match places.get(name) {
            None => return Err(unknown(name)),
            Some(place) if !place.is_added => {
                let text = format!(
                    "registry {name} is from the command line or the configuration file; hint: take it away there"
                );
                return Err(Problem::new(Code::Refused, text));
            }
            Some(_) => places.remove(name),
        };
        self.keep(&places)
    }

    fn keep(&self, places: &BTreeMap<String, Arc<Place>>) -> Result<(), Problem> {
        let Some(path) = &self.file else { return Ok(()) };
        let added = places.values().filter(|place| place.is_added);
        let registries = added.map(|place| (place.name.clone(), place.text.clone())).collect();
        files::replace(path, &Filed { registries })
    }

    /// The door to a registry.
    pub(crate) async fn door(&self, place: &Arc<Place>) -> Result<Admin, Problem> {
        Ok(self.connected(place).await?.0)
    }

    /// The registry itself.
    pub(crate) async fn registry(&self, place: &Arc<Place>) -> Result<Arc<dyn Registry>, Problem> {
        Ok(self.connected(place).await?.1)
    }

    async fn connected(&self, place: &Arc<Place>) -> Result<(Admin, Arc<dyn Registry>), Problem> {
        let mut line = self.line(place);
        let deadline = self.clock.monotonic() + PATIENCE;
        loop {
            let now = line.borrow_and_update().clone();
            match now {
                Line::Up(admin, registry) => return Ok((admin, registry)),
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

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<Place>>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Place>>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn new(name: &str, text: &str, is_added: bool) -> Result<Self, Problem> {
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
            name: name.to_owned(),
            url: parsed(text)?,
            text: text.to_owned(),
            is_added,
            mirror: Arc::new(Mirror::new()),
            line: watch::Sender::new(Line::Idle),
            keeper: Mutex::new(None),
        })
    }

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
        match registry::visit(&url).await {
            Ok(registry) => {
                pause = PAUSES.0;
                let admin = Admin::on(Arc::clone(&registry)).clock(Arc::clone(&clock));
                line.send_replace(Line::Up(admin.clone(), Arc::clone(&registry)));
                follow(&*registry, &admin, &mirror, &*clock).await;
                registry.close().await;
                line.send_replace(Line::Connecting);
            }
            Err(error) => {
                tracing::debug!(registry = %url, %error, "a registry cannot be reached: trying again");
                let problem = crate::error::Error::from(error).problems;
                let problem = problem.into_iter().next().map(|problem| match problem.hint {
                    Some(hint) => format!("{}; hint: {hint}", problem.message),
                    None => problem.message,
                });
                line.send_replace(Line::Down(problem.unwrap_or_default()));
            }
        }
        mirror.cut_off();
        clock.sleep_until(clock.monotonic() + pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Keeps the mirror, as long as the registry is open. What cannot be watched can still be asked.
async fn follow(registry: &dyn Registry, admin: &Admin, mirror: &Mirror, clock: &dyn Clock) {
    while let Err(error) = mirror.follow(registry, admin, clock).await {
        tracing::warn!(%error, "a registry cannot be followed: trying again");
        mirror.cut_off();
        clock.sleep_until(clock.monotonic() + PAUSES.1).await;
    }
}

fn parsed(url: &str) -> Result<RegistryUrl, Problem> {
    url.parse().map_err(|error: registry::UrlError| {
        let text = format!("registry URL: {}; hint: for example {}", error.problem, error.example);
        Problem::invalid("url", text)
    })
}

/// Whether a host is what an entry of the list means.
pub(crate) fn matches(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        Some(domain) => host.len().checked_sub(domain.len() + 1).is_some_and(|dot| {
            host.is_char_boundary(dot) && host[dot..].eq_ignore_ascii_case(&format!(".{domain}"))
        }),
        None => host.eq_ignore_ascii_case(allowed),
    }
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
