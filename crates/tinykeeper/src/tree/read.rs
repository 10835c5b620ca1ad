//! Reads, and the watches that reads set.

use bytes::Bytes;

use super::{
    access::{self, AccessChecks},
    model::{Caller, Node, Notification, Tree},
    watches::{Table, WatcherId},
};
use crate::wire::{
    Acl, AddWatchMode, Code, EventKind, MultiResult, Perms, ReadOp, SetWatches, Stat, WatcherType,
};

/// Bytes of results beyond which a `multiRead` is refused. No client accepts a reply of this size, and a request of one megabyte
/// could read a large node 50,000 times.
const MAX_MULTI_READ: usize = 16 << 20;

impl Tree {
    /// A node's stat. Sets the watch whether or not the node exists.
    pub fn exists(&mut self, path: &str, watch: Option<WatcherId>) -> Result<Stat, Code> {
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Table::Data, path, watcher);
        }
        self.nodes.get(path).map(|node| node.stat()).ok_or(Code::NO_NODE)
    }

    /// A node's data and stat.
    pub fn data(
        &mut self,
        caller: Caller<'_>,
        path: &str,
        watch: Option<WatcherId>,
    ) -> Result<(Option<Bytes>, Stat), Code> {
        let node = self.readable_node(&mut AccessChecks::of(caller), path)?;
        let result = (node.data.clone(), node.stat());
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Table::Data, path, watcher);
        }
        Ok(result)
    }

    /// The names of a node's children, sorted, and the node's stat.
    pub fn children(
        &mut self,
        caller: Caller<'_>,
        path: &str,
        watch: Option<WatcherId>,
    ) -> Result<(Vec<String>, Stat), Code> {
        let node = self.readable_node(&mut AccessChecks::of(caller), path)?;
        let result = (node.child_names(), node.stat());
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Table::Child, path, watcher);
        }
        Ok(result)
    }

    /// The result of each read; `MARSHALLING_ERROR` if all of them together are larger than a reply may be.
    pub fn multi_read(&self, caller: Caller<'_>, ops: &[ReadOp]) -> Result<Vec<MultiResult>, Code> {
        let mut access = AccessChecks::of(caller);
        let mut bytes = 0;
        let mut results = Vec::new();
        for op in ops {
            let result = self.read_one(&mut access, op).unwrap_or_else(MultiResult::Error);
            bytes += match &result {
                MultiResult::GetData { data, .. } => data.as_ref().map_or(0, Bytes::len),
                MultiResult::GetChildren { children } => {
                    children.iter().map(|name| name.len() + size_of::<String>()).sum()
                }
                _ => 0,
            } + size_of::<MultiResult>();
            if bytes > MAX_MULTI_READ {
                return Err(Code::MARSHALLING_ERROR);
            }
            results.push(result);
        }
        Ok(results)
    }

    fn read_one(&self, access: &mut AccessChecks<'_>, op: &ReadOp) -> Result<MultiResult, Code> {
        Ok(match op {
            ReadOp::GetData { path } => {
                let node = self.readable_node(access, path)?;
                MultiResult::GetData { data: node.data.clone(), stat: node.stat() }
            }
            ReadOp::GetChildren { path } => MultiResult::GetChildren {
                children: self.readable_node(access, path)?.child_names(),
            },
        })
    }

    /// A node's access list and stat; digests are hidden from callers without ADMIN.
    pub fn acl(&self, caller: Caller<'_>, path: &str) -> Result<(Vec<Acl>, Stat), Code> {
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        let mut access = AccessChecks::of(caller);
        access.check(&node.acl, Perms(Perms::READ.0 | Perms::ADMIN.0))?;
        let may_see_all = access.check(&node.acl, Perms::ADMIN).is_ok();
        let list = if may_see_all { node.acl.to_vec() } else { access::mask_digests(&node.acl) };
        Ok((list, node.stat()))
    }

    /// Number of nodes below `path`.
    pub fn descendant_count(&self, caller: Caller<'_>, path: &str) -> Result<usize, Code> {
        self.readable_node(&mut AccessChecks::of(caller), path)?;
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        Ok(self
            .nodes
            .keys()
            .filter(|key| key.len() > prefix.len() && key.starts_with(&prefix))
            .count())
    }

    /// Paths of the session's ephemerals that begin with `prefix`.
    pub fn ephemerals(&self, session: i64, prefix: &str) -> Vec<String> {
        self.sessions.get(&session).map_or_else(Vec::new, |session| {
            let all = session.ephemerals.iter().filter(|path| path.starts_with(prefix));
            all.map(std::string::ToString::to_string).collect()
        })
    }

    /// Sets a persistent watch.
    pub fn add_watch(&mut self, path: &str, watcher: WatcherId, mode: AddWatchMode) {
        self.watches.add_persistent(path, watcher, mode);
    }

    /// Whether the watcher has a watch of this kind on `path`.
    pub fn has_watch(&self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        self.watches.contains(path, watcher, kind)
    }

    /// Removes the watcher's watches of this kind on `path`; returns whether there were any.
    pub fn remove_watch(&mut self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        self.watches.remove(path, watcher, kind)
    }

    /// Removes all watches of one watcher.
    pub fn remove_watcher(&mut self, watcher: WatcherId) {
        self.watches.remove_watcher(watcher);
    }

    /// Restores the watches that a client had before its connection broke. A one-shot watch whose event happened meanwhile
    /// fires at once.
    pub fn set_watches(&mut self, watcher: WatcherId, wanted: &SetWatches) -> Vec<Notification> {
        let mut missed = Vec::new();
        let mut notify = |path: &str, kind| {
            missed.push(Notification { watcher, kind, path: path.into(), acl: None });
        };
        for path in &wanted.data {
            match self.nodes.get(path.as_str()) {
                None => notify(path, EventKind::NodeDeleted),
                Some(node) if node.meta.mzxid > wanted.relative_zxid => {
                    notify(path, EventKind::NodeDataChanged);
                }
                Some(_) => self.watches.add_one_shot(Table::Data, path, watcher),
            }
        }
        for path in &wanted.exist {
            if self.nodes.contains_key(path.as_str()) {
                notify(path, EventKind::NodeCreated);
            } else {
                self.watches.add_one_shot(Table::Data, path, watcher);
            }
        }
        for path in &wanted.child {
            match self.nodes.get(path.as_str()) {
                None => notify(path, EventKind::NodeDeleted),
                Some(node) if node.meta.pzxid > wanted.relative_zxid => {
                    notify(path, EventKind::NodeChildrenChanged);
                }
                Some(_) => self.watches.add_one_shot(Table::Child, path, watcher),
            }
        }
        for path in &wanted.persistent {
            self.watches.add_persistent(path, watcher, AddWatchMode::Persistent);
        }
        for path in &wanted.persistent_recursive {
            self.watches.add_persistent(path, watcher, AddWatchMode::PersistentRecursive);
        }
        missed
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Approximate size of all paths and data, in bytes.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Number of watches.
    pub fn watch_total(&self) -> usize {
        self.watches.total()
    }

    /// Approximate memory of the watches of one watcher and of all watchers, in bytes.
    pub fn watch_bytes(&self, watcher: WatcherId) -> (usize, usize) {
        self.watches.bytes(watcher)
    }

    /// Numbers of watchers, watched paths and watches.
    pub fn watch_count(&self) -> (usize, usize, usize) {
        self.watches.count()
    }

    fn readable_node(&self, access: &mut AccessChecks<'_>, path: &str) -> Result<&Node, Code> {
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        access.check(&node.acl, Perms::READ)?;
        Ok(node)
    }
}
