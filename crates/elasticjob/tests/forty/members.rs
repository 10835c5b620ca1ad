//! One instance in a job, without a timer and without handlers: what it claims, takes over, gives back and tells.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        ledger::Page,
        member::{
            Author, BusyShards, Claimed, Ended, Ground, JoinError, Joining, Member, News, Refused,
            Request, Why,
        },
        process,
        sharding::Dealers,
    },
    job::{Failover, Fire, Handler, Instance, InstanceId, Job},
    registry::{Registry, Zxid},
    runtime::{Cancel, SystemRandomness},
};

use crate::stage::{Line, Stage, job};

/// Longer than anything takes that is not stuck, in tokio's time, which costs nothing.
const PATIENCE: Duration = Duration::from_secs(20);

/// An instance in the job.
pub(crate) struct Actor {
    pub(crate) member: Member,
    pub(crate) line: Line,
}

pub(crate) fn with_failover(shards: u32) -> Job {
    job(shards).if_node_dies(Failover::TakeOver)
}

/// The id of the instance on this host.
pub(crate) fn id(host: u8) -> InstanceId {
    InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7)
}

impl Stage {
    /// Enters the job from this host; on return everybody has come to rest.
    pub(crate) async fn join(&self, host: u8, job: Job) -> Actor {
        let line = self.line().await;
        let actor = self.join_as(id(host), job, line).await.unwrap();
        self.settle().await;
        actor
    }

    pub(crate) async fn join_as(
        &self,
        id: InstanceId,
        job: Job,
        line: Line,
    ) -> Result<Actor, JoinError> {
        let registry: Arc<dyn Registry> = Arc::clone(&line.registry) as Arc<dyn Registry>;
        process::announce(&*registry, &id, registry.session().id()).await.unwrap();
        let ground = Ground {
            registry,
            clock: Arc::new(self.clock.clone()),
            randomness: Arc::new(SystemRandomness),
            dealers: Dealers::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
        };
        let handler = Handler::Code { java_class: None };
        let joining =
            Joining { local: job, handler, author: Author::Program, instance: Instance::new(id) };
        Ok(Actor { member: Member::join(ground, joining).await?, line })
    }

    /// What the ledger says about a shard.
    pub(crate) async fn page(&self, shard: u32) -> Page {
        let text = self.text(&self.tree.page(shard)).await.unwrap_or_default();
        Page::read(text.as_bytes()).unwrap()
    }

    /// When the `running` of a shard was created: tells it from a stranger's.
    pub(crate) async fn claimed_in(&self, shard: u32) -> Option<Zxid> {
        let path = self.tree.shard(shard, elasticjob::coordination::tree::Part::Running);
        self.stat(&path).await.map(|stat| stat.created)
    }
}

impl Actor {
    pub(crate) fn id(&self) -> String {
        self.member.id().to_string()
    }

    pub(crate) async fn try_claim(
        &self,
        fire: &Fire,
        why: Why,
        patience: Duration,
    ) -> Result<Claimed, Refused> {
        let request = Request { fire: fire.clone(), why, patience, cancel: Cancel::new() };
        self.member.claims().claim(request).await
    }

    pub(crate) async fn claim(&self, fire: &Fire) -> Claimed {
        let claimed = self.try_claim(fire, Why::Due, PATIENCE);
        let claimed = tokio::time::timeout(PATIENCE, claimed).await.expect("it is answered");
        claimed.unwrap()
    }

    /// Claims and gives back; says which shards that were.
    pub(crate) async fn run(&self, fire: &Fire) -> Vec<u32> {
        match self.try_claim(fire, Why::Due, Duration::ZERO).await {
            Ok(claimed) => {
                let items = items(&claimed);
                self.finish(claimed).await;
                items
            }
            Err(Refused::Nothing) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn finish(&self, claimed: Claimed) {
        let ended = items(&claimed).into_iter().map(|shard| (shard, Ended::Done));
        self.member.claims().release(ended.collect()).await.unwrap();
    }

    /// From now on takes over orphaned shards as they appear.
    pub(crate) async fn takes_over(&self) {
        self.member.claims().take_over(Cancel::new()).await;
    }

    /// The next shards that are taken over; `None` if there are none.
    pub(crate) async fn take(&mut self) -> Option<Claimed> {
        self.takes_over().await;
        let taken = self.told(|news| matches!(news, News::TakenOver(_)));
        match tokio::time::timeout(Duration::from_secs(1), taken).await {
            Ok(News::TakenOver(taken)) => Some(*taken),
            _ => None,
        }
    }

    /// Waits for news of this kind.
    pub(crate) async fn told(&mut self, is_it: impl Fn(&News) -> bool) -> News {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                match self.member.news().await {
                    Some(news) if is_it(&news) => return news,
                    Some(_) => {}
                    None => panic!("the member has ended"),
                }
            }
        });
        waited.await.expect("it is told")
    }

    /// Dies without a word: its session is over, what it wrote for good stays.
    pub(crate) async fn die(self) {
        self.line.die().await;
    }
}

pub(crate) fn items(claimed: &Claimed) -> Vec<u32> {
    claimed.shards.iter().map(|shard| shard.item).collect()
}
