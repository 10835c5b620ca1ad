//! One instance in a job without a timer and without handlers: its claims, takeovers, releases and news.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        ledger::LedgerPage,
        member::{
            BusyShards, ClaimError, ClaimRequest, ClaimScope, JobSource, JoinError, JoinRequest,
            Member, MemberEvent, MemberResources, Release, ShardClaim,
        },
        process,
        sharding::CustomStrategies,
    },
    job::{Failover, Fire, Handler, Instance, InstanceId, Job, Outcome, ShardLimit},
    registry::{Registry, Zxid},
    runtime::{CancelToken, SystemRandomness},
};

use crate::cluster::{Cluster, Connection, job};

/// Limit for every wait, in tokio's paused time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An instance in the job, and its connection.
pub(crate) struct TestInstance {
    pub(crate) member: Member,
    pub(crate) connection: Connection,
}

pub(crate) fn with_failover(shards: u32) -> Job {
    job(shards).failover(Failover::TakeOver)
}

/// Id of the instance on this host.
pub(crate) fn id(host: u8) -> InstanceId {
    InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7)
}

impl Cluster {
    /// Joins the job from this host; returns when all tasks are idle.
    pub(crate) async fn join(&self, host: u8, job: Job) -> TestInstance {
        let connection = self.connect().await;
        let instance = self.join_as(id(host), job, connection).await.unwrap();
        self.settle().await;
        instance
    }

    pub(crate) async fn join_as(
        &self,
        id: InstanceId,
        job: Job,
        connection: Connection,
    ) -> Result<TestInstance, JoinError> {
        let registry: Arc<dyn Registry> = Arc::clone(&connection.registry) as Arc<dyn Registry>;
        process::register(&*registry, &id, registry.session().id()).await.unwrap();
        let ground = MemberResources {
            registry,
            clock: Arc::new(self.clock.clone()),
            randomness: Arc::new(SystemRandomness),
            strategies: CustomStrategies::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
            shard_limit: ShardLimit::default(),
        };
        let handler = Handler::Code { java_class: None };
        let joining = JoinRequest {
            local: job,
            handler,
            author: JobSource::Program,
            instance: Instance::new(id),
        };
        Ok(TestInstance { member: Member::join(ground, joining).await?, connection })
    }

    /// The ledger page of a shard.
    pub(crate) async fn page(&self, shard: u32) -> LedgerPage {
        let text = self.text(&self.tree.ledger_page(shard)).await.unwrap_or_default();
        LedgerPage::read(text.as_bytes()).unwrap()
    }

    /// Creation zxid of a shard's `running` node; it identifies the claim that created the node.
    pub(crate) async fn claim_zxid(&self, shard: u32) -> Option<Zxid> {
        let path = self.tree.shard(shard, elasticjob::coordination::tree::ShardNode::Running);
        self.stat(&path).await.map(|stat| stat.created)
    }
}

impl TestInstance {
    pub(crate) fn id(&self) -> String {
        self.member.id().to_string()
    }

    pub(crate) async fn try_claim(
        &self,
        fire: &Fire,
        scope: ClaimScope,
        max_wait: Duration,
    ) -> Result<ShardClaim, ClaimError> {
        let request =
            ClaimRequest { fire: fire.clone(), scope, max_wait, cancel: CancelToken::new() };
        self.member.claims().claim(request).await
    }

    pub(crate) async fn claim(&self, fire: &Fire) -> ShardClaim {
        let claimed = self.try_claim(fire, ClaimScope::Scheduled, TIMEOUT);
        let claimed =
            tokio::time::timeout(TIMEOUT, claimed).await.expect("claim within the timeout");
        claimed.unwrap()
    }

    /// Claims and releases; returns the shards that were claimed.
    pub(crate) async fn run(&self, fire: &Fire) -> Vec<u32> {
        match self.try_claim(fire, ClaimScope::Scheduled, Duration::ZERO).await {
            Ok(claimed) => {
                let items = items(&claimed);
                self.finish(claimed).await;
                items
            }
            Err(ClaimError::NothingToRun) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn finish(&self, claimed: ShardClaim) {
        let ended =
            items(&claimed).into_iter().map(|shard| (shard, Release::Ended(Outcome::Succeeded)));
        self.member.claims().release(ended.collect()).await.unwrap();
    }

    /// From now on takes over orphaned shards as they appear.
    pub(crate) async fn start_taking_over(&self) {
        self.member.claims().take_over(CancelToken::new()).await;
    }

    /// The next shards that are taken over; `None` if there are none.
    pub(crate) async fn take_over(&mut self) -> Option<ShardClaim> {
        self.start_taking_over().await;
        let taken = self.wait_for(|news| matches!(news, MemberEvent::TakenOver(_)));
        match tokio::time::timeout(Duration::from_secs(1), taken).await {
            Ok(MemberEvent::TakenOver(taken)) => Some(*taken),
            _ => None,
        }
    }

    /// Waits for news that matches.
    pub(crate) async fn wait_for(&mut self, matches: impl Fn(&MemberEvent) -> bool) -> MemberEvent {
        let waited = tokio::time::timeout(TIMEOUT, async {
            loop {
                match self.member.next_event().await {
                    Some(news) if matches(&news) => return news,
                    Some(_) => {}
                    None => panic!("the member has ended"),
                }
            }
        });
        waited.await.expect("news within the timeout")
    }

    /// Dies without leaving: its session ends, its persistent nodes stay.
    pub(crate) async fn die(self) {
        self.connection.die().await;
    }
}

pub(crate) fn items(claimed: &ShardClaim) -> Vec<u32> {
    claimed.shards.iter().map(|shard| shard.item).collect()
}
