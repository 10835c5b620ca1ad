//! The tree and its only write path.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    access::AccessChecks,
    apply::{AppliedChange, NodeEvent},
    lifetime::Lifetime,
    transaction::{Change, Transaction},
    watches::{Table, WatcherId, Watches},
};
use crate::wire::{Acl, AuthId, Code, EventKind, Op, Perms, Stat};

/// ZooKeeper's tree: nodes, sessions and watches.
#[derive(Debug)]
pub struct Tree {
    /// Shared with frozen trees: a node is copied when it changes while a frozen tree still has it.
    pub(super) nodes: HashMap<Arc<str>, Arc<Node>>,
    pub(super) sessions: BTreeMap<i64, Session>,
    /// Paths of containers and of nodes with a time to live, which [`Tree::sweep`] may delete.
    pub(super) sweep_candidates: BTreeSet<Box<str>>,
    pub(super) watches: Watches,
    pub(super) acls: AclInterner,
    pub(super) zxid: i64,
    pub(super) data_bytes: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) data: Option<Bytes>,
    pub(super) acl: Arc<[Acl]>,
    pub(super) meta: Meta,
    pub(super) children: BTreeSet<Arc<str>>,
}

/// The part of a node that undoing a multi restores.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meta {
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) pzxid: i64,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    pub(super) aversion: i32,
    /// Number of children ever created under this node; the next sequence number.
    pub(super) creates: i32,
    pub(super) owner: i64,
}

impl Node {
    pub(super) fn child_names(&self) -> Vec<String> {
        self.children.iter().map(std::string::ToString::to_string).collect()
    }

    pub(super) fn stat(&self) -> Stat {
        let num_children = self.children.len() as i32;
        Stat {
            czxid: self.meta.czxid,
            mzxid: self.meta.mzxid,
            ctime: self.meta.ctime,
            mtime: self.meta.mtime,
            version: self.meta.version,
            // Counts creations and deletions, so a child that was created and deleted counts twice.
            cversion: self.meta.creates.wrapping_mul(2).wrapping_sub(num_children),
            aversion: self.meta.aversion,
            // Clients see an owner for ephemerals only, not the markers of containers and times to live.
            ephemeral_owner: Lifetime::from_owner(self.meta.owner).session().unwrap_or(0),
            data_length: self.data.as_ref().map_or(0, Bytes::len) as i32,
            num_children,
            pzxid: self.meta.pzxid,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) timeout_ms: i32,
    pub(super) password: Bytes,
    pub(super) ephemerals: BTreeSet<Box<str>>,
}

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: i64,
    pub timeout_ms: i32,
    /// Number of ephemeral nodes the session owns.
    pub ephemerals: usize,
}

/// Stores each distinct access list once, because most nodes use one of a few lists.
#[derive(Debug, Default)]
pub(super) struct AclInterner {
    lists: HashSet<Arc<[Acl]>>,
    /// Number of lists at which unused ones are dropped next.
    prune_at: usize,
}

impl AclInterner {
    pub(super) fn intern(&mut self, list: &[Acl]) -> Arc<[Acl]> {
        if let Some(interned) = self.lists.get(list) {
            return Arc::clone(interned);
        }
        if self.lists.len() >= self.prune_at {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.prune_at = (self.lists.len() * 2).max(64);
        }
        let list: Arc<[Acl]> = list.into();
        self.lists.insert(Arc::clone(&list));
        list
    }
}

/// The session on whose behalf an operation runs, with its identities.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub session: i64,
    /// The ids its connection authenticated, and its address.
    pub ids: &'a [AuthId],
}

/// Result of one successful operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    Created { path: String, stat: Stat },
    Deleted,
    Set { stat: Stat },
    AclSet { stat: Stat },
    Checked,
}

/// A refused write. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the refused operation.
    pub index: usize,
    pub code: Code,
}

/// Tells a watcher about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub watcher: WatcherId,
    pub kind: EventKind,
    pub path: Arc<str>,
    /// The node's access list, `None` if everyone may read the node. The notification must not reach a watcher that may not
    /// read the node.
    pub acl: Option<Arc<[Acl]>>,
}

/// Result of a write.
#[derive(Debug)]
pub struct WriteResult {
    /// Transaction id; a refused write has one too.
    pub zxid: i64,
    /// One result per operation, or the operation that was refused.
    pub outcome: Result<Vec<OpResult>, Refusal>,
    /// The transaction to log; `None` if nothing changed.
    pub transaction: Option<Transaction>,
    /// Notifications to send, in order.
    pub notifications: Vec<Notification>,
}

/// A transaction that cannot be applied to this tree: it belongs to another tree, or earlier transactions are missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("transaction {zxid:#x} does not fit the tree: {change}")]
pub struct ReplayError {
    pub zxid: i64,
    /// The change that cannot be applied.
    pub change: String,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Creates a tree with the nodes that every ZooKeeper server starts with. The first write is transaction 1.
    pub fn new() -> Self {
        let mut tree = Self {
            nodes: HashMap::new(),
            sessions: BTreeMap::new(),
            sweep_candidates: BTreeSet::new(),
            watches: Watches::default(),
            acls: AclInterner::default(),
            zxid: 0,
            data_bytes: 0,
        };
        let acl = tree.acls.intern(&Acl::open());
        for path in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
            let (acl, meta) = (Arc::clone(&acl), Meta::default());
            let node = Node { data: Some(Bytes::new()), acl, meta, children: BTreeSet::new() };
            tree.attach(path, node);
        }
        tree
    }

    /// Id of the newest transaction.
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// Ensures that later transactions get ids above `zxid`.
    pub fn raise_zxid(&mut self, zxid: i64) {
        self.zxid = self.zxid.max(zxid);
    }

    /// Performs all of `ops`, or none of them if one is refused.
    pub fn write(&mut self, caller: Caller<'_>, ops: &[Op], now: i64) -> WriteResult {
        let zxid = self.next_zxid();
        let mut access = AccessChecks::of(caller);
        let mut applied: Vec<AppliedChange> = Vec::with_capacity(ops.len());
        let mut results = Vec::with_capacity(ops.len());
        let mut changes = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            let change = match self.prepare(&mut access, op) {
                Ok(change) => change,
                Err(code) => {
                    for step in applied.into_iter().rev() {
                        self.undo(step.undo);
                    }
                    return WriteResult {
                        zxid,
                        outcome: Err(Refusal { index, code }),
                        transaction: None,
                        notifications: Vec::new(),
                    };
                }
            };
            applied.push(self.apply(&change, zxid, now).expect("a prepared change fits"));
            results.push(self.op_result(op, &change));
            changes.push(change);
        }
        let notifications = self.trigger_watches(applied.into_iter().flat_map(|step| step.events));
        let transaction = Some(Transaction { zxid, time: now, changes });
        WriteResult { zxid, outcome: Ok(results), transaction, notifications }
    }

    /// Opens a session. The caller chooses the id and password.
    pub fn open_session(
        &mut self,
        id: i64,
        timeout_ms: i32,
        password: Bytes,
        now: i64,
    ) -> WriteResult {
        self.write_change(Change::OpenSession { id, timeout_ms, password }, now)
    }

    /// Closes a session, on its own request or because it expired, and deletes its ephemerals.
    pub fn close_session(&mut self, id: i64, now: i64) -> WriteResult {
        self.write_change(Change::CloseSession { id }, now)
    }

    /// Deletes containers that became empty and nodes whose time to live has passed, each in its own transaction.
    pub fn sweep(&mut self, now: i64) -> Vec<WriteResult> {
        let expired: Vec<Box<str>> = self
            .sweep_candidates
            .iter()
            .filter(|path| self.nodes.get(&***path).is_some_and(|node| is_expired(node, now)))
            .cloned()
            .collect();
        expired
            .into_iter()
            .map(|path| self.write_change(Change::Delete { path: path.into() }, now))
            .collect()
    }

    /// Applies a logged transaction again.
    pub fn replay(&mut self, transaction: &Transaction) -> Result<(), ReplayError> {
        for change in &transaction.changes {
            self.apply(change, transaction.zxid, transaction.time).ok_or_else(|| ReplayError {
                zxid: transaction.zxid,
                change: format!("{change:?}"),
            })?;
        }
        self.zxid = transaction.zxid;
        Ok(())
    }

    /// All sessions, ordered by id.
    pub fn sessions(&self) -> impl Iterator<Item = SessionInfo> {
        self.sessions.iter().map(|(id, session)| SessionInfo {
            id: *id,
            timeout_ms: session.timeout_ms,
            ephemerals: session.ephemerals.len(),
        })
    }

    /// Whether the session exists and has this password.
    pub fn is_valid_session(&self, id: i64, password: &[u8]) -> bool {
        // Constant time: no early exit on the first wrong byte, so that timing reveals nothing about a partial guess.
        self.sessions.get(&id).is_some_and(|session| {
            session.password.len() == password.len()
                && session.password.iter().zip(password).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
        })
    }

    fn next_zxid(&mut self) -> i64 {
        self.zxid += 1;
        self.zxid
    }

    fn write_change(&mut self, change: Change, now: i64) -> WriteResult {
        let zxid = self.next_zxid();
        let Some(applied) = self.apply(&change, zxid, now) else {
            let outcome = Err(Refusal { index: 0, code: Code::SESSION_EXPIRED });
            return WriteResult { zxid, outcome, transaction: None, notifications: Vec::new() };
        };
        let notifications = self.trigger_watches(applied.events.into_iter());
        let transaction = Some(Transaction { zxid, time: now, changes: vec![change] });
        WriteResult { zxid, outcome: Ok(vec![]), transaction, notifications }
    }

    fn op_result(&self, op: &Op, change: &Change) -> OpResult {
        let stat = |path: &str| self.nodes.get(path).map(|node| node.stat()).unwrap_or_default();
        match (op, change) {
            (Op::Create(_), Change::Create { path, .. }) => {
                OpResult::Created { path: path.clone(), stat: stat(path) }
            }
            (Op::SetData { path, .. }, _) => OpResult::Set { stat: stat(path) },
            (Op::SetAcl { path, .. }, _) => OpResult::AclSet { stat: stat(path) },
            (Op::Check { .. }, _) => OpResult::Checked,
            _ => OpResult::Deleted,
        }
    }

    /// Triggers the watches of each event. Returns the notifications for their watchers, in order.
    fn trigger_watches(&mut self, events: impl Iterator<Item = NodeEvent>) -> Vec<Notification> {
        if self.watches.is_empty() {
            return Vec::new();
        }
        let mut notifications = Vec::new();
        for NodeEvent { path, kind, acl, parent } in events {
            let notified = self.watches.trigger(Table::Data, &path, kind);
            let mut push = |watchers: &mut dyn Iterator<Item = WatcherId>,
                            path: &str,
                            kind,
                            acl: &Arc<[Acl]>| {
                let path: Arc<str> = path.into();
                // Most nodes are readable by everyone; then the receiver need not check the list.
                let open = super::is_allowed(acl, Perms::READ, &[]);
                notifications.extend(watchers.map(|watcher| Notification {
                    watcher,
                    kind,
                    path: Arc::clone(&path),
                    acl: (!open).then(|| Arc::clone(acl)),
                }));
            };
            push(&mut notified.iter().copied(), &path, kind, &acl);
            if kind == EventKind::NodeDeleted {
                // A watcher notified through a data watch is not notified again through a child watch.
                let also = self.watches.trigger(Table::Child, &path, kind);
                push(&mut also.difference(&notified).copied(), &path, kind, &acl);
            }
            if let Some((parent, parent_acl)) = parent {
                let kind = EventKind::NodeChildrenChanged;
                let notified = self.watches.trigger(Table::Child, &parent, kind);
                push(&mut notified.into_iter(), &parent, kind, &parent_acl);
            }
        }
        notifications
    }
}

/// Whether this is a container whose last child was deleted, or a childless node whose time to live has passed.
fn is_expired(node: &Node, now: i64) -> bool {
    node.children.is_empty()
        && match Lifetime::from_owner(node.meta.owner) {
            Lifetime::Container => node.meta.creates > 0,
            Lifetime::Ttl { millis } => now - node.meta.mtime > millis,
            Lifetime::Persistent | Lifetime::Ephemeral { .. } => false,
        }
}
