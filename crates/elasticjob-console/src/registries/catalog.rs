//! A shelf of places that have names: registries, and where their histories are.
//!
//! Those from flags and the configuration file are fixed. An administrator may add others while the console runs, if that is switched on: only to hosts on the
//! list, and kept in a file on this machine. What is added is there for good or not at all.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs, io,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use crate::{
    files,
    http::problem::{Code, Problem},
};

/// How many may stand there.
const MAX_ENTRIES: usize = 100;

/// What an administrator may add.
#[derive(Debug, Clone, Default)]
pub struct AdditionPolicy {
    /// Whether anything.
    pub is_enabled: bool,
    /// To which hosts: names, addresses, or `*.example.com`.
    pub allowed_hosts: Vec<String>,
}

/// Something that stands on a shelf.
pub(crate) trait CatalogEntry: Debug + Sized {
    /// What they are called, in the file too: `registries`.
    const KIND: &'static str;
    /// What a client calls the field that names one.
    const FIELD: &'static str;
    /// The flag that names one.
    const FLAG: &'static str;
    /// The table of the configuration file that says what may be added.
    const CONFIG_TABLE: &'static str;

    /// What its URL says.
    type Url;

    /// One under this name, as this URL says; it may hold passwords.
    fn new(info: EntryInfo) -> Result<Self, Problem>;

    fn info(&self) -> &EntryInfo;

    /// What an administrator gave, and the hosts it leads to; a problem if it is of a kind that cannot be added.
    fn parse_addable(text: &str) -> Result<(Self::Url, Vec<String>), Problem>;

    /// What people call the one of this name.
    fn describe(name: &str) -> String;

    /// There is none of this name.
    fn not_found(name: &str) -> Problem;
}

/// What is known of everything on a shelf.
#[derive(Debug)]
pub(crate) struct EntryInfo {
    pub(crate) name: String,
    /// The URL as it was given; with passwords.
    pub(crate) url: String,
    /// Whether it was added while the console ran.
    pub(crate) is_added: bool,
}

impl EntryInfo {
    fn new(name: &str, url: &str, is_added: bool) -> Self {
        Self { name: name.to_owned(), url: url.to_owned(), is_added }
    }
}

/// All of them, by name.
#[derive(Debug)]
pub(crate) struct Catalog<T> {
    entries: RwLock<BTreeMap<String, Arc<T>>>,
    additions: AdditionPolicy,
    file: Option<PathBuf>,
}

impl<T: CatalogEntry> Catalog<T> {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        additions: AdditionPolicy,
        file: Option<PathBuf>,
    ) -> Result<Self, Problem> {
        let mut entries = BTreeMap::new();
        for (name, text) in named {
            let entry = T::new(EntryInfo::new(name, text, false))?;
            if entries.insert(name.clone(), Arc::new(entry)).is_some() {
                let text = format!("{} is named twice; hint: leave one out", T::describe(name));
                return Err(Problem::invalid(T::FIELD, text));
            }
        }
        let read_error = |error: io::Error| {
            let text = format!("cannot read the file of added {}: {error}", T::KIND);
            Problem::new(Code::Internal, text)
        };
        if additions.is_enabled
            && let Some(path) = file.as_ref().filter(|path| path.exists())
        {
            let bytes = fs::read(path).map_err(read_error)?;
            let mut stored: BTreeMap<String, BTreeMap<String, String>> =
                serde_json::from_slice(&bytes).map_err(|error| read_error(error.into()))?;
            for (name, text) in stored.remove(T::KIND).unwrap_or_default() {
                let entry = T::new(EntryInfo::new(&name, &text, true))?;
                entries.entry(name).or_insert_with(|| Arc::new(entry));
            }
        }
        Ok(Self { entries: RwLock::new(entries), additions, file })
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        self.read().get(name).cloned()
    }

    pub(crate) fn additions(&self) -> &AdditionPolicy {
        &self.additions
    }

    /// What an administrator gave, if it may be looked at.
    pub(crate) fn check_addable(&self, text: &str) -> Result<T::Url, Problem> {
        if !self.additions.is_enabled {
            let text = format!(
                "{} cannot be added while this console runs; hint: name it with {}, or set {} in the configuration file",
                T::KIND,
                T::FLAG,
                T::CONFIG_TABLE
            );
            return Err(Problem::new(Code::Refused, text));
        }
        let (url, hosts) = T::parse_addable(text)?;
        let is_listed = |host: &&String| {
            self.additions.allowed_hosts.iter().any(|allowed| matches_host(allowed, host))
        };
        match hosts.iter().find(|host| !is_listed(host)) {
            None => Ok(url),
            Some(host) => {
                let text = format!(
                    "{host} is not on the list of hosts; hint: {}.hosts in the configuration file names them",
                    T::CONFIG_TABLE
                );
                Err(Problem::invalid("url", text))
            }
        }
    }

    /// Adds one for good.
    pub(crate) fn add(&self, name: &str, text: &str) -> Result<Arc<T>, Problem> {
        self.check_addable(text)?;
        let entry = Arc::new(T::new(EntryInfo::new(name, text, true))?);
        self.change(|entries| {
            if entries.contains_key(name) {
                let text = format!(
                    "{} is there already; hint: remove that one first, or choose another name",
                    T::describe(name)
                );
                return Err(Problem::new(Code::Conflict, text).with_field(T::FIELD));
            }
            if entries.len() >= MAX_ENTRIES {
                let text = format!("there are {MAX_ENTRIES} {} already; hint: remove one", T::KIND);
                return Err(Problem::new(Code::Refused, text));
            }
            entries.insert(name.to_owned(), Arc::clone(&entry));
            Ok(())
        })?;
        Ok(entry)
    }

    /// Takes one away that was added. What it leads to stays as it is.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|entries| match entries.get(name) {
            None => Err(T::not_found(name)),
            Some(entry) if !entry.info().is_added => {
                let text = format!(
                    "{} is from the command line or the configuration file; hint: take it away there",
                    T::describe(name)
                );
                Err(Problem::new(Code::Refused, text))
            }
            Some(_) => {
                entries.remove(name);
                Ok(())
            }
        })
    }

    /// Changes what stands there, in the file too, or nothing.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Arc<T>>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = entries.clone();
        change(&mut changed)?;
        if let Some(path) = &self.file {
            let added = changed.values().map(|entry| entry.info()).filter(|info| info.is_added);
            let added: BTreeMap<_, _> = added.map(|info| (&info.name, &info.url)).collect();
            files::replace(path, &BTreeMap::from([(T::KIND, added)]))?;
        }
        *entries = changed;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<T>>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a host is what an entry of the list means.
fn matches_host(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        Some(domain) => host.len().checked_sub(domain.len() + 1).is_some_and(|dot| {
            host.is_char_boundary(dot) && host[dot..].eq_ignore_ascii_case(&format!(".{domain}"))
        }),
        None => host.eq_ignore_ascii_case(allowed),
    }
}
