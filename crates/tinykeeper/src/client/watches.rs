//! Every watch of this client: which must be set on the server, and who is told what.
//!
//! The server sends one notification for each change however many watches of the connection match it, so handing it to each
//! of them is done here, by the server's own rules: a *persistent* watch sees all four kinds for exactly its node; a
//! *persistent recursive* one sees creation, deletion and data of its node and everything below, and never children.
//!
//! A server keeps watches for each connection, so losing the connection loses them all at once: [`Watches::suspend`] tells
//! everybody, [`Watches::set_again`] says what to ask of the next server, [`Watches::gap`] tells everybody it was done.

use std::{collections::HashMap, sync::Arc};

use super::{
    error::Error,
    watch::{GapCause, Queue, WatchEvent},
};
use crate::wire::{AddWatchMode, EventKind, SetWatches, WatcherEvent};

/// How many bytes of paths go into one `setWatches`: what the Java client sends, far below any server's limit.
const CHUNK: usize = 128 << 10;

/// The watches of one client.
#[derive(Debug)]
pub(super) struct Watches {
    // One entry for each path, not path and mode: ZooKeeper up to 3.8 keeps one mode for each path and connection.
    by_path: HashMap<String, Entry>,
    queue_limit: usize,
    next_id: u64,
}

#[derive(Debug)]
struct Entry {
    mode: AddWatchMode,
    /// How many `addWatch` for it are on their way: it must not be removed behind their back.
    adding: usize,
    queues: Vec<(u64, Arc<Queue>)>,
}

impl Watches {
    pub(super) fn new(queue_limit: usize) -> Self {
        Self { by_path: HashMap::new(), queue_limit, next_id: 0 }
    }

    /// An `addWatch` is about to be sent.
    pub(super) fn begin(&mut self, path: &str, mode: AddWatchMode) -> Result<(), Error> {
        let entry = self.by_path.entry(path.to_owned()).or_insert(Entry {
            mode,
            adding: 0,
            queues: Vec::new(),
        });
        if entry.mode != mode {
            return Err(Error::WatchConflict { path: path.to_owned() });
        }
        entry.adding += 1;
        Ok(())
    }

    /// An `addWatch` was answered well: its events wait in this queue from now on.
    pub(super) fn added(&mut self, path: &str) -> Option<(u64, Arc<Queue>)> {
        let entry = self.by_path.get_mut(path)?;
        entry.adding = entry.adding.saturating_sub(1);
        let id = self.next_id;
        self.next_id += 1;
        let queue = Arc::new(Queue::new(self.queue_limit));
        entry.queues.push((id, Arc::clone(&queue)));
        Some((id, queue))
    }

    /// An `addWatch` was refused, or never sent.
    pub(super) fn not_added(&mut self, path: &str) {
        if let Some(entry) = self.by_path.get_mut(path) {
            entry.adding = entry.adding.saturating_sub(1);
            if entry.is_unused() {
                self.by_path.remove(path);
            }
        }
    }

    /// A watch was dropped. Says whether the server should forget the path now.
    pub(super) fn dropped(&mut self, path: &str, id: u64) -> bool {
        let Some(entry) = self.by_path.get_mut(path) else {
            return false;
        };
        entry.queues.retain(|(other, _)| *other != id);
        let unused = entry.is_unused();
        if unused {
            self.by_path.remove(path);
        }
        unused
    }

    /// Whether a one-shot watch on this path would end a lasting one.
    pub(super) fn covers(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Tells everybody whom it concerns.
    pub(super) fn dispatch(&self, event: &WatcherEvent) {
        if event.kind == EventKind::None {
            return;
        }
        if let Some(entry) = self.by_path.get(&event.path)
            && (entry.mode == AddWatchMode::Persistent
                || event.kind != EventKind::NodeChildrenChanged)
        {
            entry.push(event);
        }
        if event.kind == EventKind::NodeChildrenChanged {
            return;
        }
        let mut below = event.path.as_str();
        while let Some(parent) = parent(below) {
            if let Some(entry) = self.by_path.get(parent)
                && entry.mode == AddWatchMode::PersistentRecursive
            {
                entry.push(event);
            }
            below = parent;
        }
    }

    /// The connection is gone, and with it what was on its way.
    pub(super) fn suspend(&mut self) {
        for entry in self.by_path.values_mut() {
            entry.adding = 0;
            entry.tell(&WatchEvent::Suspended);
        }
        self.by_path.retain(|_, entry| !entry.is_unused());
    }

    /// What to ask of a new connection so that every watch is set again, in pieces no server finds too large.
    pub(super) fn set_again(&self, relative_zxid: i64, max_frame: usize) -> Vec<SetWatches> {
        let limit = CHUNK.min(max_frame / 2);
        let mut chunks = Vec::new();
        let mut chunk = SetWatches { relative_zxid, ..SetWatches::default() };
        let mut size = 0;
        for (path, entry) in &self.by_path {
            if size > 0 && size + path.len() + 4 > limit {
                let empty = SetWatches { relative_zxid, ..SetWatches::default() };
                chunks.push(std::mem::replace(&mut chunk, empty));
                size = 0;
            }
            size += path.len() + 4;
            match entry.mode {
                AddWatchMode::Persistent => chunk.persistent.push(path.clone()),
                AddWatchMode::PersistentRecursive => chunk.persistent_recursive.push(path.clone()),
            }
        }
        if size > 0 {
            chunks.push(chunk);
        }
        chunks
    }

    /// These are set again.
    pub(super) fn gap(&self, set: &SetWatches, cause: GapCause) {
        for path in set.persistent.iter().chain(&set.persistent_recursive) {
            if let Some(entry) = self.by_path.get(path) {
                entry.tell(&WatchEvent::Gap(cause));
            }
        }
    }

    /// Nothing will follow.
    pub(super) fn close(&mut self) {
        for (_, entry) in self.by_path.drain() {
            for (_, queue) in entry.queues {
                queue.close();
            }
        }
    }
}

impl Entry {
    fn is_unused(&self) -> bool {
        self.adding == 0 && self.queues.is_empty()
    }

    fn push(&self, event: &WatcherEvent) {
        self.tell(&WatchEvent::Changed { path: event.path.clone(), kind: event.kind });
    }

    fn tell(&self, event: &WatchEvent) {
        for (_, queue) in &self.queues {
            queue.push(event.clone());
        }
    }
}

/// The path one level up; the root has none.
fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() > 1 => Some("/"),
        0 => None,
        slash => Some(&path[..slash]),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::{client::watch::Watch, wire::KeeperState};

    use AddWatchMode::{Persistent, PersistentRecursive};
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};

    fn set(watches: &mut Watches, path: &str, mode: AddWatchMode) -> Watch {
        watches.begin(path, mode).unwrap();
        let (id, queue) = watches.added(path).unwrap();
        let (commands, _) = mpsc::unbounded_channel();
        Watch::new(path.to_owned(), mode, id, queue, commands.downgrade())
    }

    fn notify(watches: &Watches, kind: EventKind, path: &str) {
        let state = KeeperState::SYNC_CONNECTED;
        watches.dispatch(&WatcherEvent { kind, state, path: path.to_owned() });
    }

    fn seen(watch: &mut Watch) -> Vec<(EventKind, String)> {
        std::iter::from_fn(|| watch.try_next())
            .map(|event| match event {
                WatchEvent::Changed { path, kind } => (kind, path),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn watches_that_overlap_each_see_what_is_theirs_exactly_once() {
        let mut watches = Watches::new(16);
        let mut root = set(&mut watches, "/", PersistentRecursive);
        let mut above = set(&mut watches, "/a", PersistentRecursive);
        let mut twin = set(&mut watches, "/a", PersistentRecursive);
        let mut node = set(&mut watches, "/a/b", Persistent);
        let mut namesake = set(&mut watches, "/a/bb", PersistentRecursive);

        notify(&watches, NodeDataChanged, "/a/b");
        notify(&watches, NodeCreated, "/a/b/c");
        notify(&watches, NodeChildrenChanged, "/a/b");
        notify(&watches, NodeChildrenChanged, "/a");
        notify(&watches, NodeDeleted, "/a");
        notify(&watches, NodeCreated, "/other");

        let below_a = [
            (NodeDataChanged, "/a/b".to_owned()),
            (NodeCreated, "/a/b/c".to_owned()),
            (NodeDeleted, "/a".to_owned()),
        ];
        assert_eq!(seen(&mut above), below_a);
        assert_eq!(seen(&mut twin), below_a);
        assert_eq!(seen(&mut root)[..3], below_a);
        assert_eq!(
            seen(&mut node),
            [(NodeDataChanged, "/a/b".to_owned()), (NodeChildrenChanged, "/a/b".to_owned())]
        );
        assert_eq!(seen(&mut namesake), []);
    }

    #[test]
    fn a_second_mode_on_one_path_is_refused() {
        let mut watches = Watches::new(16);
        let _first = set(&mut watches, "/a", Persistent);

        assert_eq!(
            watches.begin("/a", PersistentRecursive),
            Err(Error::WatchConflict { path: "/a".into() })
        );
    }

    #[test]
    fn a_watch_is_removed_with_its_last_holder_and_not_behind_a_newcomer() {
        let mut watches = Watches::new(16);
        watches.begin("/a", Persistent).unwrap();
        let (first, _) = watches.added("/a").unwrap();
        watches.begin("/a", Persistent).unwrap();

        assert!(!watches.dropped("/a", first), "a newcomer is on its way");
        let (second, _) = watches.added("/a").unwrap();
        assert!(watches.dropped("/a", second));
        assert!(!watches.covers("/a"));
    }

    #[test]
    fn a_queue_nobody_drains_becomes_one_gap() {
        let mut watches = Watches::new(3);
        let mut watch = set(&mut watches, "/a", Persistent);

        for _ in 0..4 {
            notify(&watches, NodeDataChanged, "/a");
        }
        notify(&watches, NodeDeleted, "/a");

        assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Overflow)));
        assert_eq!(seen(&mut watch), [(NodeDeleted, "/a".to_owned())]);
    }

    #[test]
    fn blindness_survives_an_overflow() {
        let mut watches = Watches::new(1);
        let mut watch = set(&mut watches, "/a", Persistent);

        notify(&watches, NodeDataChanged, "/a");
        watches.suspend();

        assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Overflow)));
        assert_eq!(watch.try_next(), Some(WatchEvent::Suspended));
    }

    #[test]
    fn what_is_set_again_is_cut_into_pieces_and_nothing_is_forgotten() {
        let mut watches = Watches::new(16);
        let held: Vec<_> = (0..300)
            .map(|index| {
                let mode = if index % 2 == 0 { Persistent } else { PersistentRecursive };
                set(&mut watches, &format!("/{index:0>1000}"), mode)
            })
            .collect();

        let chunks = watches.set_again(7, 1 << 20);

        assert_eq!(chunks.len(), 3);
        assert!(chunks.iter().all(|chunk| chunk.relative_zxid == 7));
        let again: usize = chunks
            .iter()
            .map(|chunk| chunk.persistent.len() + chunk.persistent_recursive.len())
            .sum();
        assert_eq!(again, held.len());
    }
}
