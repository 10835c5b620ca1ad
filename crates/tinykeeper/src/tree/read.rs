//! Reads, and the watches that come with them.

use bytes::Bytes;

use super::{
    access,
    model::{Caller, Node, Notification, Tree},
    prepare::allow,
    watches::{Book, WatcherId},
};
use crate::wire::{Acl, AddWatchMode, Code, EventKind, Perms, SetWatches, Stat, WatcherType};

impl Tree {
    /// A node's stat. The watch is set whether or not the node is there.
    pub fn exists(&mut self, path: &str, watch: Option<WatcherId>) -> Result<Stat, Code> {
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Book::Data, path, watcher);
        }
        self.nodes.get(path).map(Node::stat).ok_or(Code::NO_NODE)
    }

    /// A node's data.
    pub fn data(
        &mut self,
        caller: Caller<'_>,
        path: &str,
        watch: Option<WatcherId>,
    ) -> Result<(Option<Bytes>, Stat), Code> {
        let node = self.readable(caller, path)?;
        let answer = (node.data.clone(), node.stat());
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Book::Data, path, watcher);
        }
        Ok(answer)
    }

    /// A node's children, by name, and its stat.
    pub fn children(
        &mut self,
        caller: Caller<'_>,
        path: &str,
        watch: Option<WatcherId>,
    ) -> Result<(Vec<String>, Stat), Code> {
        let node = self.readable(caller, path)?;
        let answer =
            (node.children.iter().map(std::string::ToString::to_string).collect(), node.stat());
        if let Some(watcher) = watch {
            self.watches.add_one_shot(Book::Child, path, watcher);
        }
        Ok(answer)
    }

    /// A node's access list; digests are hidden from those who may not administer it.
    pub fn acl(&self, caller: Caller<'_>, path: &str) -> Result<(Vec<Acl>, Stat), Code> {
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        allow(node, Perms(Perms::READ.0 | Perms::ADMIN.0), caller)?;
        let may_see_all = allow(node, Perms::ADMIN, caller).is_ok();
        let list = if may_see_all { node.acl.to_vec() } else { access::masked(&node.acl) };
        Ok((list, node.stat()))
    }

    /// How many nodes are below this one.
    pub fn descendants(&self, caller: Caller<'_>, path: &str) -> Result<usize, Code> {
        self.readable(caller, path)?;
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        Ok(self
            .nodes
            .keys()
            .filter(|key| key.len() > prefix.len() && key.starts_with(&prefix))
            .count())
    }

    /// The ephemerals of a session whose paths begin with `prefix`.
    pub fn ephemerals(&self, session: i64, prefix: &str) -> Vec<String> {
        self.sessions.get(&session).map_or_else(Vec::new, |session| {
            let all = session.ephemerals.iter().filter(|path| path.starts_with(prefix));
            all.map(std::string::ToString::to_string).collect()
        })
    }

    /// A watch that stays.
    pub fn add_watch(&mut self, path: &str, watcher: WatcherId, mode: AddWatchMode) {
        self.watches.add_persistent(path, watcher, mode);
    }

    /// Whether the watcher has such a watch here.
    pub fn has_watch(&self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        self.watches.contains(path, watcher, kind)
    }

    /// Forgets such watches; says whether there were any.
    pub fn remove_watch(&mut self, path: &str, watcher: WatcherId, kind: WatcherType) -> bool {
        self.watches.remove(path, watcher, kind)
    }

    /// Forgets everything one watcher watched.
    pub fn forget_watcher(&mut self, watcher: WatcherId) {
        self.watches.forget(watcher);
    }

    /// Sets again what a client watched before its connection broke. One-shot watches whose moment came meanwhile fire at once.
    pub fn set_watches(&mut self, watcher: WatcherId, wanted: &SetWatches) -> Vec<Notification> {
        let mut missed = Vec::new();
        let mut tell = |path: &str, kind| {
            missed.push(Notification { watcher, kind, path: path.into(), acl: None });
        };
        for path in &wanted.data {
            match self.nodes.get(path.as_str()) {
                None => tell(path, EventKind::NodeDeleted),
                Some(node) if node.meta.mzxid > wanted.relative_zxid => {
                    tell(path, EventKind::NodeDataChanged);
                }
                Some(_) => self.watches.add_one_shot(Book::Data, path, watcher),
            }
        }
        for path in &wanted.exist {
            if self.nodes.contains_key(path.as_str()) {
                tell(path, EventKind::NodeCreated);
            } else {
                self.watches.add_one_shot(Book::Data, path, watcher);
            }
        }
        for path in &wanted.child {
            match self.nodes.get(path.as_str()) {
                None => tell(path, EventKind::NodeDeleted),
                Some(node) if node.meta.pzxid > wanted.relative_zxid => {
                    tell(path, EventKind::NodeChildrenChanged);
                }
                Some(_) => self.watches.add_one_shot(Book::Child, path, watcher),
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

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Roughly how many bytes paths and data take.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// How many watchers there are, how many paths they watch, how many watches that makes.
    pub fn watch_count(&self) -> (usize, usize, usize) {
        self.watches.count()
    }

    fn readable(&self, caller: Caller<'_>, path: &str) -> Result<&Node, Code> {
        let node = self.nodes.get(path).ok_or(Code::NO_NODE)?;
        allow(node, Perms::READ, caller)?;
        Ok(node)
    }
}
