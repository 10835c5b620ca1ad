//! Several instances in one job: they elect, deal, claim, come and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    coordination::{
        flaw::Flaws,
        ledger::{Page, State},
        member::{
            self, Claimed, Ended, Ground as Soil, Joining, Member, News, Refused, Request, Why,
        },
        process,
        sharding::Dealers,
        tree::{JobTree, Part},
        trigger::Trigger,
    },
    job::{Failover, Fire, Handler, Instance, InstanceId, Job, Monitor},
    registry::{Create, Expected, Op, Registry, plant},
    runtime::{Cancel, CancelReason, SystemClock, SystemRandomness},
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
    line: conformance::Member,
}

impl Node {
    /// Dies without a word: its session is over, what it wrote for good stays.
    async fn die(self) {
        self.line.registry.close().await;
    }
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
            flaws: Flaws::default(),
        };
        Node { member: Member::join(soil, joining).await.unwrap(), line: registry }
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

    /// Waits until everything belongs to this one.
    async fn all_to(&self, node: &Node, total: u32) {
        let all = BTreeMap::from([(node.member.id().to_string(), total as usize)]);
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.shares(total).await != all {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.shares(total).await);
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

fn request(fire: &Fire, patience: Duration) -> Request {
    Request {
        fire: fire.clone(),
        why: Why::Due,
        patience,
        cancel: Cancel::new(),
        busy: BTreeSet::new(),
    }
}

async fn try_claim(node: &Node, fire: &Fire, patience: Duration) -> Result<Claimed, Refused> {
    node.member.claims().claim(request(fire, patience)).await
}

async fn claim(node: &Node, fire: &Fire) -> Claimed {
    try_claim(node, fire, PATIENCE).await.unwrap()
}

fn items(claimed: &Claimed) -> Vec<u32> {
    claimed.shards.iter().map(|shard| shard.item).collect()
}

async fn finish(node: &Node, claimed: Claimed) {
    let ended = items(&claimed).into_iter().map(|shard| (shard, Ended::Done));
    node.member.claims().release(ended.collect()).await.unwrap();
}

/// Waits for news of this kind.
async fn until(node: &mut Node, is_it: impl Fn(&News) -> bool) -> News {
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
async fn take(node: &mut Node) -> Claimed {
    loop {
        until(node, |news| *news == News::Orphaned).await;
        if let Ok(taken) = node.member.claims().take(Cancel::new(), BTreeSet::new()).await {
            return taken;
        }
    }
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
            run.extend(items(&claimed));
            finish(node, claimed).await;
        }
        run.sort_unstable();
        assert_eq!(run, (0..9).collect::<Vec<_>>());
    }
}

pub(crate) async fn more_shards_than_fit_into_one_request_are_dealt(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "more-shards").await;

    let one = cluster.join(1, job(9_000)).await;

    let last = cluster.tree.shard(8_999, Part::Owner);
    there(&cluster, &last, true).await;
    there(&cluster, &cluster.tree.necessary(), false).await;
    let owner = cluster.registry().get(&last).await.unwrap().unwrap();
    assert_eq!(owner.data, one.member.id().to_string());
    let shards = cluster.registry().children(&cluster.tree.sharding()).await.unwrap();
    assert_eq!(shards.unwrap().len(), 9_000);
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
    let while_running = try_claim(&node, &fire, PATIENCE).await;
    finish(&node, claimed).await;
    let afterwards = try_claim(&node, &fire, PATIENCE).await;

    assert!(matches!(while_running, Err(Refused::Nothing)), "{while_running:?}");
    assert!(matches!(afterwards, Err(Refused::Nothing)), "{afterwards:?}");
}

pub(crate) async fn a_mark_that_a_run_was_missed_runs_nothing_once_the_last_fire_has_run(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-mark-that").await;
    let node = cluster.join(1, job(1)).await;
    let (last, next) = (cluster.fire(), cluster.fire());
    let claimed = claim(&node, &last).await;
    let mark = cluster.tree.shard(0, Part::Misfire);
    // Somebody who wanted to run it, too, was refused and did not know why.
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    let late = |fire: &Fire| {
        let since = jiff::Timestamp::MAX;
        Request { why: Why::Late { since }, ..request(fire, PATIENCE) }
    };

    let again = node.member.claims().claim(late(&last)).await;
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
    assert_eq!(items(&missed), [0], "a later one that nobody started is made up for");
    finish(&node, missed).await;
    assert_eq!(cluster.registry().get(&mark).await.unwrap(), None);
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
    let nothing = try_claim(&two, &next, Duration::from_secs(1)).await;
    assert!(matches!(nothing, Err(Refused::Nothing)), "{nothing:?}");
    finish(&one, claimed).await;

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

    assert_eq!(items(&claimed), [0]);
}

pub(crate) async fn a_changed_total_is_told_and_dealt(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-changed-total-is").await;
    let mut node = cluster.join(1, job(2)).await;
    cluster.eventually("two", 2, &[2]).await;

    let bigger = job(5).to_yaml();
    cluster.registry().set(&cluster.tree.config(), bigger.into(), Expected::Any).await.unwrap();
    let news = until(&mut node, |news| matches!(news, News::Configured(_))).await;
    assert!(matches!(&news, News::Configured(job) if job.shards.get() == 5), "{news:?}");
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
    let news = until(&mut node, |news| matches!(news, News::Unreadable(_))).await;

    assert!(matches!(&news, News::Unreadable(why) if why.contains("settle")), "{news:?}");
    let fire = cluster.fire();
    assert_eq!(claim(&node, &fire).await.shards.len(), 2);
}

pub(crate) async fn a_trigger_is_taken_and_told(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "a-trigger-is-taken").await;
    let mut node = cluster.join(1, job(1)).await;
    let (triggers, mine) = (cluster.tree.triggers(), cluster.tree.trigger(node.member.id()));
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    cluster.registry().create(Create::persistent(&mine, "")).await.unwrap();

    until(&mut node, |news| *news == News::Triggered(Box::default())).await;
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

    until(&mut node, |news| *news == News::ShutDown).await;
    let more = try_claim(&node, &cluster.fire(), PATIENCE).await;
    assert!(matches!(more, Err(Refused::Left)), "{more:?}");
    finish(&node, claimed).await;
    let running = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().exists(&running).await.unwrap(), None);
    node.member.leave().await;
}

pub(crate) async fn an_instance_whose_session_is_ending_does_not_take_it_for_a_shutdown(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "an-instance-whose").await;
    let mut node = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let id = node.member.id().clone();
    let gone = |path| Op::Delete { path, expected: Expected::Any };

    // A server that ends a session takes its nodes away at once, and may tell of them before it says why.
    let nodes = vec![gone(cluster.tree.instance(&id)), gone(cluster.tree.process(&id))];
    cluster.registry().multi(nodes).await.unwrap();
    let refused = try_claim(&node, &cluster.fire(), Duration::from_millis(100)).await;
    assert!(refused.is_err());
    node.line.registry.close().await;

    let is_end = |news: &News| matches!(news, News::ShutDown | News::SessionLost);
    assert_eq!(until(&mut node, is_end).await, News::SessionLost);
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

fn with_failover(shards: u32) -> Job {
    job(shards).if_node_dies(Failover::TakeOver)
}

pub(crate) async fn what_a_dead_instance_ran_is_taken_over_once_and_its_own_try_is_counted(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "what-a-dead-instance").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;

    one.die().await;
    let taken = take(&mut two).await;

    assert_eq!(items(&taken), items(&lost));
    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
    assert!(taken.token > lost.token);
    let shard = items(&taken)[0];
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        let node = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(node.unwrap().data, two.member.id().to_string(), "{part:?}");
    }
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(shard)).await.unwrap(), None);
    let own = claim(&two, &fire).await;
    assert_ne!(items(&own), items(&taken), "own shards still run");
    finish(&two, taken).await;
    finish(&two, own).await;
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        assert_eq!(cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap(), None);
    }
    cluster.eventually("all to the survivor", 2, &[2]).await;
    let again = try_claim(&two, &fire, PATIENCE).await;
    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
}

pub(crate) async fn the_next_regular_run_makes_up_for_what_nobody_took_over(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "the-next-regular-run").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    one.die().await;
    until(&mut two, |news| *news == News::Orphaned).await;
    cluster.all_to(&two, 1).await;
    let next = claim(&two, &cluster.fire()).await;

    assert_eq!(items(&next), [0]);
    let taken = two.member.claims().take(Cancel::new(), BTreeSet::new()).await;
    assert!(matches!(taken, Err(Refused::Nothing)), "{taken:?}");
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    finish(&two, next).await;
}

pub(crate) async fn an_instance_that_was_shut_down_and_still_runs_is_not_dead(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "an-instance-that-was").await;
    let mut one = cluster.join(1, with_failover(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, with_failover(1)).await;

    let instance = cluster.tree.instance(one.member.id());
    cluster.registry().delete(&instance, Expected::Any).await.unwrap();
    until(&mut one, |news| *news == News::ShutDown).await;
    // Whoever looks now finds the process alive: nothing is flagged, and its claim is still its own.
    let next = cluster.fire();
    let meanwhile = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(matches!(meanwhile, Err(Refused::Nothing | Refused::Resharding)), "{meanwhile:?}");
    assert_eq!(cluster.registry().exists(&cluster.tree.failover_item(0)).await.unwrap(), None);
    assert!(!claimed.shards[0].hold.is_lost());
    finish(&one, claimed).await;
    one.member.leave().await;

    cluster.all_to(&two, 1).await;
    let after = claim(&two, &next).await;
    finish(&two, after).await;
    until(&mut two, |news| *news == News::Ready).await;
}

pub(crate) async fn a_claim_that_is_taken_away_is_told_to_whoever_runs_it(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-claim-that-is").await;
    let node = cluster.join(1, job(1)).await;
    let claimed = claim(&node, &cluster.fire()).await;
    let hold: &member::Hold = &claimed.shards[0].hold;

    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9")).await.unwrap();

    let told = tokio::time::timeout(PATIENCE, hold.cancel().cancelled()).await.unwrap();
    assert_eq!(told, CancelReason::LeaseLost);
    assert!(hold.is_lost());
    finish(&node, claimed).await;
    let theirs = cluster.registry().get(&running).await.unwrap().unwrap();
    assert_eq!(theirs.data, "10.0.0.9@-@9", "it is not ours to take away");
}

pub(crate) async fn what_is_not_given_back_by_a_dead_one_without_failover_runs_at_its_next_fire(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "what-is-not-given").await;
    let one = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    claim(&one, &cluster.fire()).await;
    let mut two = cluster.join(2, job(1)).await;

    one.die().await;
    cluster.all_to(&two, 1).await;
    let next = cluster.fire();
    let claimed = claim(&two, &next).await;

    assert_eq!((items(&claimed), &claimed.fire), (vec![0], &next));
    finish(&two, claimed).await;
    until(&mut two, |news| *news == News::Ready).await;
}

pub(crate) async fn without_monitoring_the_ledger_keeps_two_from_running_one_shard(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "without-monitoring-the").await;
    let blind = || job(1).monitor(Monitor::Nothing);
    let one = cluster.join(1, blind()).await;
    cluster.eventually("all", 1, &[1]).await;
    let claimed = claim(&one, &cluster.fire()).await;
    let server = cluster.tree.server(one.member.id().server());
    let two = cluster.join(2, blind()).await;

    // The shard moves at once, because nothing shows that it runs.
    cluster.registry().set(&server, "DISABLED".into(), Expected::Any).await.unwrap();
    cluster.all_to(&two, 1).await;
    let next = cluster.fire();
    let early = try_claim(&two, &next, Duration::from_millis(300)).await;
    assert!(matches!(early, Err(Refused::Resharding)), "{early:?}");
    finish(&one, claimed).await;

    assert_eq!(items(&claim(&two, &next).await), [0]);
}

pub(crate) async fn what_java_left_behind_is_cleared_after_a_moment(ground: &dyn Ground) {
    let cluster = Cluster::new(ground, "what-java-left-behind").await;
    let mut node = cluster.join(1, with_failover(2)).await;
    cluster.eventually("all", 2, &[2]).await;
    let java = cluster.tree.instance("10.0.0.8@-@4711");
    let doc = "jobInstanceId: 10.0.0.8@-@4711\nserverIp: 10.0.0.8\n";
    let registry = cluster.ground.join(cluster.namespace, None).await;
    let session = registry.registry.session().id();
    registry.registry.create(Create::ephemeral(&java, doc, session)).await.unwrap();
    let running = cluster.tree.shard(1, Part::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.8@-@4711")).await.unwrap();

    registry.registry.close().await;
    let taken = take(&mut node).await;

    assert_eq!(items(&taken), [1]);
    assert!(!taken.fire.run.is_scheduled(), "what Java ran is not known");
    let page = cluster.registry().get(&cluster.tree.page(1)).await.unwrap().unwrap();
    assert_eq!(Page::read(&page.data).unwrap().state, State::Running);
    finish(&node, taken).await;
}

pub(crate) async fn a_trigger_waits_until_the_shard_is_free_and_leaves_no_mark(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "a-trigger-waits-until").await;
    let node = cluster.join(1, job(1)).await;
    cluster.eventually("all", 1, &[1]).await;
    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().create(Create::persistent(&running, "10.0.0.9@-@9-live")).await.unwrap();
    let live: InstanceId = "10.0.0.9@-@9-live".parse().unwrap();
    let session = cluster.registry().session().id();
    process::announce(cluster.registry(), &live, session).await.unwrap();
    let asked = Request { why: Why::Asked(BTreeSet::new()), ..request(&cluster.fire(), PATIENCE) };

    let claims = node.member.claims().clone();
    let mut waiting = std::pin::pin!(claims.claim(asked));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    cluster.registry().delete(&running, Expected::Any).await.unwrap();

    assert_eq!(items(&waiting.await.unwrap()), [0]);
    let mark = cluster.tree.shard(0, Part::Misfire);
    assert_eq!(cluster.registry().exists(&mark).await.unwrap(), None);
}

pub(crate) async fn a_running_shard_can_be_cancelled_from_outside(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-running-shard-can").await;
    let node = cluster.join(1, job(2)).await;
    let claimed = claim(&node, &cluster.fire()).await;
    let cancel = Trigger::Cancel(BTreeSet::from([1])).to_bytes();
    let triggers = cluster.tree.triggers();
    cluster.registry().create(Create::persistent(&triggers, "")).await.unwrap();

    let mine = cluster.tree.trigger(node.member.id());
    cluster.registry().create(Create::persistent(&mine, cancel)).await.unwrap();

    let told = claimed.shards[1].hold.cancel().cancelled();
    assert_eq!(tokio::time::timeout(PATIENCE, told).await.unwrap(), CancelReason::Requested);
    assert!(!claimed.shards[0].hold.cancel().is_cancelled(), "only the one that was meant");
    finish(&node, claimed).await;
}

pub(crate) async fn what_ended_fenced_while_its_session_lives_can_run_again(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "what-ended-fenced").await;
    let node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;

    // It was cut off for longer than its lease, and not for longer than its session.
    node.member.claims().release(vec![(0, Ended::Fenced)]).await.unwrap();

    assert!(claimed.shards.iter().all(|shard| !shard.hold.is_lost()));
    let running = cluster.tree.shard(0, Part::Running);
    assert_eq!(cluster.registry().get(&running).await.unwrap(), None);
    let next = cluster.fire();
    assert_eq!(items(&claim(&node, &next).await), [0]);
}

pub(crate) async fn a_mark_for_a_run_that_has_begun_is_no_second_run(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-mark-for-a-run").await;
    let mut node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let mark = cluster.tree.shard(0, Part::Misfire);
    cluster.registry().create(Create::persistent(&mark, "")).await.unwrap();
    finish(&node, claimed).await;
    until(&mut node, |news| *news == News::Missed).await;

    let late = |fire: &Fire| Request {
        why: Why::Late { since: jiff::Timestamp::MAX },
        ..request(fire, PATIENCE)
    };
    let again = node.member.claims().claim(late(&fire)).await;
    let next = cluster.fire();
    let missed = node.member.claims().claim(late(&next)).await.unwrap();

    assert!(matches!(again, Err(Refused::Nothing)), "{again:?}");
    assert_eq!((items(&missed), &missed.fire), (vec![0], &next));
}

pub(crate) async fn a_takeover_that_ends_after_a_gap_leaves_nothing_behind(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-takeover-that-ends").await;
    let one = cluster.join(1, with_failover(2)).await;
    let mut two = cluster.join(2, with_failover(2)).await;
    cluster.eventually("one each", 2, &[1, 1]).await;
    let fire = cluster.fire();
    let lost = claim(&one, &fire).await;
    one.die().await;
    let taken = take(&mut two).await;

    two.line.line.cut().await;
    until(&mut two, |news| *news == News::OutOfReach).await;
    two.line.line.heal().await;
    finish(&two, taken).await;

    let shard = items(&lost)[0];
    for part in [Part::Running, Part::Failover, Part::Failovering] {
        let left = cluster.registry().get(&cluster.tree.shard(shard, part)).await.unwrap();
        assert_eq!(left, None, "{part:?}");
    }
}

pub(crate) async fn a_claim_that_was_taken_away_does_not_stay_in_the_ledger(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "a-claim-that-was-taken").await;
    let node = cluster.join(1, job(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    let running = cluster.tree.shard(0, Part::Running);
    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    claimed.shards[0].hold.cancel().cancelled().await;

    node.member.claims().release(vec![(0, Ended::Fenced)]).await.unwrap();

    let page = cluster.registry().get(&cluster.tree.page(0)).await.unwrap().unwrap();
    assert_eq!(Page::read(&page.data).unwrap().state, State::Failed);
}

pub(crate) async fn what_java_flagged_is_no_second_try_of_what_has_ended(ground: &dyn Ground) {
    let mut cluster = Cluster::new(ground, "what-java-flagged").await;
    let mut node = cluster.join(1, with_failover(1)).await;
    let fire = cluster.fire();
    let claimed = claim(&node, &fire).await;
    finish(&node, claimed).await;

    let flag = cluster.tree.failover_item(0);
    plant(cluster.registry(), &cluster.tree.failover_items()).await.unwrap();
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    let taken = take(&mut node).await;

    assert!(!taken.fire.run.is_scheduled(), "{:?}", taken.fire);
    assert_eq!(taken.shards[0].attempt, 1);
}

pub(crate) async fn what_was_lost_while_it_was_disabled_is_taken_over_when_it_is_enabled(
    ground: &dyn Ground,
) {
    let mut cluster = Cluster::new(ground, "lost-while-disabled").await;
    let one = cluster.join(1, with_failover(1)).await;
    cluster.all_to(&one, 1).await;
    let fire = cluster.fire();
    claim(&one, &fire).await;
    let mut two = cluster.join(2, with_failover(1)).await;
    let disabled = cluster.tree.shard(0, Part::Disabled);
    cluster.registry().create(Create::persistent(&disabled, "")).await.unwrap();

    one.die().await;
    let flag = cluster.tree.failover_item(0);
    there(&cluster, &flag, true).await;
    cluster.registry().delete(&disabled, Expected::Any).await.unwrap();
    let taken = take(&mut two).await;

    assert_eq!((&taken.fire, taken.shards[0].attempt), (&fire, 2));
}

pub(crate) async fn a_flagged_shard_that_somebody_has_in_hand_is_settled_unless_they_die_with_it(
    ground: &dyn Ground,
) {
    let cluster = Cluster::new(ground, "a-flagged-shard").await;
    // A Java instance runs it, and has left the flag of an earlier loss where it is.
    let java = cluster.ground.join(cluster.namespace, None).await;
    let id = "10.0.0.8@-@4711";
    let instance = cluster.tree.instance(id);
    let (running, flag) = (cluster.tree.shard(0, Part::Running), cluster.tree.failover_item(0));
    for folder in [instance.parent(), running.parent(), flag.parent()] {
        plant(cluster.registry(), &folder.unwrap()).await.unwrap();
    }
    let session = java.registry.session().id();
    java.registry.create(Create::ephemeral(&instance, "", session)).await.unwrap();
    for (path, data) in [(&running, id), (&flag, "")] {
        cluster.registry().create(Create::persistent(path, data)).await.unwrap();
    }
    let mut node = cluster.join(1, with_failover(1)).await;

    cluster.registry().delete(&running, Expected::Any).await.unwrap();
    until(&mut node, |news| *news == News::Orphaned).await;
    let taken = node.member.claims().take(Cancel::new(), BTreeSet::new()).await;

    assert!(matches!(taken, Err(Refused::Nothing)), "{taken:?}");
    there(&cluster, &flag, false).await;
    // And once more; this time it dies.
    cluster.registry().create(Create::persistent(&flag, "")).await.unwrap();
    cluster.registry().create(Create::persistent(&running, id)).await.unwrap();
    java.registry.close().await;
    assert_eq!(items(&take(&mut node).await), [0]);
}

/// Waits until a node is there, or is not.
async fn there(cluster: &Cluster<'_>, path: &elasticjob::registry::Path, is_there: bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while cluster.registry().exists(path).await.unwrap().is_some() != is_there {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{path} is there: {}", !is_there);
}
