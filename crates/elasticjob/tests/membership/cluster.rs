//! Several instances in one job.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        member::{
            self, BusyShards, Claimed, Ended, Ground as Soil, Joining, Member, News, Refused,
            Request, Why,
        },
        process,
        sharding::Dealers,
        tree::{JobTree, Part},
    },
    job::{Failover, Fire, Handler, Instance, InstanceId, Job},
    registry::Registry,
    runtime::{Cancel, SystemClock, SystemRandomness},
    testing::conformance::{self, Ground},
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Cluster<'g> {
    pub(crate) ground: &'g dyn Ground,
    pub(crate) namespace: &'static str,
    pub(crate) observer: conformance::Member,
    pub(crate) tree: JobTree,
    pub(crate) fires: i64,
}

/// An instance, and what keeps it connected.
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) line: conformance::Member,
}

impl Node {
    /// Dies without a word: its session is over, what it wrote for good stays.
    pub(crate) async fn die(self) {
        self.line.registry.close().await;
    }
}

impl<'g> Cluster<'g> {
    /// Each scenario has a namespace of its own, so that many can share one server.
    pub(crate) async fn new(ground: &'g dyn Ground, namespace: &'static str) -> Self {
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
        let joining = Joining {
            local: job,
            handler: Handler::Code { java_class: None },
            author: member::Author::Program,
            instance: Instance::new(id),
        };
        let session = registry.registry.session().id();
        process::announce(&*registry.registry, &joining.instance.id, session).await.unwrap();
        let soil = Soil {
            registry: Arc::clone(&registry.registry),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            dealers: Dealers::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
        };
        Node { member: Member::join(soil, joining).await.unwrap(), line: registry }
    }

    pub(crate) fn fire(&mut self) -> Fire {
        self.fires += 1;
        let due_at = jiff::Timestamp::from_second(1_800_000_000 + self.fires).unwrap();
        Fire::scheduled("settle".parse().unwrap(), due_at)
    }

    /// Who owns how many shards.
    pub(crate) async fn shares(&self, total: u32) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for shard in 0..total {
            let owner = self.registry().get(&self.tree.shard(shard, Part::Owner)).await.unwrap();
            if let Some(owner) = owner {
                *shares.entry(String::from_utf8(owner.data.to_vec()).unwrap()).or_default() += 1;
            }
        }
        shares
    }

    /// Waits until everything belongs to this one.
    pub(crate) async fn all_to(&self, node: &Node, total: u32) {
        let all = BTreeMap::from([(node.member.id().to_string(), total as usize)]);
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.shares(total).await != all {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.shares(total).await);
    }

    pub(crate) async fn eventually(&self, what: &str, total: u32, shares: &[usize]) {
        let waited = tokio::time::timeout(PATIENCE, async {
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
        assert!(waited.is_ok(), "{what}: {:?}", self.shares(total).await);
    }
}

pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(shards)
}

pub(crate) fn with_failover(shards: u32) -> Job {
    job(shards).if_node_dies(Failover::TakeOver)
}

pub(crate) fn request(fire: &Fire, patience: Duration) -> Request {
    Request { fire: fire.clone(), why: Why::Due, patience, cancel: Cancel::new() }
}

pub(crate) async fn try_claim(
    node: &Node,
    fire: &Fire,
    patience: Duration,
) -> Result<Claimed, Refused> {
    node.member.claims().claim(request(fire, patience)).await
}

pub(crate) async fn claim(node: &Node, fire: &Fire) -> Claimed {
    try_claim(node, fire, PATIENCE).await.unwrap()
}

pub(crate) fn items(claimed: &Claimed) -> Vec<u32> {
    claimed.shards.iter().map(|shard| shard.item).collect()
}

pub(crate) async fn finish(node: &Node, claimed: Claimed) {
    let ended = items(&claimed).into_iter().map(|shard| (shard, Ended::Done));
    node.member.claims().release(ended.collect()).await.unwrap();
}

/// Waits for news of this kind.
pub(crate) async fn until(node: &mut Node, is_it: impl Fn(&News) -> bool) -> News {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            match node.member.news().await {
                Some(news) if is_it(&news) => return news,
                Some(_) => {}
                None => panic!("the member has ended"),
            }
        }
    });
    waited.await.expect("it is told")
}

/// Takes over what waits, as soon as something does.
pub(crate) async fn take(node: &mut Node) -> Claimed {
    node.member.claims().take_over(Cancel::new()).await;
    match until(node, |news| matches!(news, News::TakenOver(_))).await {
        News::TakenOver(taken) => *taken,
        other => panic!("{other:?}"),
    }
}

/// Waits until a node is there, or is not.
pub(crate) async fn there(
    cluster: &Cluster<'_>,
    path: &elasticjob::registry::Path,
    is_there: bool,
) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while cluster.registry().exists(path).await.unwrap().is_some() != is_there {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{path} is there: {}", !is_there);
}
