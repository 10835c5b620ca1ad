//! What is written when a shard changes hands: claimed for a fire, taken over from the dead, given back, or marked as lost.
//!
//! Each is one multi that names everything it relies on: the configuration, the page of the ledger as it was read, the nodes that are to go.
//! Losing a race is an answer: the multi names the part that was refused, and [`Steps::refusal`] says which shard that was. Every
//! one of them writes the ledger's page by version, so that of two who saw the same only one acts.
//!
//! The creation id of everything a claim creates is the claim's own transaction number: the fencing token.

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

/// In whose name shards change hands.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    /// Where everything is.
    pub tree: &'a JobTree,
    /// Who acts.
    pub me: &'a InstanceId,
    /// In which session.
    pub session: SessionId,
    /// The configuration this is decided from.
    pub config: Version,
    /// Whether `running` is written at all.
    pub monitor: Monitor,
    /// Whether `running` outlives us, so that somebody can take over.
    pub failover: Failover,
}

/// What becomes of the flag that a shard waits to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// It stays as it is.
    Leave,
    /// There is none yet.
    Raise,
    /// There is one of an earlier loss. Whoever has seen the shard run since takes it for settled, so everybody is told of this loss.
    RaiseAnew,
}

/// A shard that is to be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stake {
    /// Which one.
    pub shard: u32,
    /// Its page as it was last seen.
    pub seen: Seen,
    /// It waits to be taken over: this claim is as good.
    pub is_flagged: bool,
    /// A run of it was missed: this claim makes up for it.
    pub is_marked: bool,
    /// A `failovering` that was left behind, in this version.
    pub left_behind: Option<Version>,
}

impl Stake {
    /// A shard about which there is nothing to say.
    pub fn new(shard: u32, seen: Seen) -> Self {
        Self { shard, seen, is_flagged: false, is_marked: false, left_behind: None }
    }

    /// What claiming it takes away. A flag of Java's may be older than a run that settled it: only what the ledger calls lost is put back.
    pub fn cleared(&self) -> Cleared {
        let is_lost = self.seen.page.state == State::Lost;
        Cleared { flag: self.is_flagged && is_lost, mark: self.is_marked }
    }
}

/// What a claim took away, and has to put back if nothing comes of it: otherwise nobody would know that there is something to make up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// That it waits to be taken over.
    pub flag: bool,
    /// That a run of it was missed.
    pub mark: bool,
}

impl Cleared {
    /// What is still missing, if somebody put it there meanwhile.
    #[must_use]
    pub fn unless_there(self, flag: bool, mark: bool) -> Self {
        Self { flag: self.flag && !flag, mark: self.mark && !mark }
    }
}

/// A shard that is given back.
#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    /// Which one.
    pub shard: u32,
    /// What its page says from now on.
    pub page: &'a Page,
    /// The version its page has.
    pub version: Version,
    /// What hangs below it.
    pub view: Option<&'a ShardView>,
    /// The transaction of the claim.
    pub claimed_in: Zxid,
    /// What is to be as it was before.
    pub put_back: Cleared,
}

/// Why a multi was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration has changed, or it is not our turn any more: look again, decide again.
    Ground,
    /// This shard is running.
    Running(u32),
    /// Its page has changed: read it again, decide again.
    Page(u32),
    /// Something else about it has changed: look again, decide again.
    Shard(u32),
}

/// One multi, and what each part of it is about.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    ops: Vec<Op>,
    about: Vec<Refusal>,
}

impl Steps {
    fn add(&mut self, op: Op, about: Refusal) {
        self.ops.push(op);
        self.about.push(about);
    }

    /// The multi.
    pub fn ops(&self) -> Vec<Op> {
        self.ops.clone()
    }

    /// What it creates.
    pub fn created(&self) -> impl Iterator<Item = &Path> {
        self.ops
            .iter()
            .filter_map(|op| if let Op::Create(create) = op { Some(&create.path) } else { None })
    }

    /// What a refusal means; `None` if it was not the registry that said no.
    pub fn refusal(&self, error: &Error) -> Option<Refusal> {
        let Error::Member { index, cause } = error else { return None };
        match **cause {
            Error::Exists { .. }
            | Error::Conflict { .. }
            | Error::Absent { .. }
            | Error::NotEmpty { .. } => self.about.get(*index).copied(),
            _ => None,
        }
    }

    /// The versions in which the pages were written.
    pub fn pages(&self, committed: &Committed) -> Vec<(u32, Version)> {
        let written = self.about.iter().zip(&committed.done).filter_map(|(about, done)| {
            let Refusal::Page(shard) = about else { return None };
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
    /// Claims shards for a fire: `running` appears, the page says who runs it. A flag or a mark on the shard goes: this run is what it asked
    /// for.
    pub fn claim(&self, fire: &Fire, stakes: &[Stake]) -> Steps {
        let mut steps = self.on_this_ground();
        for stake in stakes {
            if self.monitor == Monitor::Executions {
                let running = self.create(stake.shard, Part::Running, self.running_kind());
                steps.add(running, Refusal::Running(stake.shard));
            }
            self.page(
                &mut steps,
                stake.shard,
                &stake.seen,
                &stake.seen.page.started(fire, self.me),
            );
            self.clear(&mut steps, stake);
        }
        steps
    }

    /// Takes over shards whose instance died, and claims them at once, so that nobody can die in between unseen.
    pub fn take(&self, turn: &Turn, fire: &Fire, stakes: &[Stake]) -> Steps {
        let mut steps = self.on_this_ground();
        steps.add(turn.check(), Refusal::Ground);
        for stake in stakes {
            let shard = stake.shard;
            self.page(&mut steps, shard, &stake.seen, &stake.seen.page.started(fire, self.me));
            self.clear(&mut steps, stake);
            if let Some(version) = stake.left_behind {
                let path = self.tree.shard(shard, Part::Failovering);
                let expected = Expected::Version(version);
                steps.add(Op::Delete { path, expected }, Refusal::Shard(shard));
            }
            let failover = self.create(shard, Part::Failover, Kind::Ephemeral(self.session));
            steps.add(failover, Refusal::Shard(shard));
            let failovering = self.create(shard, Part::Failovering, Kind::Persistent);
            steps.add(failovering, Refusal::Shard(shard));
            if self.monitor == Monitor::Executions {
                let running = self.create(shard, Part::Running, self.running_kind());
                steps.add(running, Refusal::Running(shard));
            }
        }
        steps
    }

    /// Gives shards back: what their claims created goes, if it is still there, and the pages say how they ended. What
    /// `is_fenced` can only be given back by whoever lives: what the dead held is for others to take over.
    pub fn release<'s>(
        &self,
        ended: impl IntoIterator<Item = Return<'s>>,
        is_fenced: bool,
    ) -> Steps {
        let mut steps = Steps::default();
        if is_fenced {
            let path = self.tree.process(self.me);
            steps.add(Op::Check { path, expected: Expected::Any }, Refusal::Ground);
        }
        for Return { shard, page, version, view, claimed_in, put_back } in ended {
            for (part, known) in view.iter().flat_map(|view| view.holders()) {
                let ours = known.as_ref().and_then(Known::read);
                if ours.is_some_and(|document| document.created == claimed_in) {
                    let path = self.tree.shard(shard, part);
                    steps.add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
                }
            }
            let seen = Seen { page: Page::default(), version: Some(version) };
            self.page(&mut steps, shard, &seen, page);
            self.put_back(&mut steps, shard, put_back);
        }
        steps
    }

    /// Takes the nodes of a dead instance away, writes `after` into the page — that what it ran is lost, usually — and flags the shard so
    /// that somebody takes it over, if that is asked for.
    pub fn bury(
        &self,
        dead: &InstanceId,
        shard: u32,
        seen: &Seen,
        after: &Page,
        view: &ShardView,
        flag: Flag,
    ) -> Steps {
        let mut steps = self.on_this_ground();
        self.page(&mut steps, shard, seen, after);
        let path = self.tree.failover_item(shard);
        if flag == Flag::RaiseAnew {
            let path = path.clone();
            steps.add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
        }
        if flag != Flag::Leave {
            steps.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
        }
        for (part, known) in view.holders() {
            let theirs = known.as_ref().filter(|known| known.text() == Some(dead.as_str()));
            if let Some(document) = theirs.and_then(Known::read) {
                let path = self.tree.shard(shard, part);
                let expected = Expected::Version(document.version);
                steps.add(Op::Delete { path, expected }, Refusal::Shard(shard));
            }
        }
        steps
    }

    /// Takes back a claim of which it is not known whether it came about: the page is what it was before, and so is what the claim took
    /// away.
    pub fn undo(
        &self,
        stake: &Stake,
        version: Version,
        view: &ShardView,
        put_back: Cleared,
    ) -> Steps {
        let mut steps = Steps::default();
        let shard = stake.shard;
        for (part, known) in view.holders() {
            if known.as_ref().and_then(Known::text) == Some(self.me.as_str()) {
                let path = self.tree.shard(shard, part);
                steps.add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(shard));
            }
        }
        let seen = Seen { page: Page::default(), version: Some(version) };
        self.page(&mut steps, shard, &seen, &stake.seen.page);
        self.put_back(&mut steps, shard, put_back);
        steps
    }

    fn on_this_ground(&self) -> Steps {
        let mut steps = Steps::default();
        let expected = Expected::Version(self.config);
        steps.add(Op::Check { path: self.tree.config(), expected }, Refusal::Ground);
        steps
    }

    fn clear(&self, steps: &mut Steps, stake: &Stake) {
        let mut gone = |path: Path| {
            steps.add(Op::Delete { path, expected: Expected::Any }, Refusal::Shard(stake.shard));
        };
        if stake.is_flagged {
            gone(self.tree.failover_item(stake.shard));
        }
        if stake.is_marked {
            gone(self.tree.shard(stake.shard, Part::Misfire));
        }
    }

    fn put_back(&self, steps: &mut Steps, shard: u32, cleared: Cleared) {
        let mut back = |path: Path| {
            steps.add(Op::Create(Create::persistent(&path, "")), Refusal::Shard(shard));
        };
        if cleared.flag {
            back(self.tree.failover_item(shard));
        }
        if cleared.mark {
            back(self.tree.shard(shard, Part::Misfire));
        }
    }

    fn running_kind(&self) -> Kind {
        match self.failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.session),
        }
    }

    fn create(&self, shard: u32, part: Part, kind: Kind) -> Op {
        Op::Create(Create::new(&self.tree.shard(shard, part), self.me.to_string(), kind))
    }

    fn page(&self, steps: &mut Steps, shard: u32, seen: &Seen, page: &Page) {
        let path = self.tree.page(shard);
        let op = match seen.version {
            Some(version) => {
                Op::Set { path, data: page.to_bytes().into(), expected: Expected::Version(version) }
            }
            None => Op::Create(Create::persistent(&path, page.to_bytes())),
        };
        steps.add(op, Refusal::Page(shard));
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
        /// A job with three shards and nobody in it.
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

        fn claimant<'a>(&'a self, me: &'a InstanceId, registry: &MemoryRegistry) -> Claimant<'a> {
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

    fn fresh(shards: &[u32]) -> Vec<Stake> {
        shards.iter().map(|shard| Stake::new(*shard, Seen::default())).collect()
    }

    async fn seen(registry: &MemoryRegistry, tree: &JobTree, shard: u32) -> Seen {
        let node = registry.get(&tree.page(shard)).await.unwrap().expect("written");
        Seen { page: Page::read(&node.data).unwrap(), version: Some(node.stat.version) }
    }

    fn ids() -> (InstanceId, InstanceId) {
        ("10.0.0.1@-@1-a".parse().unwrap(), "10.0.0.2@-@2-b".parse().unwrap())
    }

    #[tokio::test]
    async fn of_two_claims_of_one_shard_one_wins_and_the_other_is_told_which_shard() {
        let scene = Scene::new().await;
        let (one, two) = (scene.member().await, scene.member().await);
        let (me, you) = ids();
        let (mine, yours) = (scene.claimant(&me, &one), scene.claimant(&you, &two));
        let due = fire("2026-11-15T06:36:07Z");

        one.multi(mine.claim(&due, &fresh(&[1])).ops()).await.unwrap();
        let steps = yours.claim(&due, &fresh(&[0, 1]));
        let refused = two.multi(steps.ops()).await.unwrap_err();

        assert_eq!(steps.refusal(&refused), Some(Refusal::Running(1)));
        two.multi(yours.claim(&due, &fresh(&[0])).ops()).await.unwrap();
        let running = two.get(&scene.tree.shard(1, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.data, me.to_string());
    }

    #[tokio::test]
    async fn a_claims_transaction_is_the_creation_id_of_what_it_claims() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (me, _) = ids();
        let steps =
            scene.claimant(&me, &registry).claim(&fire("2026-11-15T06:36:07Z"), &fresh(&[0, 2]));

        let committed = registry.multi(steps.ops()).await.unwrap();

        let running = registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.created, committed.zxid);
        let session = registry.session().id();
        assert_eq!(running.owner, Some(session), "without failover it ends with us");
        assert_eq!(steps.pages(&committed), [(0, Version(0)), (2, Version(0))]);
    }

    #[tokio::test]
    async fn a_page_that_was_written_meanwhile_and_a_changed_configuration_refuse_a_claim() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (me, _) = ids();
        let claimant = scene.claimant(&me, &registry);
        let page = Page::default().to_bytes();
        registry.create(Create::persistent(&scene.tree.page(0), page)).await.unwrap();

        let steps = claimant.claim(&fire("2026-11-15T06:36:07Z"), &fresh(&[0]));
        let refused = registry.multi(steps.ops()).await.unwrap_err();
        assert_eq!(steps.refusal(&refused), Some(Refusal::Page(0)));
        registry.set(&scene.tree.config(), "new".into(), Expected::Any).await.unwrap();
        let refused = registry.multi(steps.ops()).await.unwrap_err();

        assert_eq!(steps.refusal(&refused), Some(Refusal::Ground));
        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn of_two_who_bury_the_same_one_does() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let (dead, me) = ids();
        let due = fire("2026-11-15T06:36:07Z");
        let theirs = Claimant { failover: Failover::TakeOver, ..scene.claimant(&dead, &registry) };
        registry.multi(theirs.claim(&due, &fresh(&[0])).ops()).await.unwrap();
        let page = seen(&registry, &scene.tree, 0).await;
        let running = registry.get(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        let running = crate::coordination::view::Document {
            data: running.data,
            version: running.stat.version,
            created: running.stat.created,
            written_at_ms: 0,
        };
        let view =
            ShardView { running: Some(Known::Read(Box::new(running))), ..ShardView::default() };
        let steps = scene.claimant(&me, &registry).bury(
            &dead,
            0,
            &page,
            &page.page.lost(&dead),
            &view,
            Flag::Raise,
        );

        registry.multi(steps.ops()).await.unwrap();
        let late = registry.multi(steps.ops()).await.unwrap_err();

        assert_eq!(steps.refusal(&late), Some(Refusal::Page(0)));
        assert_eq!(seen(&registry, &scene.tree, 0).await.page.state, State::Lost);
        assert!(registry.exists(&scene.tree.failover_item(0)).await.unwrap().is_some());
        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
    }
}
