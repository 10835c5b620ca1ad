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
const MOST: usize = 100;

/// What an administrator may add.
#[derive(Debug, Clone, Default)]
pub struct Adding {
    /// Whether anything.
    pub is_on: bool,
    /// To which hosts: names, addresses, or `*.example.com`.
    pub hosts: Vec<String>,
}

/// Something that stands on a shelf.
pub(crate) trait Shelved: Debug + Sized {
    /// What they are called, in the file too: `registries`.
    const KIND: &'static str;
    /// What a client calls the field that names one.
    const FIELD: &'static str;
    /// The flag that names one.
    const FLAG: &'static str;
    /// The table of the configuration file that says what may be added.
    const ADDING: &'static str;

    /// What its URL says.
    type Url;

    /// One under this name, as this URL says; it may hold passwords.
    fn new(tag: Tag) -> Result<Self, Problem>;

    fn tag(&self) -> &Tag;

    /// What an administrator gave, and the hosts it leads to; a problem if it is of a kind that cannot be added.
    fn addable(text: &str) -> Result<(Self::Url, Vec<String>), Problem>;

    /// What people call the one of this name.
    fn called(name: &str) -> String;

    /// There is none of this name.
    fn none(name: &str) -> Problem;
}

/// What is known of everything on a shelf.
#[derive(Debug)]
pub(crate) struct Tag {
    pub(crate) name: String,
    /// The URL as it was given; with passwords.
    pub(crate) text: String,
    /// Whether it was added while the console ran.
    pub(crate) is_added: bool,
}

impl Tag {
    fn new(name: &str, text: &str, is_added: bool) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), is_added }
    }
}

/// All of them, by name.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    places: RwLock<BTreeMap<String, Arc<T>>>,
    adding: Adding,
    file: Option<PathBuf>,
}

impl<T: Shelved> Shelf<T> {
    /// Those that were named, and those that were added in former times.
    pub(crate) fn open(
        named: &[(String, String)],
        adding: Adding,
        file: Option<PathBuf>,
    ) -> Result<Self, Problem> {
        let mut places = BTreeMap::new();
        for (name, text) in named {
            let place = T::new(Tag::new(name, text, false))?;
            if places.insert(name.clone(), Arc::new(place)).is_some() {
                let text = format!("{} is named twice; hint: leave one out", T::called(name));
                return Err(Problem::invalid(T::FIELD, text));
            }
        }
        let cannot = |error: io::Error| {
            let text = format!("cannot read the file of added {}: {error}", T::KIND);
            Problem::new(Code::Internal, text)
        };
        if adding.is_on
            && let Some(path) = file.as_ref().filter(|path| path.exists())
        {
            let bytes = fs::read(path).map_err(cannot)?;
            let mut filed: BTreeMap<String, BTreeMap<String, String>> =
                serde_json::from_slice(&bytes).map_err(|error| cannot(error.into()))?;
            for (name, text) in filed.remove(T::KIND).unwrap_or_default() {
                let place = T::new(Tag::new(&name, &text, true))?;
                places.entry(name).or_insert_with(|| Arc::new(place));
            }
        }
        Ok(Self { places: RwLock::new(places), adding, file })
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        self.read().get(name).cloned()
    }

    pub(crate) fn adding(&self) -> &Adding {
        &self.adding
    }

    /// What an administrator gave, if it may be looked at.
    pub(crate) fn check(&self, text: &str) -> Result<T::Url, Problem> {
        if !self.adding.is_on {
            let text = format!(
                "{} cannot be added while this console runs; hint: name it with {}, or set {} in the configuration file",
                T::KIND,
                T::FLAG,
                T::ADDING
            );
            return Err(Problem::new(Code::Refused, text));
        }
        let (url, hosts) = T::addable(text)?;
        let is_listed =
            |host: &&String| self.adding.hosts.iter().any(|allowed| matches(allowed, host));
        match hosts.iter().find(|host| !is_listed(host)) {
            None => Ok(url),
            Some(host) => {
                let text = format!(
                    "{host} is not on the list of hosts; hint: {}.hosts in the configuration file names them",
                    T::ADDING
                );
                Err(Problem::invalid("url", text))
            }
        }
    }

    /// Adds one for good.
    pub(crate) fn add(&self, name: &str, text: &str) -> Result<Arc<T>, Problem> {
        self.check(text)?;
        let place = Arc::new(T::new(Tag::new(name, text, true))?);
        self.change(|places| {
            if places.contains_key(name) {
                let text = format!(
                    "{} is there already; hint: remove that one first, or choose another name",
                    T::called(name)
                );
                return Err(Problem::new(Code::Conflict, text).of(T::FIELD));
            }
            if places.len() >= MOST {
                let text = format!("there are {MOST} {} already; hint: remove one", T::KIND);
                return Err(Problem::new(Code::Refused, text));
            }
            places.insert(name.to_owned(), Arc::clone(&place));
            Ok(())
        })?;
        Ok(place)
    }

    /// Takes one away that was added. What it leads to stays as it is.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Problem> {
        self.change(|places| match places.get(name) {
            None => Err(T::none(name)),
            Some(place) if !place.tag().is_added => {
                let text = format!(
                    "{} is from the command line or the configuration file; hint: take it away there",
                    T::called(name)
                );
                Err(Problem::new(Code::Refused, text))
            }
            Some(_) => {
                places.remove(name);
                Ok(())
            }
        })
    }

    /// Changes what stands there, in the file too, or nothing.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Arc<T>>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = places.clone();
        change(&mut changed)?;
        if let Some(path) = &self.file {
            let added = changed.values().map(|place| place.tag()).filter(|tag| tag.is_added);
            let added: BTreeMap<_, _> = added.map(|tag| (&tag.name, &tag.text)).collect();
            files::replace(path, &BTreeMap::from([(T::KIND, added)]))?;
        }
        *places = changed;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<T>>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a host is what an entry of the list means.
fn matches(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        Some(domain) => host.len().checked_sub(domain.len() + 1).is_some_and(|dot| {
            host.is_char_boundary(dot) && host[dot..].eq_ignore_ascii_case(&format!(".{domain}"))
        }),
        None => host.eq_ignore_ascii_case(allowed),
    }
}
