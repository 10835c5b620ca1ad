//! Who wants to know: one-shot, persistent and persistent recursive watches.
//!
//! Two books, as in ZooKeeper: *data* (node created, deleted, data changed) and *child* (list of children changed, node deleted).
//! A persistent watch stands in both, a recursive one only in the data book. One watcher is told of one event once, however
//! many of its watches match. Unlike servers before 3.9, a one-shot and a persistent watch on the same path live side by side.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::path;
use crate::wire::{AddWatchMode, EventKind, WatcherType};

/// Somebody who watches: a connection, as the server numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatcherId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Book {
    Data,
    Child,
}

/// Which kinds of watch one watcher has on one path in one book.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Kinds {
    one_shot: bool,
    persistent: bool,
    recursive: bool,
}

impl Kinds {
    fn is_empty(self) -> bool {
        self == Kinds::default()
    }

    fn flag(&mut self, kind: Kind) -> &mut bool {
        match kind {
            Kind::OneShot => &mut self.one_shot,
            Kind::Persistent => &mut self.persistent,
            Kind::Recursive => &mut self.recursive,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OneShot,
    Persistent,
    Recursive,
}

type Entries = HashMap<Box<str>, BTreeMap<WatcherId, Kinds>>;

/// All watches on one tree.
#[derive(Debug, Default)]
pub(super) struct Watches {
    data: Entries,
    child: Entries,
    /// Where each watcher has something, so that a leaving one is forgotten in time proportional to what it watched.
    paths: HashMap<WatcherId, BTreeSet<Box<str>>>,
    /// How many recursive entries there are; while zero, nobody looks at ancestors.
    recursive: usize,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// A one-shot watch, set by a read.
    pub(super) fn add_one_shot(&mut self, book: Book, path: &str, watcher: WatcherId) {
        self.add(book, path, watcher, Kind::OneShot);
    }

    /// A watch that stays.
    pub(super) fn add_persistent(&mut self, path: &str, watcher: WatcherId, mode: AddWatchMode) {
        match mode {
            AddWatchMode::Persistent => {
                self.add(Book::Data, path, watcher, Kind::Persistent);
                self.add(Book::Child, path, watcher, Kind::Persistent);
            }
            AddWatchMode::PersistentRecursive => {
                self.add(Book::Data, path, watcher, Kind::Recursive);
            }
        }
    }

    fn add(&mut self, book: Book, path: &str, watcher: WatcherId, kind: Kind) {
        let entries = book_of(book, &mut self.data, &mut self.child);
        if !entries.contains_key(path) {
            entries.insert(path.into(), BTreeMap::new());
        }
        let kinds = entries.get_mut(path).expect("just inserted").entry(watcher).or_default();
        let flag = kinds.flag(kind);
        if !*flag {
            *flag = true;
            self.recursive += usize::from(kind == Kind::Recursive);
        }
        let paths = self.paths.entry(watcher).or_default();
        if !paths.contains(path) {
            paths.insert(path.into());
        }
    }

    /// Whether the watcher has such a watch here.
    pub(super) fn contains(&self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        selections(kind).iter().any(|(book, kind)| {
            let entries = self.book(*book);
            entries
                .get(path)
                .and_then(|watchers| watchers.get(&watcher))
                .is_some_and(|kinds| *{ *kinds }.flag(*kind))
        })
    }

    /// Forgets such watches of one watcher here; says whether there were any.
    pub(super) fn remove(&mut self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        let mut found = false;
        for (book, kind) in selections(kind) {
            let entries = book_of(*book, &mut self.data, &mut self.child);
            let Some(kinds) = entries.get_mut(path).and_then(|watchers| watchers.get_mut(&watcher))
            else {
                continue;
            };
            let flag = kinds.flag(*kind);
            if *flag {
                *flag = false;
                found = true;
                self.recursive -= usize::from(*kind == Kind::Recursive);
            }
        }
        self.tidy(path, watcher);
        found
    }

    /// Forgets everything one watcher watched.
    pub(super) fn forget(&mut self, watcher: WatcherId) {
        for path in self.paths.remove(&watcher).unwrap_or_default() {
            for entries in [&mut self.data, &mut self.child] {
                if let Some(watchers) = entries.get_mut(&path) {
                    if let Some(kinds) = watchers.remove(&watcher) {
                        self.recursive -= usize::from(kinds.recursive);
                    }
                    if watchers.is_empty() {
                        entries.remove(&path);
                    }
                }
            }
        }
    }

    /// Everybody to be told that `kind` happened at `path`, by one book; one-shot watches are used up.
    pub(super) fn trigger(&mut self, book: Book, at: &str, kind: EventKind) -> BTreeSet<WatcherId> {
        let mut told = BTreeSet::new();
        let entries = book_of(book, &mut self.data, &mut self.child);
        let mut used_up = Vec::new();
        if let Some(watchers) = entries.get_mut(at) {
            for (watcher, kinds) in watchers.iter_mut() {
                if kinds.one_shot || kinds.persistent || kinds.recursive {
                    told.insert(*watcher);
                }
                if kinds.one_shot {
                    kinds.one_shot = false;
                    used_up.push(*watcher);
                }
            }
        }
        if book == Book::Data && self.recursive > 0 && kind != EventKind::NodeChildrenChanged {
            for ancestor in path::ancestry(at).skip(1) {
                if let Some(watchers) = entries.get(ancestor) {
                    told.extend(
                        watchers.iter().filter(|(_, kinds)| kinds.recursive).map(|(id, _)| *id),
                    );
                }
            }
        }
        for watcher in used_up {
            self.tidy(at, watcher);
        }
        told
    }

    /// How many connections watch, how many paths are watched, how many watches there are.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let paths: BTreeSet<&str> =
            self.data.keys().chain(self.child.keys()).map(|path| &**path).collect();
        let total = self.data.values().chain(self.child.values()).map(BTreeMap::len).sum();
        (self.paths.len(), paths.len(), total)
    }

    fn book(&self, book: Book) -> &Entries {
        match book {
            Book::Data => &self.data,
            Book::Child => &self.child,
        }
    }

    /// Drops what has become empty for one watcher on one path.
    fn tidy(&mut self, path: &str, watcher: WatcherId) {
        let mut anything_left = false;
        for entries in [&mut self.data, &mut self.child] {
            if let Some(watchers) = entries.get_mut(path) {
                if watchers.get(&watcher).is_some_and(|kinds| kinds.is_empty()) {
                    watchers.remove(&watcher);
                }
                anything_left |= watchers.contains_key(&watcher);
                if watchers.is_empty() {
                    entries.remove(path);
                }
            }
        }
        if !anything_left && let Some(paths) = self.paths.get_mut(&watcher) {
            paths.remove(path);
            if paths.is_empty() {
                self.paths.remove(&watcher);
            }
        }
    }
}

fn book_of<'a>(book: Book, data: &'a mut Entries, child: &'a mut Entries) -> &'a mut Entries {
    match book {
        Book::Data => data,
        Book::Child => child,
    }
}

fn selections(kind: WatcherType) -> &'static [(Book, Kind)] {
    match kind {
        WatcherType::Children => &[(Book::Child, Kind::OneShot)],
        WatcherType::Data => &[(Book::Data, Kind::OneShot)],
        WatcherType::Persistent => {
            &[(Book::Data, Kind::Persistent), (Book::Child, Kind::Persistent)]
        }
        WatcherType::PersistentRecursive => &[(Book::Data, Kind::Recursive)],
        WatcherType::Any => &[
            (Book::Data, Kind::OneShot),
            (Book::Child, Kind::OneShot),
            (Book::Data, Kind::Persistent),
            (Book::Child, Kind::Persistent),
            (Book::Data, Kind::Recursive),
        ],
    }
}
