//! The tree itself and its one door for writes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    apply::{Applied, Touched},
    lifetime::Lifetime,
    transaction::{Change, Transaction},
    watches::{Book, WatcherId, Watches},
};
use crate::wire::{Acl, AuthId, Code, EventKind, Op, Perms, Stat};

/// ZooKeeper's tree: nodes, sessions and watches.
#[derive(Debug)]
pub struct Tree {
    pub(super) nodes: HashMap<Box<str>, Node>,
    pub(super) sessions: BTreeMap<i64, Session>,
    /// Nodes the sweep has to look at: containers and those with a time to live.
    pub(super) collectable: BTreeSet<Box<str>>,
    pub(super) watches: Watches,
    pub(super) acls: Acls,
    pub(super) zxid: i64,
    pub(super) data_bytes: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) data: Option<Bytes>,
    pub(super) acl: Arc<[Acl]>,
    pub(super) meta: Meta,
    pub(super) children: BTreeSet<Box<str>>,
}

/// The part of a node that a multi has to put back when it is undone.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meta {
    pub(super) czxid: i64,
    pub(super) mzxid: i64,
    pub(super) pzxid: i64,
    pub(super) ctime: i64,
    pub(super) mtime: i64,
    pub(super) version: i32,
    pub(super) aversion: i32,
    /// How many children were ever created here; draws the sequence numbers.
    pub(super) creates: i32,
    pub(super) owner: i64,
}

impl Node {
    pub(super) fn stat(&self) -> Stat {
        let num_children = self.children.len() as i32;
        Stat {
            czxid: self.meta.czxid,
            mzxid: self.meta.mzxid,
            ctime: self.meta.ctime,
            mtime: self.meta.mtime,
            version: self.meta.version,
            // Creations and deletions: every child that was created and is not there any more counts twice.
            cversion: self.meta.creates.wrapping_mul(2).wrapping_sub(num_children),
            aversion: self.meta.aversion,
            // The marks of containers and times to live are the server's own affair.
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

/// What the tree knows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its number.
    pub id: i64,
    /// Its timeout, in milliseconds.
    pub timeout_ms: i32,
    /// How many ephemerals live with it.
    pub ephemerals: usize,
}

/// Access lists, each held once: most nodes share one of a few.
#[derive(Debug, Default)]
pub(super) struct Acls {
    known: HashSet<Arc<[Acl]>>,
    tidy_at: usize,
}

impl Acls {
    pub(super) fn share(&mut self, list: &[Acl]) -> Arc<[Acl]> {
        if let Some(known) = self.known.get(list) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.tidy_at {
            self.known.retain(|list| Arc::strong_count(list) > 1);
            self.tidy_at = (self.known.len() * 2).max(64);
        }
        let list: Arc<[Acl]> = list.into();
        self.known.insert(Arc::clone(&list));
        list
    }
}

/// On whose behalf something is done.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The session.
    pub session: i64,
    /// Everything its connection proved, and its address.
    pub ids: &'a [AuthId],
}

/// What one operation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the protocol answers with")]
pub enum Done {
    Created { path: String, stat: Stat },
    Deleted,
    Set { stat: Stat },
    AclSet { stat: Stat },
    Checked,
}

/// The write was refused: nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which operation.
    pub index: usize,
    /// Why.
    pub code: Code,
}

/// Somebody is to be told of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Who.
    pub watcher: WatcherId,
    /// What happened.
    pub kind: EventKind,
    /// Where.
    pub path: Arc<str>,
    /// The node's access list unless the whole world may read it: who cannot read the node is not to be told.
    pub acl: Option<Arc<[Acl]>>,
}

/// What a write came to.
#[derive(Debug)]
pub struct Written {
    /// The transaction's number; refused writes have one, too.
    pub zxid: i64,
    /// One result for each operation, or the operation that was refused.
    pub outcome: Result<Vec<Done>, Refused>,
    /// For the log, unless nothing changed.
    pub transaction: Option<Transaction>,
    /// Whom to tell, in order.
    pub notifications: Vec<Notification>,
}

/// A transaction that does not fit this tree: it belongs to another one, or some before it are missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("transaction {zxid:#x} does not fit the tree: {change}")]
pub struct Misfit {
    /// The transaction.
    pub zxid: i64,
    /// The change that does not fit.
    pub change: String,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree with nothing but what every ZooKeeper server starts with. The first write is transaction 1.
    pub fn new() -> Self {
        let mut tree = Self {
            nodes: HashMap::new(),
            sessions: BTreeMap::new(),
            collectable: BTreeSet::new(),
            watches: Watches::default(),
            acls: Acls::default(),
            zxid: 0,
            data_bytes: 0,
        };
        let acl = tree.acls.share(&Acl::open());
        for path in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
            let (acl, meta) = (Arc::clone(&acl), Meta::default());
            let node = Node { data: Some(Bytes::new()), acl, meta, children: BTreeSet::new() };
            tree.attach(path, node);
        }
        tree
    }

    /// The number of the newest transaction.
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    /// Makes sure that later transactions have numbers above `zxid`.
    pub fn raise_zxid(&mut self, zxid: i64) {
        self.zxid = self.zxid.max(zxid);
    }

    /// Does all of `ops` or none of them.
    pub fn write(&mut self, caller: Caller<'_>, ops: &[Op], now: i64) -> Written {
        let zxid = self.next_zxid();
        let mut applied: Vec<Applied> = Vec::with_capacity(ops.len());
        let mut done = Vec::with_capacity(ops.len());
        let mut changes = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            let change = match self.prepare(caller, op) {
                Ok(change) => change,
                Err(code) => {
                    for step in applied.into_iter().rev() {
                        self.undo(step.undo);
                    }
                    return Written {
                        zxid,
                        outcome: Err(Refused { index, code }),
                        transaction: None,
                        notifications: Vec::new(),
                    };
                }
            };
            applied.push(self.apply(&change, zxid, now).expect("a prepared change fits"));
            done.push(self.done(op, &change));
            changes.push(change);
        }
        let notifications = self.notify(applied.into_iter().flat_map(|step| step.touched));
        let transaction = Some(Transaction { zxid, time: now, changes });
        Written { zxid, outcome: Ok(done), transaction, notifications }
    }

    /// A session begins. Ids and passwords are the caller's to choose.
    pub fn open_session(&mut self, id: i64, timeout_ms: i32, password: Bytes, now: i64) -> Written {
        self.write_change(Change::OpenSession { id, timeout_ms, password }, now)
    }

    /// A session ends, by its own wish or by expiry, and its ephemerals with it.
    pub fn close_session(&mut self, id: i64, now: i64) -> Written {
        self.write_change(Change::CloseSession { id }, now)
    }

    /// Deletes containers that became empty and nodes whose time to live is over, each in a transaction of its own.
    pub fn sweep(&mut self, now: i64) -> Vec<Written> {
        let due: Vec<Box<str>> = self
            .collectable
            .iter()
            .filter(|path| self.nodes.get(*path).is_some_and(|node| is_due(node, now)))
            .cloned()
            .collect();
        due.into_iter()
            .map(|path| self.write_change(Change::Delete { path: path.into() }, now))
            .collect()
    }

    /// Does again what a log remembers.
    pub fn replay(&mut self, transaction: &Transaction) -> Result<(), Misfit> {
        for change in &transaction.changes {
            self.apply(change, transaction.zxid, transaction.time)
                .ok_or_else(|| Misfit { zxid: transaction.zxid, change: format!("{change:?}") })?;
        }
        self.zxid = transaction.zxid;
        Ok(())
    }

    /// All sessions, by number.
    pub fn sessions(&self) -> impl Iterator<Item = SessionInfo> {
        self.sessions.iter().map(|(id, session)| SessionInfo {
            id: *id,
            timeout_ms: session.timeout_ms,
            ephemerals: session.ephemerals.len(),
        })
    }

    /// Whether the session lives and this is its password.
    pub fn is_session(&self, id: i64, password: &[u8]) -> bool {
        // No early exit on the first wrong byte: the time it takes must not tell how much of a guess was right.
        self.sessions.get(&id).is_some_and(|session| {
            session.password.len() == password.len()
                && session.password.iter().zip(password).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
        })
    }

    fn next_zxid(&mut self) -> i64 {
        self.zxid += 1;
        self.zxid
    }

    fn write_change(&mut self, change: Change, now: i64) -> Written {
        let zxid = self.next_zxid();
        let Some(applied) = self.apply(&change, zxid, now) else {
            let outcome = Err(Refused { index: 0, code: Code::SESSION_EXPIRED });
            return Written { zxid, outcome, transaction: None, notifications: Vec::new() };
        };
        let notifications = self.notify(applied.touched.into_iter());
        let transaction = Some(Transaction { zxid, time: now, changes: vec![change] });
        Written { zxid, outcome: Ok(vec![]), transaction, notifications }
    }

    fn done(&self, op: &Op, change: &Change) -> Done {
        let stat = |path: &str| self.nodes.get(path).map(Node::stat).unwrap_or_default();
        match (op, change) {
            (Op::Create(_), Change::Create { path, .. }) => {
                Done::Created { path: path.clone(), stat: stat(path) }
            }
            (Op::SetData { path, .. }, _) => Done::Set { stat: stat(path) },
            (Op::SetAcl { path, .. }, _) => Done::AclSet { stat: stat(path) },
            (Op::Check { .. }, _) => Done::Checked,
            _ => Done::Deleted,
        }
    }

    fn notify(&mut self, touched: impl Iterator<Item = Touched>) -> Vec<Notification> {
        if self.watches.is_empty() {
            return Vec::new();
        }
        let mut notifications = Vec::new();
        for Touched { path, kind, acl, parent } in touched {
            let told = self.watches.trigger(Book::Data, &path, kind);
            let mut tell = |watchers: &mut dyn Iterator<Item = WatcherId>,
                            path: &str,
                            kind,
                            acl: &Arc<[Acl]>| {
                let path: Arc<str> = path.into();
                // The whole world being allowed is the rule; then nobody has to look again.
                let open = super::is_allowed(acl, Perms::READ, &[]);
                notifications.extend(watchers.map(|watcher| Notification {
                    watcher,
                    kind,
                    path: Arc::clone(&path),
                    acl: (!open).then(|| Arc::clone(acl)),
                }));
            };
            tell(&mut told.iter().copied(), &path, kind, &acl);
            if kind == EventKind::NodeDeleted {
                // Whoever heard it by a data watch does not hear it again by a child watch.
                let also = self.watches.trigger(Book::Child, &path, kind);
                tell(&mut also.difference(&told).copied(), &path, kind, &acl);
            }
            if let Some((parent, parent_acl)) = parent {
                let kind = EventKind::NodeChildrenChanged;
                let told = self.watches.trigger(Book::Child, &parent, kind);
                tell(&mut told.into_iter(), &parent, kind, &parent_acl);
            }
        }
        notifications
    }
}

fn is_due(node: &Node, now: i64) -> bool {
    node.children.is_empty()
        && match Lifetime::from_owner(node.meta.owner) {
            Lifetime::Container => node.meta.creates > 0,
            Lifetime::Ttl { millis } => now - node.meta.mtime > millis,
            Lifetime::Persistent | Lifetime::Ephemeral { .. } => false,
        }
}
