//! A catalog of named connections: to registries, or to history stores.
//!
//! Entries from flags and the configuration file are fixed. If enabled, an administrator may add others at run time: only to allowed hosts, and
//! stored in a file on this machine. Adding an entry either persists it or fails.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs, io,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use elasticjob::runtime::Clock;

use crate::{
    auth::caller::Caller,
    files,
    http::problem::{Code, Problem},
};

const MAX_ENTRIES: usize = 100;

/// What an administrator may add at run time.
#[derive(Debug, Clone, Default)]
pub struct AdditionPolicy {
    pub is_enabled: bool,
    /// Allowed hosts: names, addresses, or `*.example.com`.
    pub allowed_hosts: Vec<String>,
}

/// An entry of a [`Catalog`]: the connection to a registry or to a history store.
pub(crate) trait CatalogEntry: Debug + Sized + Deref<Target = EntryInfo> {
    /// Plural noun, also the key in the file: `registries`.
    const KIND: &'static str;
    /// The request field that contains the name.
    const FIELD: &'static str;
    /// The command line flag that defines an entry.
    const FLAG: &'static str;
    /// The table of the configuration file that enables additions.
    const CONFIG_TABLE: &'static str;

    /// The parsed URL.
    type Url;

    /// What all connections of the catalog share.
    type Settings: Debug + Default;

    /// Validates name and URL; the URL may contain passwords.
    fn new(info: EntryInfo) -> Result<Self, Problem>;

    /// Parses a URL given by an administrator and returns the hosts it leads to; fails for URLs that must not be added.
    fn parse_addable(text: &str) -> Result<(Self::Url, Vec<String>), Problem>;

    /// The entry in a message: `registry NAME`.
    fn describe(name: &str) -> String;

    fn not_found(name: &str) -> Problem;
}

/// Name and URL of an entry.
#[derive(Debug)]
pub(crate) struct EntryInfo {
    pub(crate) name: String,
    /// As given, including passwords.
    pub(crate) raw_url: String,
    /// Added at run time.
    pub(crate) is_added: bool,
}

impl EntryInfo {
    fn new(name: &str, url: &str, is_added: bool) -> Self {
        Self { name: name.to_owned(), raw_url: url.to_owned(), is_added }
    }
}

/// All entries, by name.
#[derive(Debug)]
pub(crate) struct Catalog<T: CatalogEntry> {
    entries: RwLock<BTreeMap<String, Arc<T>>>,
    /// The first configured entry.
    default_name: Option<String>,
    additions: AdditionPolicy,
    file: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    pub(super) settings: T::Settings,
}

impl<T: CatalogEntry> Catalog<T> {
    /// The configured entries, and those added earlier.
    pub(crate) fn open(
        named: &[(String, String)],
        additions: AdditionPolicy,
        file: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let default_name = named.first().map(|(name, _)| name.clone());
        let mut entries = BTreeMap::new();
        for (name, text) in named {
            let entry = T::new(EntryInfo::new(name, text, false))?;
            if entries.insert(name.clone(), Arc::new(entry)).is_some() {
                let text = format!("{} is defined twice", T::describe(name));
                return Err(Problem::invalid(T::FIELD, text).with_hint("remove one"));
            }
        }
        let read_error = |error: io::Error| {
            let text = format!("cannot read the file with added {}: {error}", T::KIND);
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
        Ok(Self {
            entries: RwLock::new(entries),
            default_name,
            additions,
            file,
            clock,
            settings: T::Settings::default(),
        })
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.read().values().cloned().collect()
    }

    /// The entries of the registries that the caller may see.
    pub(crate) fn visible_to(&self, caller: &Caller) -> Vec<Arc<T>> {
        self.read().values().filter(|entry| caller.role(&entry.name).is_some()).cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        self.read().get(name).cloned()
    }

    /// The entry to use when a request names none: the first configured one, else the first by name.
    pub(crate) fn default_entry(&self) -> Option<Arc<T>> {
        let configured = self.default_name.as_deref().and_then(|name| self.get(name));
        configured.or_else(|| self.all().into_iter().next())
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn additions(&self) -> &AdditionPolicy {
        &self.additions
    }

    /// Checks whether an administrator may add this URL.
    pub(crate) fn check_addable(&self, text: &str) -> Result<T::Url, Problem> {
        if !self.additions.is_enabled {
            let text = format!("adding {} at run time is not enabled", T::KIND);
            return Err(Problem::new(Code::Refused, text).with_hint(format!(
                "define it with {}, or enable {} in the configuration file",
                T::FLAG,
                T::CONFIG_TABLE
            )));
        }
        let (url, hosts) = T::parse_addable(text)?;
        let is_listed = |host: &&String| {
            self.additions.allowed_hosts.iter().any(|allowed| matches_host(allowed, host))
        };
        match hosts.iter().find(|host| !is_listed(host)) {
            None => Ok(url),
            Some(host) => {
                let text = format!("{host} is not an allowed host");
                Err(Problem::invalid("url", text).with_hint(format!(
                    "add it to {}.hosts in the configuration file",
                    T::CONFIG_TABLE
                )))
            }
        }
    }

    /// Adds an entry and stores it.
    pub(crate) fn add(&self, name: &str, text: &str) -> Result<Arc<T>, Problem> {
        self.check_addable(text)?;
        let entry = Arc::new(T::new(EntryInfo::new(name, text, true))?);
        self.change(|entries| {
            if entries.contains_key(name) {
                let text = format!("{} already exists", T::describe(name));
                return Err(Problem::new(Code::Conflict, text)
                    .with_hint("remove it first, or choose another name")
                    .with_field(T::FIELD));
            }
            if entries.len() >= MAX_ENTRIES {
                let text = format!("there are {MAX_ENTRIES} {} already", T::KIND);
                return Err(Problem::new(Code::Refused, text).with_hint("remove one"));
            }
            entries.insert(name.to_owned(), Arc::clone(&entry));
            Ok(())
        })?;
        Ok(entry)
    }

    /// Removes an added entry. What it points to stays untouched.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|entries| match entries.get(name) {
            None => Err(T::not_found(name)),
            Some(entry) if !entry.is_added => {
                let text = format!(
                    "{} is defined by the command line or the configuration file",
                    T::describe(name)
                );
                Err(Problem::new(Code::Refused, text).with_hint("remove it there"))
            }
            Some(_) => {
                entries.remove(name);
                Ok(())
            }
        })
    }

    /// Changes the entries in memory and in the file, or neither.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Arc<T>>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = entries.clone();
        change(&mut changed)?;
        if let Some(path) = &self.file {
            let added = changed.values().filter(|entry| entry.is_added);
            let added: BTreeMap<_, _> = added.map(|entry| (&entry.name, &entry.raw_url)).collect();
            files::replace(path, &BTreeMap::from([(T::KIND, added)]))?;
        }
        *entries = changed;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<T>>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a host matches an allowed name or `*.` pattern.
fn matches_host(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        Some(domain) => host.len().checked_sub(domain.len() + 1).is_some_and(|dot| {
            host.is_char_boundary(dot) && host[dot..].eq_ignore_ascii_case(&format!(".{domain}"))
        }),
        None => host.eq_ignore_ascii_case(allowed),
    }
}
