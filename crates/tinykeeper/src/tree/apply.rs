//! Applies prepared changes, and undoes them when a later operation of the same multi is refused.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    lifetime::Lifetime,
    model::{Meta, Node, Session, Tree},
    path,
    transaction::Change,
};
use crate::wire::{Acl, EventKind};

/// A change that was applied: how to undo it, and the events it causes.
#[derive(Debug)]
pub(super) struct AppliedChange {
    pub(super) undo: Undo,
    pub(super) events: Vec<NodeEvent>,
}

/// A change of one node, with the access lists that decide which watchers may be notified.
#[derive(Debug)]
pub(super) struct NodeEvent {
    pub(super) path: Box<str>,
    pub(super) kind: EventKind,
    pub(super) acl: Arc<[Acl]>,
    /// Path and access list of the parent, if its list of children changed.
    pub(super) parent: Option<(Box<str>, Arc<[Acl]>)>,
}

/// The state to restore when a change is undone.
#[derive(Debug)]
pub(super) enum Undo {
    Nothing,
    Create { path: Box<str>, parent: Meta },
    Delete { path: Box<str>, node: Node, parent: Meta },
    SetData { path: Box<str>, data: Option<Bytes>, meta: Meta },
    SetAcl { path: Box<str>, acl: Arc<[Acl]>, meta: Meta },
}

impl Tree {
    /// Applies the change. Returns `None`, with nothing changed, if it does not fit the tree.
    pub(super) fn apply(&mut self, change: &Change, zxid: i64, now: i64) -> Option<AppliedChange> {
        match change {
            Change::Create { path, data, acl, lifetime } => {
                self.create_node(path, data.as_ref(), acl, *lifetime, zxid, now)
            }
            Change::Delete { path } => {
                let (node, parent, events) = self.delete_node(path, zxid)?;
                let undo = Undo::Delete { path: path.as_str().into(), node, parent };
                Some(AppliedChange { undo, events: vec![events] })
            }
            Change::SetData { path, data, version } => {
                let node = node_mut(&mut self.nodes, path)?;
                let meta = node.meta;
                let old = std::mem::replace(&mut node.data, copy(data.as_ref()));
                node.meta.version = *version;
                node.meta.mzxid = zxid;
                node.meta.mtime = now;
                self.data_bytes = self.data_bytes + len(node.data.as_ref()) - len(old.as_ref());
                let events = NodeEvent {
                    path: path.as_str().into(),
                    kind: EventKind::NodeDataChanged,
                    acl: Arc::clone(&node.acl),
                    parent: None,
                };
                let undo = Undo::SetData { path: path.as_str().into(), data: old, meta };
                Some(AppliedChange { undo, events: vec![events] })
            }
            Change::SetAcl { path, acl, version } => {
                let acl = self.acls.intern(acl);
                let node = node_mut(&mut self.nodes, path)?;
                let meta = node.meta;
                let old = std::mem::replace(&mut node.acl, acl);
                node.meta.aversion = *version;
                let undo = Undo::SetAcl { path: path.as_str().into(), acl: old, meta };
                Some(AppliedChange { undo, events: vec![] })
            }
            Change::Check => Some(AppliedChange { undo: Undo::Nothing, events: vec![] }),
            Change::OpenSession { id, timeout_ms, password } => {
                let session = Session {
                    timeout_ms: *timeout_ms,
                    password: Bytes::copy_from_slice(password),
                    ephemerals: BTreeSet::new(),
                };
                self.sessions.insert(*id, session);
                Some(AppliedChange { undo: Undo::Nothing, events: vec![] })
            }
            Change::CloseSession { id } => {
                let ephemerals = self.sessions.get(id)?.ephemerals.clone();
                let events = ephemerals
                    .iter()
                    .filter_map(|path| self.delete_node(path, zxid).map(|(_, _, events)| events))
                    .collect();
                self.sessions.remove(id);
                Some(AppliedChange { undo: Undo::Nothing, events })
            }
        }
    }

    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Nothing => {}
            Undo::Create { path, parent } => {
                self.detach(&path);
                self.restore_parent(&path, parent);
            }
            Undo::Delete { path, node, parent } => {
                self.attach(&path, node);
                self.restore_parent(&path, parent);
            }
            Undo::SetData { path, data, meta } => {
                if let Some(node) = node_mut(&mut self.nodes, &path) {
                    self.data_bytes =
                        self.data_bytes + len(data.as_ref()) - len(node.data.as_ref());
                    node.data = data;
                    node.meta = meta;
                }
            }
            Undo::SetAcl { path, acl, meta } => {
                if let Some(node) = node_mut(&mut self.nodes, &path) {
                    node.acl = acl;
                    node.meta = meta;
                }
            }
        }
    }

    fn create_node(
        &mut self,
        path: &str,
        data: Option<&Bytes>,
        acl: &[Acl],
        lifetime: Lifetime,
        zxid: i64,
        now: i64,
    ) -> Option<AppliedChange> {
        let parent_path = path::parent(path)?;
        let is_orphan =
            lifetime.session().is_some_and(|session| !self.sessions.contains_key(&session));
        if self.nodes.contains_key(path) || is_orphan {
            return None;
        }
        let parent = node_mut(&mut self.nodes, parent_path)?;
        let parent_meta = parent.meta;
        parent.meta.creates = parent.meta.creates.wrapping_add(1);
        parent.meta.pzxid = zxid;
        let parent_acl = Arc::clone(&parent.acl);
        let acl = self.acls.intern(acl);
        let meta = Meta {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: now,
            mtime: now,
            owner: lifetime.to_owner(),
            ..Meta::default()
        };
        let node =
            Node { data: copy(data), acl: Arc::clone(&acl), meta, children: BTreeSet::new() };
        self.attach(path, node);
        let events = NodeEvent {
            path: path.into(),
            kind: EventKind::NodeCreated,
            acl,
            parent: Some((parent_path.into(), parent_acl)),
        };
        let undo = Undo::Create { path: path.into(), parent: parent_meta };
        Some(AppliedChange { undo, events: vec![events] })
    }

    fn delete_node(&mut self, path: &str, zxid: i64) -> Option<(Node, Meta, NodeEvent)> {
        let parent_path = path::parent(path)?;
        if !self.nodes.get(path)?.children.is_empty() {
            return None;
        }
        let node = self.detach(path)?;
        let parent = node_mut(&mut self.nodes, parent_path)?;
        let parent_meta = parent.meta;
        parent.meta.pzxid = zxid;
        let events = NodeEvent {
            path: path.into(),
            kind: EventKind::NodeDeleted,
            acl: Arc::clone(&node.acl),
            parent: Some((parent_path.into(), Arc::clone(&parent.acl))),
        };
        Some((node, parent_meta, events))
    }

    /// Adds a node to every index.
    pub(super) fn attach(&mut self, path: &str, node: Node) {
        match Lifetime::from_owner(node.meta.owner) {
            Lifetime::Persistent => {}
            Lifetime::Container | Lifetime::Ttl { .. } => {
                self.sweep_candidates.insert(path.into());
            }
            Lifetime::Ephemeral { session } => {
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.ephemerals.insert(path.into());
                }
            }
        }
        if let Some(parent) =
            path::parent(path).and_then(|parent| node_mut(&mut self.nodes, parent))
        {
            parent.children.insert(path::name(path).into());
        }
        self.data_bytes += path.len() + len(node.data.as_ref());
        self.nodes.insert(path.into(), Arc::new(node));
    }

    /// Removes a node from every index.
    fn detach(&mut self, path: &str) -> Option<Node> {
        let node = Arc::unwrap_or_clone(self.nodes.remove(path)?);
        self.data_bytes -= path.len() + len(node.data.as_ref());
        if let Some(parent) =
            path::parent(path).and_then(|parent| node_mut(&mut self.nodes, parent))
        {
            parent.children.remove(path::name(path));
        }
        match Lifetime::from_owner(node.meta.owner) {
            Lifetime::Persistent => {}
            Lifetime::Container | Lifetime::Ttl { .. } => {
                self.sweep_candidates.remove(path);
            }
            Lifetime::Ephemeral { session } => {
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.ephemerals.remove(path);
                }
            }
        }
        Some(node)
    }

    fn restore_parent(&mut self, path: &str, meta: Meta) {
        if let Some(parent) =
            path::parent(path).and_then(|parent| node_mut(&mut self.nodes, parent))
        {
            parent.meta = meta;
        }
    }
}

/// The node to change; copied first if a frozen tree has it too.
fn node_mut<'a>(nodes: &'a mut HashMap<Arc<str>, Arc<Node>>, path: &str) -> Option<&'a mut Node> {
    nodes.get_mut(path).map(Arc::make_mut)
}

// Bytes from the wire are slices of a whole network buffer; a stored slice would keep that buffer alive.
fn copy(data: Option<&Bytes>) -> Option<Bytes> {
    data.map(|bytes| Bytes::copy_from_slice(bytes))
}

fn len(data: Option<&Bytes>) -> usize {
    data.map_or(0, Bytes::len)
}
