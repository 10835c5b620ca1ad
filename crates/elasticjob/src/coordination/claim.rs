//! Builds the transactions that change which instance holds a shard: claim, take over, release, mark lost, undo.
//!
//! Every transaction
//! * writes the ledger page of each shard by version, so that of two instances with the same view only one succeeds (the tree's own nodes are
//!   deleted and re-created at version 0, so their versions cannot tell);
//! * remembers for each operation which shard it belongs to, so that [`ShardTransaction::refusal`] can name the shard that lost the race.
//!
//! Those that decide something new (claim, take over, mark lost) also check the version of the configuration they were decided from. A release
//! or undo does not: a claim is given back even if the job was changed or removed meanwhile.
//!
//! A transaction of many shards may be too large for one request: [`ShardTransaction::fitting`] says how many of them fit. Each part is a
//! transaction of its own, with its own zxid.
//!
//! The zxid of a claim is the creation zxid of every node it creates, and its fencing token. This module only builds transactions; the
//! [`member`](super::member) sends them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{
    ephemerals::bytes_of,
    latch::HeldLatch,
    ledger::{LedgerPage, LedgerState, VersionedPage},
    tree::{JobTree, ShardNode},
    trigger::ShardEntry,
    view::{CachedNode, ShardView},
};
use crate::{
    job::{Failover, Fire, InstanceId, Monitor, Outcome},
    registry::{
        Committed, Create, Error, ExpectedVersion, Kind, Limits, Op, OpResult, Path, SessionId,
        Version, Zxid,
    },
};

/// The instance and session on whose behalf transactions are built, with the job settings they depend on.
#[derive(Debug, Clone)]
pub struct TransactionBuilder<'a> {
    pub tree: &'a JobTree,
    pub instance: &'a InstanceId,
    pub session: SessionId,
    /// Version of the configuration that the decision is based on.
    pub config_version: Version,
    /// Without monitoring, no `running` node is written.
    pub monitor: Monitor,
    /// With failover, `running` is persistent: it survives the instance, so that others can see what was lost.
    pub failover: Failover,
}

/// What to do with the failover flag of a shard that is marked lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailoverFlag {
    /// Leave the flag as it is.
    Keep,
    /// Create the flag; none exists.
    Create,
    /// Delete and re-create the flag, which is there from an earlier loss. An instance that has seen the shard run since then considers the flag
    /// settled; the re-creation notifies every instance of the new loss.
    Recreate,
}

/// A shard to claim, as last read from the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimCandidate {
    pub shard: u32,
    pub page: VersionedPage,
    /// The shard is flagged for failover; a regular claim settles that, too.
    pub awaits_failover: bool,
    /// The shard has a misfire mark; this claim compensates it.
    pub has_misfire_mark: bool,
    /// Version of a `failovering` node left behind by an earlier takeover, to be deleted.
    pub stale_failovering: Option<Version>,
    /// The entry of the shard in the trigger that the run comes from.
    pub entry: Option<EntryChange>,
}

/// How a claim changes the entry of its shard in a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    pub path: Path,
    /// The entry before the claim, if the shard is taken over; `None` if the claim creates the entry.
    pub before: Option<Bytes>,
}

impl ClaimCandidate {
    /// A shard without flag, mark or leftover.
    pub fn new(shard: u32, page: VersionedPage) -> Self {
        Self {
            shard,
            page,
            awaits_failover: false,
            has_misfire_mark: false,
            stale_failovering: None,
            entry: None,
        }
    }

    /// What to restore if the claim is withdrawn. A flag is restored only if the ledger page says that the shard is lost: a flag set by Java may
    /// be older than a run that settled it.
    pub fn cleared_marks(&self) -> ClearedMarks {
        let is_lost = self.page.page.state == LedgerState::Lost;
        ClearedMarks {
            failover_flag: self.awaits_failover && is_lost,
            misfire_mark: self.has_misfire_mark,
        }
    }
}

/// The flag and mark that a claim cleared. A claim that is withdrawn must restore them, or the loss and the misfire would be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClearedMarks {
    /// The failover flag.
    pub failover_flag: bool,
    /// The misfire mark.
    pub misfire_mark: bool,
}

impl ClearedMarks {
    /// Leaves out the flag or the mark that exists again, because another instance has created it meanwhile.
    #[must_use]
    pub fn unless_existing(self, has_flag: bool, has_mark: bool) -> Self {
        Self {
            failover_flag: self.failover_flag && !has_flag,
            misfire_mark: self.misfire_mark && !has_mark,
        }
    }
}

/// A shard to release.
#[derive(Debug, Clone, Copy)]
pub struct ShardRelease<'a> {
    pub shard: u32,
    /// The ledger page to write.
    pub page: &'a LedgerPage,
    /// Present version of the ledger page.
    pub version: Version,
    pub view: Option<&'a ShardView>,
    /// Zxid of the claim. Only nodes that were created by it are deleted.
    pub claim_zxid: Zxid,
    /// What the claim cleared and the release restores.
    pub restore: ClearedMarks,
    /// What the release does with the entry of the shard in a trigger.
    pub entry: EntryRelease<'a>,
}

/// What a release does with the entry of its shard in a trigger.
#[derive(Debug, Clone, Copy)]
pub enum EntryRelease<'a> {
    /// There is none, or the run goes on.
    Keep,
    /// The run has ended.
    End(&'a EntryChange, Outcome),
    /// The run has not started: the entry is as it was before the claim.
    Restore(&'a EntryChange),
}

/// A shard to mark as lost.
#[derive(Debug, Clone, Copy)]
pub struct ShardLoss<'a> {
    pub shard: u32,
    pub before: &'a VersionedPage,
    /// The ledger page to write. It equals the present one if the shard was not running and only its nodes were left.
    pub after: &'a LedgerPage,
    pub view: &'a ShardView,
    pub flag: FailoverFlag,
}

/// A claim to undo.
#[derive(Debug, Clone, Copy)]
pub struct ClaimUndo<'a> {
    /// The shard as it was before the claim.
    pub candidate: &'a ClaimCandidate,
    /// Present version of the ledger page.
    pub version: Version,
    pub view: Option<&'a ShardView>,
    /// What the claim cleared and the undo restores.
    pub restore: ClearedMarks,
}

/// Why a transaction was refused. In every case the caller reads again and decides again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration has changed, the latch is no longer held, or this process's node is gone.
    Precondition,
    /// The shard is already running.
    Running(u32),
    /// The ledger page of the shard has changed.
    Page(u32),
    /// Another node of the shard has changed.
    Shard(u32),
    /// The trigger is gone.
    Trigger,
    /// The shard has an entry in the trigger already, or has lost it.
    Entry(u32),
}

impl Refusal {
    fn shard(self) -> Option<u32> {
        match self {
            Self::Precondition | Self::Trigger => None,
            Self::Running(shard) | Self::Page(shard) | Self::Shard(shard) | Self::Entry(shard) => {
                Some(shard)
            }
        }
    }
}

/// A transaction (one multi), with the meaning of a refusal of each of its operations.
#[derive(Debug, Clone, Default)]
pub struct ShardTransaction {
    ops: Vec<Op>,
    refusals: Vec<Refusal>,
}

impl ShardTransaction {
    fn add(&mut self, op: Op, refusal: Refusal) {
        self.ops.push(op);
        self.refusals.push(refusal);
    }

    /// How many of its shards, from the first, fit into one request; at least one.
    pub fn fitting(&self, limits: Limits) -> usize {
        let (whole, cut) = self.refusals.split_at(limits.fitting(&[], &self.ops));
        let mut shards: Vec<u32> = whole.iter().filter_map(|refusal| refusal.shard()).collect();
        shards.dedup();
        let cut = cut.first().and_then(|refusal| refusal.shard());
        let is_cut = cut.is_some() && shards.last().copied() == cut;
        (shards.len() - usize::from(is_cut)).max(1)
    }

    /// How many of its shards, from the first, a session holds that has room for so many more bytes of ephemeral paths; perhaps none.
    pub fn fitting_session(&self, room: usize) -> usize {
        let ephemeral = |op: &Op| match op {
            Op::Create(create) if create.kind.session().is_some() => bytes_of(&create.path),
            _ => 0,
        };
        let mut bytes = 0;
        let mut shards = BTreeSet::new();
        for (op, refusal) in self.ops.iter().zip(&self.refusals) {
            bytes += ephemeral(op);
            if bytes > room {
                return shards.len()
                    - usize::from(refusal.shard().is_some_and(|shard| shards.contains(&shard)));
            }
            shards.extend(refusal.shard());
        }
        shards.len()
    }

    pub fn ops(&self) -> Vec<Op> {
        self.ops.clone()
    }

    /// The paths that the transaction creates.
    pub fn created_paths(&self) -> impl Iterator<Item = &Path> {
        self.ops
            .iter()
            .filter_map(|op| if let Op::Create(create) = op { Some(&create.path) } else { None })
    }

    /// Which check the transaction failed; `None` for errors that are no refusal, such as an outage.
    pub fn refusal(&self, error: &Error) -> Option<Refusal> {
        let Error::Operation { index, cause } = error else { return None };
        match **cause {
            Error::Exists { .. }
            | Error::Conflict { .. }
            | Error::NotFound { .. }
            | Error::NotEmpty { .. } => self.refusals.get(*index).copied(),
            _ => None,
        }
    }

    /// The shard of the operation that was refused, for whatever reason.
    pub fn refused_shard(&self, error: &Error) -> Option<u32> {
        let Error::Operation { index, .. } = error else { return None };
        self.refusals.get(*index)?.shard()
    }

    /// The new versions of the ledger pages, by shard.
    pub fn page_versions(&self, committed: &Committed) -> BTreeMap<u32, Version> {
        let written = self.refusals.iter().zip(&committed.done).filter_map(|(refusal, done)| {
            let Refusal::Page(shard) = refusal else { return None };
            match done {
                OpResult::Set(version) => Some((*shard, *version)),
                OpResult::Created(_) => Some((*shard, Version(0))),
                OpResult::Deleted | OpResult::Checked => None,
            }
        });
        written.collect()
    }
}

impl TransactionBuilder<'_> {
    /// Claims shards for a fire: creates `running`, writes the page, and clears failover flag and misfire mark, which this run settles. If the fire
    /// is a trigger, creates the entry of each shard in it.
    pub fn claim(&self, fire: &Fire, candidates: &[ClaimCandidate]) -> ShardTransaction {
        let mut transaction = self.with_config_check();
        if candidates.iter().any(|candidate| candidate.entry.is_some()) {
            let path = self.tree.accepted_trigger(&fire.run);
            transaction.add(Op::Check { path, expected: ExpectedVersion::Any }, Refusal::Trigger);
        }
        for candidate in candidates {
            if self.monitor == Monitor::Executions {
                let running =
                    self.create_holder(candidate.shard, ShardNode::Running, self.running_kind());
                transaction.add(running, Refusal::Running(candidate.shard));
            }
            self.write_page(
                &mut transaction,
                candidate.shard,
                &candidate.page,
                &candidate.page.page.after_claim(fire, self.instance),
            );
            self.clear_marks(&mut transaction, candidate);
            self.claim_entry(&mut transaction, fire, candidate);
        }
        transaction
    }

    /// Takes over lost shards and claims them in the same transaction, so that no instance can die unnoticed between the two.
    pub fn take_over(
        &self,
        latch: &HeldLatch,
        fire: &Fire,
        candidates: &[ClaimCandidate],
    ) -> ShardTransaction {
        let mut transaction = self.with_config_check();
        transaction.add(latch.check(), Refusal::Precondition);
        for candidate in candidates {
            let shard = candidate.shard;
            self.write_page(
                &mut transaction,
                shard,
                &candidate.page,
                &candidate.page.page.after_claim(fire, self.instance),
            );
            self.clear_marks(&mut transaction, candidate);
            self.claim_entry(&mut transaction, fire, candidate);
            if let Some(version) = candidate.stale_failovering {
                let path = self.tree.shard(shard, ShardNode::Failovering);
                let expected = ExpectedVersion::Version(version);
                transaction.add(Op::Delete { path, expected }, Refusal::Shard(shard));
            }
            let failover =
                self.create_holder(shard, ShardNode::Failover, Kind::Ephemeral(self.session));
            transaction.add(failover, Refusal::Shard(shard));
            let failovering = self.create_holder(shard, ShardNode::Failovering, Kind::Persistent);
            transaction.add(failovering, Refusal::Shard(shard));
            if self.monitor == Monitor::Executions {
                let running = self.create_holder(shard, ShardNode::Running, self.running_kind());
                transaction.add(running, Refusal::Running(shard));
            }
        }
        transaction
    }

    /// Releases shards: deletes the nodes that their claims created and that still exist, and writes the pages. If `is_fenced`, the transaction
    /// also checks that this process is still registered: the shards of a dead process are for others to take over.
    pub fn release<'s>(
        &self,
        releases: impl IntoIterator<Item = ShardRelease<'s>>,
        is_fenced: bool,
    ) -> ShardTransaction {
        let mut transaction = ShardTransaction::default();
        if is_fenced {
            let path = self.tree.process(self.instance);
            transaction
                .add(Op::Check { path, expected: ExpectedVersion::Any }, Refusal::Precondition);
        }
        for ShardRelease { shard, page, version, view, claim_zxid, restore, entry } in releases {
            for (shard_node, known) in view.iter().flat_map(|view| view.holders()) {
                let document = known.as_ref().and_then(CachedNode::document);
                if document.is_some_and(|document| document.created == claim_zxid) {
                    let path = self.tree.shard(shard, shard_node);
                    transaction.add(
                        Op::Delete { path, expected: ExpectedVersion::Any },
                        Refusal::Shard(shard),
                    );
                }
            }
            let before = VersionedPage { version: Some(version), ..VersionedPage::default() };
            self.write_page(&mut transaction, shard, &before, page);
            self.restore_marks(&mut transaction, shard, restore);
            match entry {
                EntryRelease::Keep => {}
                EntryRelease::End(entry, outcome) => {
                    let (owner, attempt) = (self.instance.clone(), page.attempt);
                    let ended = ShardEntry::Ended { owner, attempt, outcome };
                    set_entry(&mut transaction, shard, entry, ended.to_bytes().into());
                }
                EntryRelease::Restore(entry) => restore_entry(&mut transaction, shard, entry),
            }
        }
        transaction
    }

    /// Marks shards of a dead instance as lost: deletes the nodes that name the instance, writes the pages, and treats the failover flags as each
    /// loss says.
    pub fn mark_lost<'s>(
        &self,
        dead: &InstanceId,
        losses: impl IntoIterator<Item = ShardLoss<'s>>,
    ) -> ShardTransaction {
        let mut transaction = self.with_config_check();
        for ShardLoss { shard, before, after, view, flag } in losses {
            self.write_page(&mut transaction, shard, before, after);
            let path = self.tree.failover_item(shard);
            if flag == FailoverFlag::Recreate {
                let path = path.clone();
                transaction.add(
                    Op::Delete { path, expected: ExpectedVersion::Any },
                    Refusal::Shard(shard),
                );
            }
            if flag != FailoverFlag::Keep {
                transaction.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
            }
            for (shard_node, known) in view.holders() {
                let of_dead = known.as_ref().filter(|known| known.text() == Some(dead.as_str()));
                if let Some(document) = of_dead.and_then(CachedNode::document) {
                    let path = self.tree.shard(shard, shard_node);
                    let expected = ExpectedVersion::Version(document.version);
                    transaction.add(Op::Delete { path, expected }, Refusal::Shard(shard));
                }
            }
        }
        transaction
    }

    /// Undoes claims whose answer was lost: restores each page as it was before the claim, and the flag and mark in `restore`.
    pub fn undo<'s>(&self, undos: impl IntoIterator<Item = ClaimUndo<'s>>) -> ShardTransaction {
        let mut transaction = ShardTransaction::default();
        for ClaimUndo { candidate, version, view, restore } in undos {
            let shard = candidate.shard;
            for (shard_node, known) in view.iter().flat_map(|view| view.holders()) {
                if known.as_ref().and_then(CachedNode::text) == Some(self.instance.as_str()) {
                    let path = self.tree.shard(shard, shard_node);
                    transaction.add(
                        Op::Delete { path, expected: ExpectedVersion::Any },
                        Refusal::Shard(shard),
                    );
                }
            }
            let before = VersionedPage { version: Some(version), ..VersionedPage::default() };
            self.write_page(&mut transaction, shard, &before, &candidate.page.page);
            self.restore_marks(&mut transaction, shard, restore);
            if let Some(entry) = &candidate.entry {
                restore_entry(&mut transaction, shard, entry);
            }
        }
        transaction
    }

    /// Refuses a transaction if the configuration has changed.
    pub fn config_check(&self) -> Op {
        let expected = ExpectedVersion::Version(self.config_version);
        Op::Check { path: self.tree.config(), expected }
    }

    fn with_config_check(&self) -> ShardTransaction {
        let mut transaction = ShardTransaction::default();
        transaction.add(self.config_check(), Refusal::Precondition);
        transaction
    }

    fn claim_entry(
        &self,
        transaction: &mut ShardTransaction,
        fire: &Fire,
        candidate: &ClaimCandidate,
    ) {
        let Some(entry) = &candidate.entry else { return };
        let owner = self.instance.clone();
        let attempt = candidate.page.page.after_claim(fire, self.instance).attempt;
        let data: Bytes = ShardEntry::Claimed { owner, attempt }.to_bytes().into();
        if entry.before.is_some() {
            return set_entry(transaction, candidate.shard, entry, data);
        }
        let create = Op::Create(Create::persistent(&entry.path, data));
        transaction.add(create, Refusal::Entry(candidate.shard));
    }

    fn clear_marks(&self, transaction: &mut ShardTransaction, candidate: &ClaimCandidate) {
        let mut delete = |path: Path| {
            transaction.add(
                Op::Delete { path, expected: ExpectedVersion::Any },
                Refusal::Shard(candidate.shard),
            );
        };
        if candidate.awaits_failover {
            delete(self.tree.failover_item(candidate.shard));
        }
        if candidate.has_misfire_mark {
            delete(self.tree.shard(candidate.shard, ShardNode::Misfire));
        }
    }

    fn restore_marks(&self, transaction: &mut ShardTransaction, shard: u32, cleared: ClearedMarks) {
        let mut create = |path: Path| {
            transaction.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
        };
        if cleared.failover_flag {
            create(self.tree.failover_item(shard));
        }
        if cleared.misfire_mark {
            create(self.tree.shard(shard, ShardNode::Misfire));
        }
    }

    fn running_kind(&self) -> Kind {
        match self.failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.session),
        }
    }

    fn create_holder(&self, shard: u32, shard_node: ShardNode, kind: Kind) -> Op {
        Op::Create(Create::new(
            &self.tree.shard(shard, shard_node),
            self.instance.to_string(),
            kind,
        ))
    }

    /// Writes `page`, provided that the version is still the one of `before`.
    fn write_page(
        &self,
        transaction: &mut ShardTransaction,
        shard: u32,
        before: &VersionedPage,
        page: &LedgerPage,
    ) {
        let path = self.tree.ledger_page(shard);
        let op = match before.version {
            Some(version) => Op::Set {
                path,
                data: page.to_bytes().into(),
                expected: ExpectedVersion::Version(version),
            },
            None => Op::Create(Create::persistent(&path, page.to_bytes())),
        };
        transaction.add(op, Refusal::Page(shard));
    }
}

/// Sets an entry, whatever it says: only the holder of the shard does, and the transaction also writes the shard's page by version.
fn set_entry(transaction: &mut ShardTransaction, shard: u32, entry: &EntryChange, data: Bytes) {
    let set = Op::Set { path: entry.path.clone(), data, expected: ExpectedVersion::Any };
    transaction.add(set, Refusal::Entry(shard));
}

fn restore_entry(transaction: &mut ShardTransaction, shard: u32, entry: &EntryChange) {
    if let Some(before) = &entry.before {
        return set_entry(transaction, shard, entry, before.clone());
    }
    let delete = Op::Delete { path: entry.path.clone(), expected: ExpectedVersion::Any };
    transaction.add(delete, Refusal::Entry(shard));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        registry::{
            Registry,
            memory::{MemoryRegistry, MemoryServer},
        },
        runtime::SystemClock,
    };

    struct Scene {
        server: MemoryServer,
        tree: JobTree,
    }

    impl Scene {
        /// A job with three shards and no instances.
        async fn new() -> Self {
            let server = MemoryServer::new(Arc::new(SystemClock));
            let tree = JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap();
            let registry = server.join("shop".parse().unwrap()).await.unwrap();
            let parents = ["/shop~ledger", "/shop~ledger/settle", "/shop/settle"];
            let parents = parents.map(|path| path.parse().unwrap()).into_iter();
            let parents = parents.chain([tree.config()]).chain(tree.skeleton());
            let shards = (0..3).map(|shard| tree.shard(shard, ShardNode::Root));
            for path in parents.chain(shards) {
                registry.create(Create::persistent(&path, "")).await.unwrap();
            }
            Self { server, tree }
        }

        async fn member(&self) -> MemoryRegistry {
            self.server.join("shop".parse().unwrap()).await.unwrap()
        }

        fn builder<'a>(
            &'a self,
            me: &'a InstanceId,
            registry: &MemoryRegistry,
        ) -> TransactionBuilder<'a> {
            TransactionBuilder {
                tree: &self.tree,
                instance: me,
                session: registry.session().id(),
                config_version: Version(0),
                monitor: Monitor::Executions,
                failover: Failover::Wait,
            }
        }
    }

    fn fire(due_at: &str) -> Fire {
        Fire::scheduled("settle".parse().unwrap(), due_at.parse().unwrap())
    }

    fn candidates(shards: &[u32]) -> Vec<ClaimCandidate> {
        shards.iter().map(|shard| ClaimCandidate::new(*shard, VersionedPage::default())).collect()
    }

    async fn read_page(registry: &MemoryRegistry, tree: &JobTree, shard: u32) -> VersionedPage {
        let node = registry.get(&tree.ledger_page(shard)).await.unwrap().expect("the page exists");
        VersionedPage {
            page: LedgerPage::read(&node.data).unwrap(),
            version: Some(node.stat.version),
            written_at: None,
        }
    }

    fn ids() -> (InstanceId, InstanceId) {
        ("10.0.0.1@-@1-a".parse().unwrap(), "10.0.0.2@-@2-b".parse().unwrap())
    }

    #[tokio::test]
    async fn second_claim_of_a_shard_is_refused_and_names_the_shard() {
        let scene = Scene::new().await;
        let (one, two) = (scene.member().await, scene.member().await);
        let (first, second) = ids();
        let (winner, loser) = (scene.builder(&first, &one), scene.builder(&second, &two));
        let due = fire("2026-11-15T06:36:07Z");

        one.multi(winner.claim(&due, &candidates(&[1])).ops()).await.unwrap();
        let transaction = loser.claim(&due, &candidates(&[0, 1]));
        let refused = two.multi(transaction.ops()).await.unwrap_err();

        assert_eq!(transaction.refusal(&refused), Some(Refusal::Running(1)));
        two.multi(loser.claim(&due, &candidates(&[0])).ops()).await.unwrap();
        let running = two.get(&scene.tree.shard(1, ShardNode::Running)).await.unwrap().unwrap();
        assert_eq!(running.data, first.to_string());
    }

    #[tokio::test]
    async fn claim_zxid_is_the_creation_zxid_of_running() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (me, _) = ids();
        let transaction = scene
            .builder(&me, &registry)
            .claim(&fire("2026-11-15T06:36:07Z"), &candidates(&[0, 2]));

        let committed = registry.multi(transaction.ops()).await.unwrap();

        let running =
            registry.exists(&scene.tree.shard(0, ShardNode::Running)).await.unwrap().unwrap();
        assert_eq!(running.created, committed.zxid);
        let session = registry.session().id();
        assert_eq!(running.owner, Some(session), "without failover it is ephemeral");
        let written = BTreeMap::from([(0, Version(0)), (2, Version(0))]);
        assert_eq!(transaction.page_versions(&committed), written);
    }

    #[tokio::test]
    async fn changed_page_or_configuration_refuses_a_claim() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (me, _) = ids();
        let builder = scene.builder(&me, &registry);
        let page = LedgerPage::default().to_bytes();
        registry.create(Create::persistent(&scene.tree.ledger_page(0), page)).await.unwrap();

        let transaction = builder.claim(&fire("2026-11-15T06:36:07Z"), &candidates(&[0]));
        let refused = registry.multi(transaction.ops()).await.unwrap_err();
        assert_eq!(transaction.refusal(&refused), Some(Refusal::Page(0)));
        registry.set(&scene.tree.config(), "new".into(), ExpectedVersion::Any).await.unwrap();
        let refused = registry.multi(transaction.ops()).await.unwrap_err();

        assert_eq!(transaction.refusal(&refused), Some(Refusal::Precondition));
        assert_eq!(registry.exists(&scene.tree.shard(0, ShardNode::Running)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn shard_is_marked_lost_only_once() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (dead, me) = ids();
        let due = fire("2026-11-15T06:36:07Z");
        let builder =
            TransactionBuilder { failover: Failover::TakeOver, ..scene.builder(&dead, &registry) };
        registry.multi(builder.claim(&due, &candidates(&[0])).ops()).await.unwrap();
        let page = read_page(&registry, &scene.tree, 0).await;
        let running =
            registry.get(&scene.tree.shard(0, ShardNode::Running)).await.unwrap().unwrap();
        let running = crate::coordination::view::Document {
            data: running.data,
            version: running.stat.version,
            created: running.stat.created,
            written_at_ms: 0,
        };
        let view = ShardView {
            running: Some(CachedNode::Read(Box::new(running))),
            ..ShardView::default()
        };
        let after = page.page.after_loss(&dead);
        let (before, after, view, flag) = (&page, &after, &view, FailoverFlag::Create);
        let transaction = scene
            .builder(&me, &registry)
            .mark_lost(&dead, [ShardLoss { shard: 0, before, after, view, flag }]);

        registry.multi(transaction.ops()).await.unwrap();
        let second = registry.multi(transaction.ops()).await.unwrap_err();

        assert_eq!(transaction.refusal(&second), Some(Refusal::Page(0)));
        assert_eq!(read_page(&registry, &scene.tree, 0).await.page.state, LedgerState::Lost);
        assert!(registry.exists(&scene.tree.failover_item(0)).await.unwrap().is_some());
        assert_eq!(registry.exists(&scene.tree.shard(0, ShardNode::Running)).await.unwrap(), None);
    }
}
