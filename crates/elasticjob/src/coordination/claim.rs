//! One fire, one claim: every shard of it in one multi, or none.
//!
//! A claim creates `running` for each shard and writes its page of the ledger, in one request that also checks that the job is still
//! configured as we think. Losing a race is an answer: the multi names the member that was refused, and [`Stakes::without`] says
//! what is left to try. A release is the same backwards. Two requests for a fire.
//!
//! The creation id of everything a claim creates is the claim's own transaction number: the fencing token.

use super::{
    ledger::{Page, Seen},
    tree::{JobTree, Part},
};
use crate::{
    job::{Failover, Fire, InstanceId, Monitor},
    registry::{Create, Error, Expected, Kind, Op, SessionId, Version},
};

/// What a claim is made with.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    /// Where everything is.
    pub tree: &'a JobTree,
    /// Who claims.
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

/// The shards a claim is for, each with its page as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stakes(pub Vec<(u32, Seen)>);

/// Why a shard is not among those claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration has changed: look again, decide again.
    Configuration,
    /// This shard is running.
    Running(u32),
    /// Its page has changed: read it again, decide again.
    Page(u32),
}

impl Claimant<'_> {
    /// The multi that claims.
    pub fn claim(&self, fire: &Fire, stakes: &Stakes) -> Vec<Op> {
        let check =
            Op::Check { path: self.tree.config(), expected: Expected::Version(self.config) };
        let shards = stakes.0.iter().flat_map(|(shard, seen)| {
            let page = seen.page.started(fire, self.me);
            self.running(*shard).into_iter().chain([self.page(*shard, seen.version, &page)])
        });
        std::iter::once(check).chain(shards).collect()
    }

    /// Which shard a refused claim failed at.
    pub fn refusal(&self, error: &Error, stakes: &Stakes) -> Option<Refusal> {
        let Error::Member { index, cause } = error else { return None };
        if !matches!(**cause, Error::Exists { .. } | Error::Conflict { .. } | Error::Absent { .. })
        {
            return None;
        }
        let Some(member) = index.checked_sub(1) else { return Some(Refusal::Configuration) };
        let per_shard = if self.monitor == Monitor::Executions { 2 } else { 1 };
        let (shard, _) = stakes.0.get(member / per_shard)?;
        let is_running = per_shard == 2 && member % 2 == 0;
        Some(if is_running { Refusal::Running(*shard) } else { Refusal::Page(*shard) })
    }

    /// The multi that gives back: `running` goes, the page says how it ended.
    pub fn release(&self, ended: &[(u32, Page, Version)]) -> Vec<Op> {
        ended
            .iter()
            .flat_map(|(shard, page, version)| {
                let running = (self.monitor == Monitor::Executions).then(|| Op::Delete {
                    path: self.tree.shard(*shard, Part::Running),
                    expected: Expected::Any,
                });
                running.into_iter().chain([self.page(*shard, Some(*version), page)])
            })
            .collect()
    }

    fn running(&self, shard: u32) -> Option<Op> {
        let kind = match self.failover {
            Failover::TakeOver => Kind::Persistent,
            Failover::Wait => Kind::Ephemeral(self.session),
        };
        let path = self.tree.shard(shard, Part::Running);
        (self.monitor == Monitor::Executions)
            .then(|| Op::Create(Create::new(&path, self.me.to_string(), kind)))
    }

    fn page(&self, shard: u32, version: Option<Version>, page: &Page) -> Op {
        let path = self.tree.page(shard);
        match version {
            Some(version) => {
                Op::Set { path, data: page.to_bytes().into(), expected: Expected::Version(version) }
            }
            None => Op::Create(Create::persistent(&path, page.to_bytes())),
        }
    }
}

impl Stakes {
    /// Those whose page does not say that this fire has been started already.
    #[must_use]
    pub fn still_due(self, fire: &Fire) -> Self {
        Self(self.0.into_iter().filter(|(_, seen)| !seen.page.has_started(fire)).collect())
    }

    /// The same without one shard.
    #[must_use]
    pub fn without(self, shard: u32) -> Self {
        Self(self.0.into_iter().filter(|(number, _)| *number != shard).collect())
    }

    /// The same with one shard's page read again.
    #[must_use]
    pub fn with_page(self, shard: u32, seen: &Seen) -> Self {
        let fresh =
            |(number, old)| if number == shard { (number, seen.clone()) } else { (number, old) };
        Self(self.0.into_iter().map(fresh).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        coordination::ledger::State,
        registry::{
            Committed, Path, Registry,
            memory::{MemoryRegistry, MemoryServer},
        },
        runtime::SystemClock,
    };

    struct Scene {
        server: MemoryServer,
        tree: JobTree,
        config: Version,
    }

    impl Scene {
        /// A job with two shards and nobody in it.
        async fn new() -> Self {
            let server = MemoryServer::new(Arc::new(SystemClock));
            let tree = JobTree::new(&"shop".parse().unwrap(), &"settle".parse().unwrap()).unwrap();
            let registry = server.join("shop".parse().unwrap()).await.unwrap();
            let parents: [Path; 8] = [
                "/shop~ledger".parse().unwrap(),
                tree.ledger().clone(),
                tree.root().clone(),
                tree.config(),
                tree.sharding(),
                tree.shard(0, Part::Itself),
                tree.shard(1, Part::Itself),
                tree.shard(2, Part::Itself),
            ];
            for path in parents {
                registry.create(Create::persistent(&path, "")).await.unwrap();
            }
            Self { server, tree, config: Version(0) }
        }

        async fn member(&self) -> MemoryRegistry {
            self.server.join("shop".parse().unwrap()).await.unwrap()
        }

        fn claimant<'a>(&'a self, me: &'a InstanceId, registry: &MemoryRegistry) -> Claimant<'a> {
            Claimant {
                tree: &self.tree,
                me,
                session: registry.session().id(),
                config: self.config,
                monitor: Monitor::Executions,
                failover: Failover::Wait,
            }
        }
    }

    fn fire(due_at: &str) -> Fire {
        Fire::scheduled("settle".parse().unwrap(), due_at.parse().unwrap())
    }

    fn fresh(shards: &[u32]) -> Stakes {
        Stakes(shards.iter().map(|shard| (*shard, Seen::default())).collect())
    }

    async fn seen(registry: &MemoryRegistry, tree: &JobTree, shard: u32) -> Seen {
        let node = registry.get(&tree.page(shard)).await.unwrap().expect("written");
        Seen { page: Page::read(&node.data).unwrap(), version: Some(node.stat.version) }
    }

    async fn claimed(registry: &MemoryRegistry, ops: Vec<Op>) -> Committed {
        registry.multi(ops).await.unwrap()
    }

    #[tokio::test]
    async fn of_two_claims_of_one_shard_one_wins_and_the_other_is_told_which_shard() {
        let scene = Scene::new().await;
        let (one, two) = (scene.member().await, scene.member().await);
        let (me, you) = ("10.0.0.1@-@1".parse().unwrap(), "10.0.0.2@-@2".parse().unwrap());
        let (mine, yours) = (scene.claimant(&me, &one), scene.claimant(&you, &two));
        let due = fire("2026-11-15T06:36:07Z");

        claimed(&one, mine.claim(&due, &fresh(&[1]))).await;
        let stakes = fresh(&[0, 1]);
        let refused = two.multi(yours.claim(&due, &stakes)).await.unwrap_err();

        assert_eq!(yours.refusal(&refused, &stakes), Some(Refusal::Running(1)));
        claimed(&two, yours.claim(&due, &stakes.without(1))).await;
        let running = two.get(&scene.tree.shard(1, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.data, me.to_string());
    }

    #[tokio::test]
    async fn a_claims_transaction_is_the_creation_id_of_what_it_claims() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let me = "10.0.0.1@-@1".parse().unwrap();

        let committed = claimed(
            &registry,
            scene.claimant(&me, &registry).claim(&fire("2026-11-15T06:36:07Z"), &fresh(&[0])),
        )
        .await;

        let running = registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.created, committed.zxid);
        assert_eq!(
            running.owner,
            Some(registry.session().id()),
            "without failover it ends with us"
        );
    }

    #[tokio::test]
    async fn a_page_that_was_written_meanwhile_refuses_the_claim_and_says_whether_the_fire_was_started()
     {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let me: InstanceId = "10.0.0.1@-@1".parse().unwrap();
        let claimant = scene.claimant(&me, &registry);
        let due = fire("2026-11-15T06:36:07Z");
        claimed(&registry, claimant.claim(&due, &fresh(&[0]))).await;
        let page = seen(&registry, &scene.tree, 0).await;
        let done = Page { state: State::Done, ..page.page.clone() };
        claimed(&registry, claimant.release(&[(0, done, page.version.unwrap())])).await;

        let stakes = fresh(&[0]);
        let refused = registry.multi(claimant.claim(&due, &stakes)).await.unwrap_err();

        assert_eq!(claimant.refusal(&refused, &stakes), Some(Refusal::Page(0)));
        let stakes = stakes.with_page(0, &seen(&registry, &scene.tree, 0).await);
        assert_eq!(stakes.clone().still_due(&due), Stakes(vec![]), "this fire was run already");
        let next = fire("2026-11-15T06:36:12Z");
        claimed(&registry, claimant.claim(&next, &stakes.still_due(&next))).await;
    }

    #[tokio::test]
    async fn a_changed_configuration_refuses_every_claim() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let me = "10.0.0.1@-@1".parse().unwrap();
        registry.set(&scene.tree.config(), "new".into(), Expected::Any).await.unwrap();

        let (claimant, stakes) = (scene.claimant(&me, &registry), fresh(&[0]));
        let refused = registry
            .multi(claimant.claim(&fire("2026-11-15T06:36:07Z"), &stakes))
            .await
            .unwrap_err();

        assert_eq!(claimant.refusal(&refused, &stakes), Some(Refusal::Configuration));
        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_release_takes_running_away_and_says_how_it_ended() {
        let scene = Scene::new().await;
        let registry = scene.member().await;
        let me = "10.0.0.1@-@1".parse().unwrap();
        let claimant = Claimant { failover: Failover::TakeOver, ..scene.claimant(&me, &registry) };
        claimed(&registry, claimant.claim(&fire("2026-11-15T06:36:07Z"), &fresh(&[0]))).await;
        let running = registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap().unwrap();
        assert_eq!(running.owner, None, "with failover it outlives us");

        let page = seen(&registry, &scene.tree, 0).await;
        let ended = Page { state: State::Failed, ..page.page };
        claimed(&registry, claimant.release(&[(0, ended.clone(), page.version.unwrap())])).await;

        assert_eq!(registry.exists(&scene.tree.shard(0, Part::Running)).await.unwrap(), None);
        assert_eq!(seen(&registry, &scene.tree, 0).await.page, ended);
    }
}
