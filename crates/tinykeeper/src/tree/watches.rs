//! One-shot, persistent and persistent recursive watches.
//!
//! There are two tables, as in ZooKeeper: *data* (node created, deleted, data changed) and *child* (list of children changed,
//! node deleted). A persistent watch is in both tables, a recursive one only in the data table. A watcher is notified of an
//! event once, however many of its watches match. Unlike in servers before 3.9, a one-shot and a persistent watch on the same
//! path do not replace each other.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};

use super::path;
use crate::wire::{AddWatchMode, EventKind, WatcherType};

/// Identifies a watcher: the server's number for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatcherId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Data,
    Child,
}

/// The modes in which one watcher watches one path in one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modes {
    one_shot: bool,
    persistent: bool,
    recursive: bool,
}

impl Modes {
    fn is_empty(self) -> bool {
        self == Modes::default()
    }

    fn flag(&mut self, mode: Mode) -> &mut bool {
        match mode {
            Mode::OneShot => &mut self.one_shot,
            Mode::Persistent => &mut self.persistent,
            Mode::Recursive => &mut self.recursive,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    OneShot,
    Persistent,
    Recursive,
}

type WatchersByPath = HashMap<Box<str>, BTreeMap<WatcherId, Modes>>;

/// Approximate memory of a watch, in bytes, beyond its path.
const WATCH_OVERHEAD: usize = 128;

/// The paths that one watcher watches.
#[derive(Debug, Default)]
struct WatchedPaths {
    paths: BTreeSet<Box<str>>,
    bytes: usize,
}

/// All watches on one tree.
#[derive(Debug, Default)]
pub(super) struct Watches {
    data: WatchersByPath,
    child: WatchersByPath,
    /// Paths by watcher, so that removing a watcher takes time proportional to its watches.
    paths: HashMap<WatcherId, WatchedPaths>,
    /// Approximate memory of all watches.
    bytes: usize,
    /// Number of entries in both tables.
    total: usize,
    /// Number of recursive watches by the length of their path. Triggering looks only for ancestors of these lengths: looking for
    /// every ancestor of a deep path would take time proportional to the square of its length.
    recursive: BTreeMap<usize, usize>,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn add_one_shot(&mut self, table: Table, path: &str, watcher: WatcherId) {
        self.add(table, path, watcher, Mode::OneShot);
    }

    pub(super) fn add_persistent(&mut self, path: &str, watcher: WatcherId, mode: AddWatchMode) {
        match mode {
            AddWatchMode::Persistent => {
                self.add(Table::Data, path, watcher, Mode::Persistent);
                self.add(Table::Child, path, watcher, Mode::Persistent);
            }
            AddWatchMode::PersistentRecursive => {
                self.add(Table::Data, path, watcher, Mode::Recursive);
            }
        }
    }

    fn add(&mut self, table: Table, path: &str, watcher: WatcherId, mode: Mode) {
        let entries = table_mut(table, &mut self.data, &mut self.child);
        if !entries.contains_key(path) {
            entries.insert(path.into(), BTreeMap::new());
        }
        let watchers = entries.get_mut(path).expect("just inserted");
        let modes = watchers.entry(watcher).or_insert_with(|| {
            self.total += 1;
            Modes::default()
        });
        let flag = modes.flag(mode);
        if !*flag {
            *flag = true;
            if mode == Mode::Recursive {
                *self.recursive.entry(path.len()).or_default() += 1;
            }
        }
        let own = self.paths.entry(watcher).or_default();
        if !own.paths.contains(path) {
            own.paths.insert(path.into());
            own.bytes += watch_bytes(path);
            self.bytes += watch_bytes(path);
        }
    }

    /// Whether the watcher has a watch of this kind on `path`.
    pub(super) fn contains(&self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        selections(kind).iter().any(|(table, mode)| {
            let entries = self.table(*table);
            entries
                .get(path)
                .and_then(|watchers| watchers.get(&watcher))
                .is_some_and(|modes| *{ *modes }.flag(*mode))
        })
    }

    /// Removes the watcher's watches of this kind on `path`; returns whether there were any.
    pub(super) fn remove(&mut self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        let mut found = false;
        for (table, mode) in selections(kind) {
            let entries = table_mut(*table, &mut self.data, &mut self.child);
            let Some(modes) = entries.get_mut(path).and_then(|watchers| watchers.get_mut(&watcher))
            else {
                continue;
            };
            let flag = modes.flag(*mode);
            if *flag {
                *flag = false;
                found = true;
                if *mode == Mode::Recursive {
                    forget_length(&mut self.recursive, path.len());
                }
            }
        }
        self.prune(path, watcher);
        found
    }

    /// Removes all watches of one watcher.
    pub(super) fn remove_watcher(&mut self, watcher: WatcherId) {
        let own = self.paths.remove(&watcher).unwrap_or_default();
        self.bytes -= own.bytes;
        for path in own.paths {
            for entries in [&mut self.data, &mut self.child] {
                if let Some(watchers) = entries.get_mut(&path) {
                    if let Some(modes) = watchers.remove(&watcher) {
                        self.total -= 1;
                        if modes.recursive {
                            forget_length(&mut self.recursive, path.len());
                        }
                    }
                    if watchers.is_empty() {
                        entries.remove(&path);
                    }
                }
            }
        }
    }

    /// Returns the watchers in one table to notify that `kind` happened at path `at`; removes the one-shot watches that fire.
    pub(super) fn trigger(
        &mut self,
        table: Table,
        at: &str,
        kind: EventKind,
    ) -> BTreeSet<WatcherId> {
        let mut notified = BTreeSet::new();
        let entries = table_mut(table, &mut self.data, &mut self.child);
        let mut fired = Vec::new();
        if let Some(watchers) = entries.get_mut(at) {
            for (watcher, modes) in watchers.iter_mut() {
                if modes.one_shot || modes.persistent || modes.recursive {
                    notified.insert(*watcher);
                }
                if modes.one_shot {
                    modes.one_shot = false;
                    fired.push(*watcher);
                }
            }
        }
        if table == Table::Data && kind != EventKind::NodeChildrenChanged {
            let lengths = self.recursive.range(..at.len()).map(|(length, _)| *length);
            for ancestor in lengths.filter_map(|length| path::ancestor_of_length(at, length)) {
                if let Some(watchers) = entries.get(ancestor) {
                    notified.extend(
                        watchers.iter().filter(|(_, modes)| modes.recursive).map(|(id, _)| *id),
                    );
                }
            }
        }
        for watcher in fired {
            self.prune(at, watcher);
        }
        notified
    }

    /// Numbers of watchers, watched paths and watches.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let only_child = self.child.keys().filter(|path| !self.data.contains_key(*path));
        (self.paths.len(), self.data.len() + only_child.count(), self.total)
    }

    /// Number of watches.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Approximate memory of the watches of one watcher and of all watchers.
    pub(super) fn bytes(&self, watcher: WatcherId) -> (usize, usize) {
        (self.paths.get(&watcher).map_or(0, |own| own.bytes), self.bytes)
    }

    fn table(&self, table: Table) -> &WatchersByPath {
        match table {
            Table::Data => &self.data,
            Table::Child => &self.child,
        }
    }

    /// Drops the entries of one watcher on one path that have become empty.
    fn prune(&mut self, path: &str, watcher: WatcherId) {
        let mut still_watches = false;
        for entries in [&mut self.data, &mut self.child] {
            if let Some(watchers) = entries.get_mut(path) {
                if watchers.get(&watcher).is_some_and(|modes| modes.is_empty()) {
                    watchers.remove(&watcher);
                    self.total -= 1;
                }
                still_watches |= watchers.contains_key(&watcher);
                if watchers.is_empty() {
                    entries.remove(path);
                }
            }
        }
        if !still_watches
            && let Some(own) = self.paths.get_mut(&watcher)
            && own.paths.remove(path)
        {
            own.bytes -= watch_bytes(path);
            self.bytes -= watch_bytes(path);
            if own.paths.is_empty() {
                self.paths.remove(&watcher);
            }
        }
    }
}

/// Approximate memory of a watch on this path.
pub fn watch_bytes(path: &str) -> usize {
    path.len() + WATCH_OVERHEAD
}

fn forget_length(lengths: &mut BTreeMap<usize, usize>, length: usize) {
    if let Entry::Occupied(mut count) = lengths.entry(length) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

fn table_mut<'a>(
    table: Table,
    data: &'a mut WatchersByPath,
    child: &'a mut WatchersByPath,
) -> &'a mut WatchersByPath {
    match table {
        Table::Data => data,
        Table::Child => child,
    }
}

fn selections(kind: WatcherType) -> &'static [(Table, Mode)] {
    match kind {
        WatcherType::Children => &[(Table::Child, Mode::OneShot)],
        WatcherType::Data => &[(Table::Data, Mode::OneShot)],
        WatcherType::Persistent => {
            &[(Table::Data, Mode::Persistent), (Table::Child, Mode::Persistent)]
        }
        WatcherType::PersistentRecursive => &[(Table::Data, Mode::Recursive)],
        WatcherType::Any => &[
            (Table::Data, Mode::OneShot),
            (Table::Child, Mode::OneShot),
            (Table::Data, Mode::Persistent),
            (Table::Child, Mode::Persistent),
            (Table::Data, Mode::Recursive),
        ],
    }
}
