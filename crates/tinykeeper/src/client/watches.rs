//! All watches of a client: those set on the server, and the queues that receive their events.
//!
//! The server sends one notification per change, however many watches of the connection match it. This module distributes it to
//! the watches by the server's rules: a *persistent* watch sees all four kinds of events of exactly its node; a *persistent
//! recursive* watch sees creation, deletion and data changes of its node and all descendants, but no changes of children lists.
//!
//! A server stores watches per connection, so they are all lost with the connection. [`Watches::suspend`] reports the loss,
//! [`Watches::restore_requests`] returns the requests that restore the watches, [`Watches::report_gap`] reports that it was done.

use std::{collections::HashMap, sync::Arc};

use super::{
    error::Error,
    watch::{EventQueue, GapCause, WatchEvent},
};
use crate::wire::{AddWatchMode, EventKind, SetWatches, WatcherEvent};

/// Maximum bytes of paths in one `setWatches`: the Java client's limit, far below any server's.
const CHUNK: usize = 128 << 10;

/// The watches of one client.
#[derive(Debug)]
pub(super) struct Watches {
    // One entry per path, not per path and mode: ZooKeeper up to 3.8 stores one mode per path and connection.
    by_path: HashMap<String, Entry>,
    queue_limit: usize,
    next_id: u64,
}

#[derive(Debug)]
struct Entry {
    mode: AddWatchMode,
    /// Number of pending `addWatch` requests for the path; the entry must not be removed while there are any.
    adding: usize,
    queues: Vec<(u64, Arc<EventQueue>)>,
}

impl Watches {
    pub(super) fn new(queue_limit: usize) -> Self {
        Self { by_path: HashMap::new(), queue_limit, next_id: 0 }
    }

    /// Registers an `addWatch` that is about to be sent.
    pub(super) fn begin_add(&mut self, path: &str, mode: AddWatchMode) -> Result<(), Error> {
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

    /// Completes a successful `addWatch`; returns the id and the queue of the new watch.
    pub(super) fn complete_add(&mut self, path: &str) -> Option<(u64, Arc<EventQueue>)> {
        let entry = self.by_path.get_mut(path)?;
        entry.adding = entry.adding.saturating_sub(1);
        let id = self.next_id;
        self.next_id += 1;
        let queue = Arc::new(EventQueue::new(self.queue_limit));
        entry.queues.push((id, Arc::clone(&queue)));
        Some((id, queue))
    }

    /// Cancels an `addWatch` that was refused or never sent.
    pub(super) fn cancel_add(&mut self, path: &str) {
        if let Some(entry) = self.by_path.get_mut(path) {
            entry.adding = entry.adding.saturating_sub(1);
            if entry.is_unused() {
                self.by_path.remove(path);
            }
        }
    }

    /// Removes a dropped watch; returns whether the watch on the server must be removed too.
    pub(super) fn remove(&mut self, path: &str, id: u64) -> bool {
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

    /// Whether there is a persistent watch on this path, which a one-shot watch would end.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Distributes a notification to all matching watches.
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

    /// Reports the loss of the connection, which also loses pending `addWatch` requests.
    pub(super) fn suspend(&mut self) {
        for entry in self.by_path.values_mut() {
            entry.adding = 0;
            entry.report(&WatchEvent::Suspended);
        }
        self.by_path.retain(|_, entry| !entry.is_unused());
    }

    /// The requests that restore every watch on a new connection, split so that no server refuses them as too large.
    pub(super) fn restore_requests(&self, relative_zxid: i64, max_frame: usize) -> Vec<SetWatches> {
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

    /// Reports a gap to the watches that `set` restored.
    pub(super) fn report_gap(&self, set: &SetWatches, cause: GapCause) {
        for path in set.persistent.iter().chain(&set.persistent_recursive) {
            if let Some(entry) = self.by_path.get(path) {
                entry.report(&WatchEvent::Gap(cause));
            }
        }
    }

    /// Ends all watches.
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
        self.report(&WatchEvent::Changed { path: event.path.clone(), kind: event.kind });
    }

    fn report(&self, event: &WatchEvent) {
        for (_, queue) in &self.queues {
            queue.push(event.clone());
        }
    }
}

/// The parent path; `None` for the root.
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
        watches.begin_add(path, mode).unwrap();
        let (id, queue) = watches.complete_add(path).unwrap();
        let (commands, _) = mpsc::unbounded_channel();
        Watch::new(path.to_owned(), mode, id, queue, commands.downgrade())
    }

    fn notify(watches: &Watches, kind: EventKind, path: &str) {
        let state = KeeperState::SYNC_CONNECTED;
        watches.dispatch(&WatcherEvent { kind, state, path: path.to_owned() });
    }

    fn events(watch: &mut Watch) -> Vec<(EventKind, String)> {
        std::iter::from_fn(|| watch.try_next())
            .map(|event| match event {
                WatchEvent::Changed { path, kind } => (kind, path),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn overlapping_watches_each_see_a_matching_event_once() {
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
        assert_eq!(events(&mut above), below_a);
        assert_eq!(events(&mut twin), below_a);
        assert_eq!(events(&mut root)[..3], below_a);
        assert_eq!(
            events(&mut node),
            [(NodeDataChanged, "/a/b".to_owned()), (NodeChildrenChanged, "/a/b".to_owned())]
        );
        assert_eq!(events(&mut namesake), []);
    }

    #[test]
    fn second_mode_on_the_same_path_is_refused() {
        let mut watches = Watches::new(16);
        let _first = set(&mut watches, "/a", Persistent);

        assert_eq!(
            watches.begin_add("/a", PersistentRecursive),
            Err(Error::WatchConflict { path: "/a".into() })
        );
    }

    #[test]
    fn server_watch_is_removed_with_the_last_watch_unless_one_is_pending() {
        let mut watches = Watches::new(16);
        watches.begin_add("/a", Persistent).unwrap();
        let (first, _) = watches.complete_add("/a").unwrap();
        watches.begin_add("/a", Persistent).unwrap();

        assert!(!watches.remove("/a", first), "another addWatch is pending");
        let (second, _) = watches.complete_add("/a").unwrap();
        assert!(watches.remove("/a", second));
        assert!(!watches.contains("/a"));
    }

    #[test]
    fn overflowing_queue_becomes_one_gap() {
        let mut watches = Watches::new(3);
        let mut watch = set(&mut watches, "/a", Persistent);

        for _ in 0..4 {
            notify(&watches, NodeDataChanged, "/a");
        }
        notify(&watches, NodeDeleted, "/a");

        assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Overflow)));
        assert_eq!(events(&mut watch), [(NodeDeleted, "/a".to_owned())]);
    }

    #[test]
    fn overflow_keeps_the_suspended_event() {
        let mut watches = Watches::new(1);
        let mut watch = set(&mut watches, "/a", Persistent);

        notify(&watches, NodeDataChanged, "/a");
        watches.suspend();

        assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Overflow)));
        assert_eq!(watch.try_next(), Some(WatchEvent::Suspended));
    }

    #[test]
    fn restore_requests_are_split_and_complete() {
        let mut watches = Watches::new(16);
        let held: Vec<_> = (0..300)
            .map(|index| {
                let mode = if index % 2 == 0 { Persistent } else { PersistentRecursive };
                set(&mut watches, &format!("/{index:0>1000}"), mode)
            })
            .collect();

        let chunks = watches.restore_requests(7, 1 << 20);

        assert_eq!(chunks.len(), 3);
        assert!(chunks.iter().all(|chunk| chunk.relative_zxid == 7));
        let again: usize = chunks
            .iter()
            .map(|chunk| chunk.persistent.len() + chunk.persistent_recursive.len())
            .sum();
        assert_eq!(again, held.len());
    }
}
