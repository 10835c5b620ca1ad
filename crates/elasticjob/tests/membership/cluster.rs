//! A job with several instances, and the operations on it that the tests use.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        member::{
            self, BusyShards, ClaimError, ClaimRequest, ClaimScope, JoinRequest, Member,
            MemberEvent, MemberResources, Release, ShardClaim,
        },
        process,
        sharding::CustomStrategies,
        tree::{JobTree, ShardNode},
    },
    job::{Failover, Fire, Handler, Instance, InstanceId, Job, Outcome, ShardLimit},
    registry::Registry,
    runtime::{CancelToken, SystemClock, SystemRandomness},
    testing::conformance::{self, TestServer},
};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Cluster<'g> {
    pub(crate) ground: &'g dyn TestServer,
    pub(crate) namespace: &'static str,
    pub(crate) observer: conformance::TestClient,
    pub(crate) tree: JobTree,
    pub(crate) fires: i64,
}

/// An instance in the job, and its registry connection.
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) connection: conformance::TestClient,
}

impl Node {
    /// Dies without leaving: its session ends, its persistent nodes stay.
    pub(crate) async fn die(self) {
        self.connection.registry.close().await;
    }
}

impl<'g> Cluster<'g> {
    /// Each test has its own namespace, so that many tests can share one server.
    pub(crate) async fn new(ground: &'g dyn TestServer, namespace: &'static str) -> Self {
        let observer = ground.join(namespace, None).await;
        let tree = JobTree::new(observer.registry.namespace(), &"settle".parse().unwrap()).unwrap();
        Self { ground, namespace, observer, tree, fires: 0 }
    }

    pub(crate) fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    pub(crate) async fn join(&self, host: u8, job: Job) -> Node {
        let registry = self.ground.join(self.namespace, None).await;
        let id = InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7);
        let joining = JoinRequest {
            local: job,
            handler: Handler::Code { java_class: None },
            author: member::JobSource::Program,
            instance: Instance::new(id),
        };
        let session = registry.registry.session().id();
        process::register(&*registry.registry, &joining.instance.id, session).await.unwrap();
        let environment = MemberResources {
            registry: Arc::clone(&registry.registry),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            strategies: CustomStrategies::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
            shard_limit: ShardLimit::default(),
        };
        Node { member: Member::join(environment, joining).await.unwrap(), connection: registry }
    }

    pub(crate) fn fire(&mut self) -> Fire {
        self.fires += 1;
        let due_at = jiff::Timestamp::from_second(1_800_000_000 + self.fires).unwrap();
        Fire::scheduled("settle".parse().unwrap(), due_at)
    }

    /// Number of shards that each instance owns.
    pub(crate) async fn shares(&self, total: u32) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for shard in 0..total {
            let owner =
                self.registry().get(&self.tree.shard(shard, ShardNode::Owner)).await.unwrap();
            if let Some(owner) = owner {
                *shares.entry(String::from_utf8(owner.data.to_vec()).unwrap()).or_default() += 1;
            }
        }
        shares
    }

    /// Waits until this instance owns all shards.
    pub(crate) async fn wait_for_owner(&self, node: &Node, total: u32) {
        let all = BTreeMap::from([(node.member.id().to_string(), total as usize)]);
        let waited = tokio::time::timeout(TIMEOUT, async {
            while self.shares(total).await != all {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.shares(total).await);
    }

    pub(crate) async fn wait_for_shares(&self, description: &str, total: u32, shares: &[usize]) {
        let waited = tokio::time::timeout(TIMEOUT, async {
            loop {
                let mut now: Vec<usize> = self.shares(total).await.into_values().collect();
                now.sort_unstable();
                if now == shares {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        assert!(waited.is_ok(), "{description}: {:?}", self.shares(total).await);
    }
}

pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(shards)
}

pub(crate) fn with_failover(shards: u32) -> Job {
    job(shards).failover(Failover::TakeOver)
}

pub(crate) fn request(fire: &Fire, max_wait: Duration) -> ClaimRequest {
    ClaimRequest {
        fire: fire.clone(),
        scope: ClaimScope::Scheduled,
        max_wait,
        cancel: CancelToken::new(),
    }
}

pub(crate) async fn try_claim(
    node: &Node,
    fire: &Fire,
    max_wait: Duration,
) -> Result<ShardClaim, ClaimError> {
    node.member.claims().claim(request(fire, max_wait)).await
}

pub(crate) async fn claim(node: &Node, fire: &Fire) -> ShardClaim {
    try_claim(node, fire, TIMEOUT).await.unwrap()
}

pub(crate) fn items(claimed: &ShardClaim) -> Vec<u32> {
    claimed.shards.iter().map(|shard| shard.item).collect()
}

pub(crate) async fn finish(node: &Node, claimed: ShardClaim) {
    let ended =
        items(&claimed).into_iter().map(|shard| (shard, Release::Ended(Outcome::Succeeded)));
    node.member.claims().release(ended.collect()).await.unwrap();
}

/// Waits for news that matches.
pub(crate) async fn wait_for_news(
    node: &mut Node,
    matches: impl Fn(&MemberEvent) -> bool,
) -> MemberEvent {
    let waited = tokio::time::timeout(TIMEOUT, async {
        loop {
            match node.member.next_event().await {
                Some(news) if matches(&news) => return news,
                Some(_) => {}
                None => panic!("the member has ended"),
            }
        }
    });
    waited.await.expect("news within the timeout")
}

/// Waits until shards are orphaned, and takes them over.
pub(crate) async fn take_over(node: &mut Node) -> ShardClaim {
    node.member.claims().take_over(CancelToken::new()).await;
    match wait_for_news(node, |news| matches!(news, MemberEvent::TakenOver(_))).await {
        MemberEvent::TakenOver(taken) => *taken,
        other => panic!("{other:?}"),
    }
}

/// Waits until a registry node exists, or until it does not.
pub(crate) async fn wait_for_node(
    cluster: &Cluster<'_>,
    path: &elasticjob::registry::Path,
    should_exist: bool,
) {
    let waited = tokio::time::timeout(TIMEOUT, async {
        while cluster.registry().exists(path).await.unwrap().is_some() != should_exist {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{path} exists: {}", !should_exist);
}
