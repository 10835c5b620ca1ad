//! Builds the transactions that change which instance holds a shard: claim, take over, release, mark lost, undo.
//!
//! Every transaction
//! * writes the ledger page of each shard by version, so that of two instances with the same view only one succeeds (the tree's own nodes are
//!   deleted and re-created at version 0, so their versions cannot tell);
//! * remembers for each operation which shard it belongs to, so that [`Steps::refusal`] can name the shard that lost the race.
//!
//! Those that decide something new (claim, take over, mark lost) also check the version of the configuration they were decided from. A release
//! or undo does not: a claim is given back even if the job was changed or removed meanwhile.
//!
//! The zxid of a claim is the creation zxid of every node it creates, and its fencing token. This module only builds transactions; the
//! [`member`](super::member) sends them.

use super::{
    latch::Turn,
    ledger::{Page, Seen, State},
    tree::{JobTree, Part},
    view::{Known, ShardView},
};
use crate::{
    job::{Failover, Fire, InstanceId, Monitor},
    registry::{
        Committed, Create, Done, Error, Expected, Kind, Op, Path, SessionId, Version, Zxid,
    },
};

/// The instance and session on whose behalf transactions are built, with the job settings they depend on.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    pub tree: &'a JobTree,
    pub me: &'a InstanceId,
    pub session: SessionId,
    /// Version of the configuration that the decision is based on.
    pub config: Version,
    /// Without monitoring, no `running` node is written.
    pub monitor: Monitor,
    /// With failover, `running` is persistent: it survives the instance, so that others can see what was lost.
    pub failover: Failover,
}

/// What to do with the failover flag of a shard that is marked lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Leave the flag as it is.
    Leave,
    /// Create the flag; none exists.
    Raise,
    /// Delete and re-create the flag, which is there from an earlier loss. An instance that has seen the shard run since then considers the flag
    /// settled; the re-creation notifies every instance of the new loss.
    RaiseAnew,
}

/// A shard to claim, as last read from the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stake {
    pub shard: u32,
    pub seen: Seen,
    /// The shard is flagged for failover; a regular claim settles that, too.
    pub is_flagged: bool,
    /// The shard has a misfire mark; this claim compensates it.
    pub is_marked: bool,
    /// Version of a `failovering` node left behind by an earlier takeover, to be deleted.
    pub left_behind: Option<Version>,
}

impl Stake {
    /// A shard without flag, mark or leftover.
    pub fn new(shard: u32, seen: Seen) -> Self {
        Self { shard, seen, is_flagged: false, is_marked: false, left_behind: None }
    }

    /// What to restore if the claim is withdrawn. A flag is restored only if the ledger page says that the shard is lost: a flag set by Java may
    /// be older than a run that settled it.
    pub fn cleared(&self) -> Cleared {
        let is_lost = self.seen.page.state == State::Lost;
        Cleared { flag: self.is_flagged && is_lost, mark: self.is_marked }
    }
}

/// The flag and mark that a claim cleared. A claim that is withdrawn must restore them, or the loss and the misfire would be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// The failover flag.
    pub flag: bool,
    /// The misfire mark.
    pub mark: bool,
}

impl Cleared {
    /// Leaves out the flag or the mark that exists again, because another instance has created it meanwhile.
    #[must_use]
    pub fn unless_there(self, has_flag: bool, has_mark: bool) -> Self {
        Self { flag: self.flag && !has_flag, mark: self.mark && !has_mark }
    }
}

/// A shard to release.
#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    pub shard: u32,
    /// The ledger page to write.
    pub page: &'a Page,
    /// Present version of the ledger page.
    pub version: Version,
    pub view: Option<&'a ShardView>,
    /// Zxid of the claim. Only nodes that were created by it are deleted.
    pub claimed_in: Zxid,
    /// What the claim cleared and the release restores.
    pub put_back: Cleared,
}

/// Why a transaction was refused. In every case the caller reads again and decides again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration has changed, the latch is no longer held, or this process's node is gone.
    Ground,
    /// The shard is already running.
    Running(u32),
    /// The ledger page of the shard has changed.
    Page(u32),
    /// Another node of the shard has changed.
    Shard(u32),
}

/// A transaction (one multi), with the meaning of a refusal of each of its operations.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    ops: Vec<Op>,
    refusals: Vec<Refusal>,
}

impl Steps {
    fn add(&mut self, op: Op, refusal: Refusal) {
        self.ops.push(op);
        self.refusals.push(refusal);
    }

    pub fn ops(&self) -> Vec<Op> {
        self.ops.clone()
    }

    /// The paths that the transaction creates.
    pub fn created(&self) -> impl Iterator<Item = &Path> {
        self.ops
            .iter()
            .filter_map(|op| if let Op::Create(create) = op { Some(&create.path) } else { None })
    }

    /// Which check the transaction failed; `None` for errors that are no refusal, such as an outage.
    pub fn refusal(&self, error: &Error) -> Option<Refusal> {
        let Error::Member { index, cause } = error else { return None };
        match **cause {
            Error::Exists { .. }
            | Error::Conflict { .. }
            | Error::Absent { .. }
            | Error::NotEmpty { .. } => self.refusals.get(*index).copied(),
            _ => None,
        }
    }

    /// The new versions of the ledger pages, by shard.
    pub fn pages(&self, committed: &Committed) -> Vec<(u32, Version)> {
        let written = self.refusals.iter().zip(&committed.done).filter_map(|(refusal, done)| {
            let Refusal::Page(shard) = refusal else { return None };
            match done {
                Done::Set(version) => Some((*shard, *version)),
                Done::Created(_) => Some((*shard, Version(0))),
                Done::Deleted | Done::Checked => None,
            }
        });
        written.collect()
    }
}

impl Claimant<'_> {
    /// Claims shards for a fire: creates `running`, writes the page, and clears failover flag and misfire mark, which this run settles.
    pub fn claim(&self, fire: &Fire, candidates: &[Stake]) -> Steps {
        let mut transaction = self.with_config_check();
        for candidate in candidates {
            if self.monitor == Monitor::Executions {
                let running =
                    self.create_holder(candidate.shard, Part::Running, self.running_kind());
                transaction.add(running, Refusal::Running(candidate.shard));
            }
            self.write_page(
                &mut transaction,
                candidate.shard,
                &candidate.seen,
                &candidate.seen.page.started(fire, self.me),
            );
            self.clear_marks(&mut transaction, candidate);
        }
        transaction
    }

    /// Takes over lost shards and claims them in the same transaction, so that no instance can die unnoticed between the two.
    pub fn take(&self, latch: &Turn, fire: &Fire, candidates: &[Stake]) -> Steps {
        let mut transaction = self.with_config_check();
        transaction.add(latch.check(), Refusal::Ground);
        for candidate in candidates {
            let shard = candidate.shard;
            self.write_page(
                &mut transaction,
                shard,
                &candidate.seen,
                &candidate.seen.page.started(fire, self.me),
            );
            self.clear_marks(&mut transaction, candidate);
            if let Some(version) = candidate.left_behind {
                let path = self.tree.shard(shard, Part::Failovering);
                let expected = Expected::Version(version);
                transaction.add(Op::Delete { path, expected }, Refusal::Shard(shard));
            }
            let failover = self.create_holder(shard, Part::Failover, Kind::Ephemeral(self.session));
            transaction.add(failover, Refusal::Shard(shard));
            let failovering = self.create_holder(shard, Part::Failovering, Kind::Persistent);
            transaction.add(failovering, Refusal::Shard(shard));
            if self.monitor == Monitor::Executions {
                let running = self.create_holder(shard, Part::Running, self.running_kind());
                transaction.add(running, Refusal::Running(shard));
            }
        }
        transaction
    }

    /// Releases shards: deletes the nodes that their claims created and that still exist, and writes the pages. If `is_fenced`, the transaction
    /// also checks that this process is still registered: the shards of a dead process are for others to take over.
    pub fn release<'s>(
        &self,
        releases: impl IntoIterator<Item = Return<'s>>,
        is_fenced: bool,
    ) -> Steps {
        let mut transaction = Steps::default();
        if is_fenced {
            let path = self.tree.process(self.me);
            transaction.add(Op::Check { path, expected: Expected::Any }, Refusal::Ground);
        }
        for Return { shard, page, version, view, claimed_in, put_back } in releases {
            for (shard_node, known) in view.iter().flat_map(|view| view.holders()) {
                let document = known.as_ref().and_then(Known::read);
                if document.is_some_and(|document| document.created == claimed_in) {
                    let path = self.tree.shard(shard, shard_node);
                    transaction
                        .add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
                }
            }
            let before = Seen { page: Page::default(), version: Some(version) };
            self.write_page(&mut transaction, shard, &before, page);
            self.restore_marks(&mut transaction, shard, put_back);
        }
        transaction
    }

    /// Marks a dead instance's shard as lost: deletes the nodes that name the instance, writes the page `after`, and treats the failover flag as
    /// `flag` says. `after` equals the present page if the shard was not running and only its nodes were left.
    pub fn bury(
        &self,
        dead: &InstanceId,
        shard: u32,
        before: &Seen,
        after: &Page,
        view: &ShardView,
        flag: Flag,
    ) -> Steps {
        let mut transaction = self.with_config_check();
        self.write_page(&mut transaction, shard, before, after);
        let path = self.tree.failover_item(shard);
        if flag == Flag::RaiseAnew {
            let path = path.clone();
            transaction.add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
        }
        if flag != Flag::Leave {
            transaction.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
        }
        for (shard_node, known) in view.holders() {
            let of_dead = known.as_ref().filter(|known| known.text() == Some(dead.as_str()));
            if let Some(document) = of_dead.and_then(Known::read) {
                let path = self.tree.shard(shard, shard_node);
                let expected = Expected::Version(document.version);
                transaction.add(Op::Delete { path, expected }, Refusal::Shard(shard));
            }
        }
        transaction
    }

    /// Undoes a claim whose answer was lost: restores the page as it was before the claim, and the flag and mark in `put_back`.
    pub fn undo(
        &self,
        candidate: &Stake,
        version: Version,
        view: &ShardView,
        put_back: Cleared,
    ) -> Steps {
        let mut transaction = Steps::default();
        let shard = candidate.shard;
        for (shard_node, known) in view.holders() {
            if known.as_ref().and_then(Known::text) == Some(self.me.as_str()) {
                let path = self.tree.shard(shard, shard_node);
                transaction
                    .add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
            }
        }
        let before = Seen { page: Page::default(), version: Some(version) };
        self.write_page(&mut transaction, shard, &before, &candidate.seen.page);
        self.restore_marks(&mut transaction, shard, put_back);
        transaction
    }

    /// A transaction that fails if the configuration has changed.
    fn with_config_check(&self) -> Steps {
        let mut transaction = Steps::default();
        let expected = Expected::Version(self.config);
        transaction.add(Op::Check { path: self.tree.config(), expected }, Refusal::Ground);
        transaction
    }

    fn clear_marks(&self, transaction: &mut Steps, candidate: &Stake) {
        let mut delete = |path: Path| {
            transaction
                .add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(candidate.shard));
        };
        if candidate.is_flagged {
            delete(self.tree.failover_item(candidate.shard));
        }
        if candidate.is_marked {
            delete(self.tree.shard(candidate.shard, Part::Misfire));
        }
    }

    fn restore_marks(&self, transaction: &mut Steps, shard: u32, cleared: Cleared) {
        let mut create = |path: Path| {
            transaction.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
        };
        if cleared.flag {
            create(self.tree.failover_item(shard));
        }
        if cleared.mark {
            create(self.tree.shard(shard, Part::Misfire));
        }
    }

    fn running_kind(&self) -> Kind {
        match self.failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.session),
        }
    }

    fn create_holder(&self, shard: u32, shard_node: Part, kind: Kind) -> Op {
        Op::Create(Create::new(&self.tree.shard(shard, shard_node), self.me.to_string(), kind))
    }

    /// Writes `page`, provided that the version is still the one of `before`.
    fn write_page(&self, transaction: &mut Steps, shard: u32, before: &Seen, page: &Page) {
        let path = self.tree.page(shard);
        let op = match before.version {
            Some(version) => {
                Op::Set { path, data: page.to_bytes().into(), expected: Expected::Version(version) }
            }
            None => Op::Create(Create::persistent(&path, page.to_bytes())),
        };
        transaction.add(op, Refusal::Page(shard));
    }
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
            let shards = (0..3).map(|shard| tree.shard(shard, Part::Itself));
            for path in parents.chain(shards) {
                registry.create(Create::persistent(&path, "")).await.unwrap();
            }
            Self { server, tree }
        }

        async fn member(&self) -> MemoryRegistry {
            self.server.join("shop".parse().unwrap()).await.unwrap()
        }

        fn builder<'a>(&'a self, me: &'a InstanceId, registry: &MemoryRegistry) -> Claimant<'a> {
            Claimant {
                tree: &self.tree,
                me,
                session: registry.session().id(),
                config: Version(0),
                monitor: Monitor::Executions,
                failover: Failover::Wait,
            }
        }
    }

    fn fire(due_at: &str) -> Fire {
        Fire::scheduled("settle".parse().unwrap(), due_at.parse().unwrap())
    }

    fn candidates(shards: &[u32]) -> Vec<Stake> {
        shards.iter().map(|shard| Stake::new(*shard, Seen::default())).collect()
    }

    async fn read_page(registry: &MemoryRegistry, tree: &JobTree, shard: u32) -> Seen {
        let node = registry.get(&tree.page(shard)).await.unwrap().expect("the page exists");
        Seen { page: Page::read(&node.data).unwrap(), version: Some(node.stat.version) }
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
        let running = two.get(&scene.tree.shard(1, Part::Running)).await.unwrap().unwrap();
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

        let running = registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.created, committed.zxid);
        let session = registry.session().id();
        assert_eq!(running.owner, Some(session), "without failover it is ephemeral");
        assert_eq!(transaction.pages(&committed), [(0, Version(0)), (2, Version(0))]);
    }

    #[tokio::test]
    async fn changed_page_or_configuration_refuses_a_claim() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (me, _) = ids();
        let builder = scene.builder(&me, &registry);
        let page = Page::default().to_bytes();
        registry.create(Create::persistent(&scene.tree.page(0), page)).await.unwrap();

        let transaction = builder.claim(&fire("2026-11-15T06:36:07Z"), &candidates(&[0]));
        let refused = registry.multi(transaction.ops()).await.unwrap_err();
        assert_eq!(transaction.refusal(&refused), Some(Refusal::Page(0)));
        registry.set(&scene.tree.config(), "new".into(), Expected::Any).await.unwrap();
        let refused = registry.multi(transaction.ops()).await.unwrap_err();

        assert_eq!(transaction.refusal(&refused), Some(Refusal::Ground));
        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn shard_is_marked_lost_only_once() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (dead, me) = ids();
        let due = fire("2026-11-15T06:36:07Z");
        let builder = Claimant { failover: Failover::TakeOver, ..scene.builder(&dead, &registry) };
        registry.multi(builder.claim(&due, &candidates(&[0])).ops()).await.unwrap();
        let page = read_page(&registry, &scene.tree, 0).await;
        let running = registry.get(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        let running = crate::coordination::view::Document {
            data: running.data,
            version: running.stat.version,
            created: running.stat.created,
            written_at_ms: 0,
        };
        let view =
            ShardView { running: Some(Known::Read(Box::new(running))), ..ShardView::default() };
        let transaction = scene.builder(&me, &registry).bury(
            &dead,
            0,
            &page,
            &page.page.lost(&dead),
            &view,
            Flag::Raise,
        );

        registry.multi(transaction.ops()).await.unwrap();
        let second = registry.multi(transaction.ops()).await.unwrap_err();

        assert_eq!(transaction.refusal(&second), Some(Refusal::Page(0)));
        assert_eq!(read_page(&registry, &scene.tree, 0).await.page.state, State::Lost);
        assert!(registry.exists(&scene.tree.failover_item(0)).await.unwrap().is_some());
        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
    }
}
