//! Several instances in one job: they elect, deal, claim, come and go.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        ledger::State,
        member::{Claimed, Joining, Member, News, Refused},
        tree::{JobTree, Part},
    },
    job::{Fire, Handler, Instance, InstanceId, Job},
    registry::{Create, Expected, Registry},
    runtime::{SystemClock, SystemRandomness},
    testing::conformance::{self, Ground},
};

const PATIENCE: Duration = Duration::from_secs(20);

struct Cluster<'g> {
    ground: &'g dyn Ground,
    namespace: &'static str,
    observer: conformance::Member,
    tree: JobTree,
    fires: i64,
}

/// An instance, and what keeps it connected.
struct Node {
    member: Member,
    _registry: conformance::Member,
}

impl<'g> Cluster<'g> {
    /// Each scenario has a namespace of its own, so that many can share one server.
    async fn new(ground: &'g dyn Ground, namespace: &'static str) -> Self {
        let observer = ground.join(namespace, None).await;
        let tree = JobTree::new(observer.registry.namespace(), &"settle".parse().unwrap()).unwrap();
        Self { ground, namespace, observer, tree, fires: 0 }
    }

    fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    async fn join(&self, host: u8, job: Job) -> Node {
        let registry = self.ground.join(self.namespace, None).await;
        let id = InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7);
        let joining = Joining {
            local: job,
            handler: Handler::Code { java_class: None },
            instance: Instance::new(id),
        };
        let (clock, randomness) = (Arc::new(SystemClock), Arc::new(SystemRandomness));
        let joined =
            Member::join(Arc::clone(&registry.registry), clock, randomness, None, joining).await;
        Node { member: joined.unwrap(), _registry: registry }
    }

    fn fire(&mut self) -> Fire {
        self.fires += 1;
        let due_at = jiff::Timestamp::from_second(1_800_000_000 + self.fires).unwrap();
        Fire::scheduled("settle".parse().unwrap(), due_at)
    }

    /// Who owns how many shards.
    async fn shares(&self, total: u32) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for shard in 0..total {
            let owner = self.registry().get(&self.tree.shard(shard, Part::Owner)).await.unwrap();
            if let Some(owner) = owner {
                *shares.entry(String::from_utf8(owner.data.to_vec()).unwrap()).or_default() += 1;
            }
        }
        shares
    }

    async fn eventually(&self, what: &str, total: u32, shares: &[usize]) {
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

fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(shards)
}

async fn claim(node: &Node, fire: &Fire) -> Claimed {
    node.member.claims().claim(fire, PATIENCE).await.unwrap()
}

async fn finish(node: &Node, fire: &Fire, claimed: Claimed) {
    let ended = claimed.shards.into_iter().map(|(shard, version)| (shard, version, State::Done));
    node.member.claims().release(fire, ended.collect()).await.unwrap();
}

pub(crate) async fn nine_shards_over_three_instances_are_three_each_and_every_fire_runs_every_shard_once(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "nine-shards-over-three").await;
    let nodes = [
        cluster.join(1, job(9)).await,
        cluster.join(2, job(9)).await,
        cluster.join(3, job(9)).await,
    ];
    cluster.eventually("three each", 9, &[3, 3, 3]).await;

    for _ in 0..5 {
        let fire = cluster.fire();
        let mut run = Vec::new();
        for node in &nodes {
            let claimed = claim(node, &fire).await;
            run.extend(claimed.shards.iter().map(|(shard, _)| *shard));
            finish(node, &fire, claimed).await;
        }
        run.sort_unstable();
        assert_eq!(run, (0..9).collect::<Vec<_>>());
    }
}

pub(crate) async fn one_that_joins_gets_its_share_and_one_that_leaves_gives_its_share_back(
    ground: &dyn Ground,
) {
    let cluster = Cluster::new(ground, "one-that-joins-gets").await;
    let one = cluster.join(1, job(4)).await;
    cluster.eventually("all", 4, &[4]).await;

    let two = cluster.join(2, job(4)).await;
    cluster.eventually("half each", 4, &[2, 2]).await;
    one.member.leave().await;

    cluster.eventually("all to the one that stays, who leads now", 4, &[4]).await;
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn a_fire_is_not_run_twice_however_often_it_is_claimed(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-fire-is-not").await;
    let node = cluster.join(1, job(2)).await;
    let fire = cluster.fire();

    let claimed = claim(&node, &fire).await;
    let while_running = node.member.claims().claim(&fire, PATIENCE).await;
    finish(&node, &fire, claimed).await;
    let afterwards = node.member.claims().claim(&fire, PATIENCE).await;

    assert!(matches!(while_running, Err(Refused::Nothing)), "{while_running:?}");
    assert!(matches!(afterwards, Err(Refused::Nothing)), "{afterwards:?}");
}

pub(crate) async fn a_running_shard_keeps_its_owner_and_moves_when_its_run_is_over(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-running-shard-keeps").await;
    let one = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let fire = cluster.fire();
    let claimed = claim(&one, &fire).await;

    let two = cluster.join(2, job(2)).await;
    let next = cluster.fire();
    let nothing = two.member.claims().claim(&next, Duration::from_secs(1)).await;
    assert!(matches!(nothing, Err(Refused::Nothing)), "{nothing:?}");
    finish(&one, &fire, claimed).await;

    cluster.eventually("one each", 2, &[1, 1]).await;
}

pub(crate) async fn a_disabled_server_leads_nothing_and_owns_nothing(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-disabled-server-leads").await;
    let one = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let two = cluster.join(2, job(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;

    let server = cluster.tree.server(one.member.id().server());
    cluster.registry().set(&server, "DISABLED".into(), Expected::Any).await.unwrap();

    cluster.eventually("all to the enabled one", 2, &[2]).await;
    assert_eq!(cluster.shares(2).await.keys().collect::<Vec<_>>(), [two.member.id().as_str()]);
    let leader = cluster.registry().get(&cluster.tree.leader()).await.unwrap().unwrap();
    assert_eq!(leader.data, two.member.id().to_string());
}

pub(crate) async fn a_disabled_item_is_not_claimed(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-disabled-item-is").await;
    let node = cluster.join(1, job(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let disabled = cluster.tree.shard(1, Part::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    assert_eq!(claimed.shards.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), [0]);
}

pub(crate) async fn a_changed_total_is_told_and_dealt(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-changed-total-is").await;
    let mut node = cluster.join(1, job(2)).await;
    cluster.eventually("two", 2, &[2]).await;

    let bigger = job(5).to_yaml();
    cluster.registry().set(&cluster.tree.config(), bigger.into(), Expected::Any).await.unwrap();
    let news = tokio::time::timeout(PATIENCE, node.member.news()).await.unwrap();
    assert!(matches!(&news, Some(News::Configured(job)) if job.shards.get() == 5), "{news:?}");
    cluster.eventually("five", 5, &[5]).await;
    let smaller = job(1).to_yaml();
    cluster.registry().set(&cluster.tree.config(), smaller.into(), Expected::Any).await.unwrap();

    cluster.eventually("one", 5, &[1]).await;
    let children = cluster.registry().children(&cluster.tree.sharding()).await.unwrap().unwrap();
    assert_eq!(children, ["0"]);
}

pub(crate) async fn a_configuration_nobody_can_read_changes_nothing(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-configuration-nobody-can").await;
    let mut node = cluster.join(1, job(2)).await;

    cluster.registry().set(&cluster.tree.config(), "cron: [".into(), Expected::Any).await.unwrap();
    let news = tokio::time::timeout(PATIENCE, node.member.news()).await.unwrap();

    assert!(matches!(&news, Some(News::Unreadable(why)) if why.contains("settle")), "{news:?}");
    let fire = cluster.fire();
    assert_eq!(claim(&node, &fire).await.shards.len(), 2);
}

pub(crate) async fn a_trigger_is_taken_and_told(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-trigger-is-taken").await;
    let mut node = cluster.join(1, job(1)).await;
    let (triggers, mine) = (cluster.tree.triggers(), cluster.tree.trigger(node.member.id()));
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    cluster.registry().create(Create::persistent(&mine, "")).await.unwrap();

    assert_eq!(
        tokio::time::timeout(PATIENCE, node.member.news()).await.unwrap(),
        Some(News::Triggered)
    );
    assert_eq!(cluster.registry().exists(&mine).await.unwrap(), None);
}

pub(crate) async fn an_instance_that_is_taken_out_is_told_and_starts_nothing_more_but_still_releases(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "an-instance-that-is").await;
    let mut node = cluster.join(1, job(1)).await;

    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    cluster
        .registry()
        .delete(&cluster.tree.instance(node.member.id()), Expected::Any)
        .await
        .unwrap();

    assert_eq!(
        tokio::time::timeout(PATIENCE, node.member.news()).await.unwrap(),
        Some(News::ShutDown)
    );
    let more = node.member.claims().claim(&cluster.fire(), PATIENCE).await;
    assert!(matches!(more, Err(Refused::Left)), "{more:?}");
    finish(&node, &fire, claimed).await;
    let running = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.leave().await;
}

pub(crate) async fn what_is_stored_wins_and_the_drift_is_told(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "what-is-stored-wins").await;
    let one = cluster.join(1, job(3)).await;

    let two = cluster.join(2, job(4)).await;

    assert!(one.member.drift().is_empty());
    assert_eq!(two.member.job().shards.get(), 3);
    assert_eq!(two.member.drift().len(), 1);
    assert_eq!(two.member.drift()[0].key, "shardingTotalCount");
}

pub(crate) async fn a_claim_that_somebody_replaced_is_not_given_back(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "replaced-claim").await;
    let node = cluster.join(1, job(2)).await;
    cluster.eventually("both are one's", 2, &[2]).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    let running = cluster.tree.shard(1, Part::Running);
    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9")).await.unwrap();
    finish(&node, &fire, claimed).await;

    let left = cluster.registry().get(&running).await.unwrap();
    assert_eq!(left.map(|node| node.data), Some("10.0.0.9@-@9".into()));
    let own = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().exists(&own).await.unwrap(), None);
    node.member.leave().await;
}
