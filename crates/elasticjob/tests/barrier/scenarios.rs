//! The gates themselves: who waits for whom, and what is left in the tree.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        barrier::{Arrival, Barrier, BarrierError, Gate, Last, Round},
        latch,
        ledger::{Page, State},
        tree::{JobTree, Part},
    },
    job::{Job, RunId},
    registry::{Create, Event, Expected, Path, Registry, plant},
    runtime::{Cancel, SystemClock},
    testing::conformance::{self, Ground},
};
use futures_util::{FutureExt, future::join_all};
use jiff::Timestamp;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Not worth waiting for.
const SHORT: Duration = Duration::from_millis(300);

/// A job with its shards dealt, and somebody who looks on.
struct Scene<'g> {
    ground: &'g dyn Ground,
    namespace: &'static str,
    observer: conformance::Member,
    tree: JobTree,
    total: u32,
}

/// An instance at the gates.
struct Instance {
    barrier: Barrier,
    member: conformance::Member,
    total: u32,
}

impl<'g> Scene<'g> {
    async fn new(ground: &'g dyn Ground, namespace: &'static str, total: u32) -> Self {
        let observer = ground.join(namespace, None).await;
        let registry = &*observer.registry;
        let job = Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(total);
        let tree = JobTree::new(registry.namespace(), &job.name).unwrap();
        plant(registry, &tree.sharding()).await.unwrap();
        plant(registry, tree.ledger()).await.unwrap();
        registry.create(Create::persistent(&tree.config(), job.to_yaml())).await.unwrap();
        let scene = Self { ground, namespace, observer, tree, total };
        for shard in 0..total {
            scene.create(&scene.tree.shard(shard, Part::Itself), "").await;
            scene.create(&scene.tree.shard(shard, Part::Owner), "somebody").await;
        }
        scene
    }

    fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    async fn create(&self, path: &Path, data: impl Into<bytes::Bytes>) {
        self.registry().create(Create::persistent(path, data)).await.unwrap();
    }

    async fn delete(&self, path: &Path) {
        self.registry().delete(path, Expected::Any).await.unwrap();
    }

    async fn join(&self) -> Instance {
        let member = self.ground.join(self.namespace, None).await;
        let barrier = Barrier {
            registry: Arc::clone(&member.registry),
            clock: Arc::new(SystemClock),
            tree: self.tree.clone(),
        };
        Instance { barrier, member, total: self.total }
    }

    fn started(&self, shard: u32) -> Path {
        self.tree.started().join(shard).unwrap()
    }

    /// The shards at the first gate; `None` if its root is gone.
    async fn registered(&self) -> Option<BTreeSet<String>> {
        // What others did is seen here only after a sync.
        self.registry().sync().await.unwrap();
        let children = self.registry().children(&self.tree.started()).await.unwrap();
        children.map(|names| names.into_iter().collect())
    }
}

impl Instance {
    async fn register(&self, fire: i64, shards: &[u32], patience: Duration) -> Round {
        self.try_register(fire, shards, patience).await.unwrap()
    }

    async fn try_register(
        &self,
        fire: i64,
        shards: &[u32],
        patience: Duration,
    ) -> Result<Round, BarrierError> {
        self.arrive(run(fire), due(fire), shards, patience).await
    }

    async fn arrive(
        &self,
        run: RunId,
        due_at: Timestamp,
        shards: &[u32],
        patience: Duration,
    ) -> Result<Round, BarrierError> {
        let arrival = Arrival { run, due_at, shards: shards.to_vec(), total: self.total };
        self.barrier.register(Gate::Started, arrival, 7, patience).await
    }
}

fn due(fire: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + fire).unwrap()
}

fn run(fire: i64) -> RunId {
    RunId::scheduled("settle".parse().unwrap(), due(fire))
}

async fn all(round: &mut Round) -> Result<Option<Last>, BarrierError> {
    let waited = tokio::time::timeout(PATIENCE * 2, round.all(&Cancel::new())).await;
    waited.expect("waiting has an end")
}

/// Runs a whole round; says how often somebody had the turn.
async fn meet(rounds: Vec<Round>) -> usize {
    let turns = join_all(rounds.into_iter().map(|mut round| async move {
        match all(&mut round).await.unwrap() {
            Some(last) => last.finish().await.map(|()| 1).unwrap(),
            None => 0,
        }
    }));
    turns.await.into_iter().sum()
}

/// Waits for a node to be deleted, as a Java instance does.
async fn deleted(watch: &mut elasticjob::registry::Watch, path: &Path) {
    let gone = async {
        while let Some(event) = watch.next().await {
            if event == (Event::Delete { path: path.clone() }) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it is deleted");
}

pub(crate) async fn one_has_the_turn_and_the_others_go_on_when_it_is_through(ground: &dyn Ground) {
    let scene = Scene::new(ground, "one-has-the-turn", 4).await;
    let (one, two, three) = (scene.join().await, scene.join().await, scene.join().await);
    let mut first = one.register(1, &[0, 1], PATIENCE).await;
    assert!(all(&mut first).now_or_never().is_none(), "two shards are missing");
    let mut second = two.register(1, &[2], PATIENCE).await;

    let mut third = three.register(1, &[3], PATIENCE).await;
    let last = all(&mut third).await.unwrap().expect("nobody else is looking");
    let early = tokio::time::timeout(SHORT, all(&mut first)).await;
    assert!(early.is_err(), "the listener has not been called yet");
    last.finish().await.unwrap();

    assert!(all(&mut first).await.unwrap().is_none());
    assert!(all(&mut second).await.unwrap().is_none());
    assert_eq!(scene.registered().await, None);
    for fire in 2..5 {
        let rounds = vec![
            one.register(fire, &[0, 1], PATIENCE).await,
            two.register(fire, &[2], PATIENCE).await,
            three.register(fire, &[3], PATIENCE).await,
        ];
        assert_eq!(meet(rounds).await, 1);
    }
}

pub(crate) async fn whoever_gives_up_takes_only_its_own_away_and_the_next_round_is_whole(
    ground: &dyn Ground,
) {
    let scene = Scene::new(ground, "whoever-gives-up", 3).await;
    let (one, two, three) = (scene.join().await, scene.join().await, scene.join().await);
    let mut hasty = one.register(1, &[0], SHORT).await;
    let patient = two.register(1, &[1], PATIENCE).await;

    let late = all(&mut hasty).await.unwrap_err();
    hasty.withdraw().await;

    assert!(
        matches!(&late, BarrierError::Late { missing, .. } if *missing == BTreeSet::from([2])),
        "{late}"
    );
    assert_eq!(scene.registered().await, Some(BTreeSet::from(["1".to_owned()])));
    patient.withdraw().await;
    assert_eq!(scene.registered().await, None, "the last one closes the door");
    let rounds = vec![
        one.register(2, &[0], PATIENCE).await,
        two.register(2, &[1], PATIENCE).await,
        three.register(2, &[2], PATIENCE).await,
    ];
    assert_eq!(meet(rounds).await, 1);
}

pub(crate) async fn what_a_dead_run_left_behind_does_not_count(ground: &dyn Ground) {
    let scene = Scene::new(ground, "what-a-dead-run", 3).await;
    plant(scene.registry(), &scene.tree.started()).await.unwrap();
    // A Rust instance died in an earlier run, and a Java instance before its shard got a new owner.
    scene.create(&scene.started(1), run(1).to_string()).await;
    scene.create(&scene.started(2), "").await;
    let owner = scene.tree.shard(2, Part::Owner);
    scene.registry().set(&owner, "another".into(), Expected::Any).await.unwrap();
    let (one, two) = (scene.join().await, scene.join().await);

    let mut alone = one.register(2, &[0], SHORT).await;
    let late = all(&mut alone).await.unwrap_err();
    alone.withdraw().await;
    assert!(
        matches!(&late, BarrierError::Late { missing, .. } if *missing == BTreeSet::from([1, 2])),
        "{late}"
    );

    let rounds =
        vec![one.register(2, &[0], PATIENCE).await, two.register(2, &[1, 2], PATIENCE).await];
    assert_eq!(meet(rounds).await, 1);
    assert_eq!(scene.registered().await, None);
}

pub(crate) async fn triggered_runs_meet_though_each_has_a_name_of_its_own(ground: &dyn Ground) {
    let scene = Scene::new(ground, "triggered-runs-meet", 2).await;
    let (one, two) = (scene.join().await, scene.join().await);

    let rounds = vec![
        one.arrive(RunId::triggered(1), due(1), &[0], PATIENCE).await.unwrap(),
        two.arrive(RunId::triggered(2), due(2), &[1], PATIENCE).await.unwrap(),
    ];

    assert_eq!(meet(rounds).await, 1);
    assert_eq!(scene.registered().await, None);
}

pub(crate) async fn a_disabled_shard_is_not_waited_for(ground: &dyn Ground) {
    let scene = Scene::new(ground, "a-disabled-shard", 3).await;
    scene.create(&scene.tree.shard(1, Part::Disabled), "").await;
    let one = scene.join().await;

    let mut round = one.register(1, &[0], PATIENCE).await;
    assert!(tokio::time::timeout(SHORT, all(&mut round)).await.is_err(), "shard 2 is missing");
    scene.create(&scene.tree.shard(2, Part::Disabled), "").await;
    let last = all(&mut round).await.unwrap().expect("nobody else is there");

    last.finish().await.unwrap();
    assert_eq!(scene.registered().await, None);
}

pub(crate) async fn a_java_instance_waits_for_the_root_to_go(ground: &dyn Ground) {
    let scene = Scene::new(ground, "a-java-instance-waits", 2).await;
    let one = scene.join().await;
    plant(scene.registry(), &scene.tree.started()).await.unwrap();
    scene.create(&scene.started(1), "").await;
    let mut watch = scene.registry().watch(&scene.tree.started()).await.unwrap();

    let turns = meet(vec![one.register(1, &[0], PATIENCE).await]).await;

    assert_eq!(turns, 1);
    deleted(&mut watch, &scene.tree.started()).await;
    let data = scene.registry().get(&scene.tree.guarantee()).await.unwrap();
    assert!(data.is_some(), "the parent stays");
}

pub(crate) async fn a_java_instance_can_have_the_turn(ground: &dyn Ground) {
    let scene = Scene::new(ground, "a-java-instance-can", 2).await;
    let one = scene.join().await;
    let mut round = one.register(1, &[0], PATIENCE).await;
    let latch = scene.tree.started_latch();

    // It is in the latch before it is complete for anybody else, and clears child by child.
    let turn = latch::queue(scene.registry(), &latch, 1, PATIENCE).await.unwrap().unwrap();
    scene.create(&scene.started(1), "").await;
    assert!(tokio::time::timeout(SHORT, all(&mut round)).await.is_err(), "it is called just now");
    scene.delete(&scene.started(1)).await;
    scene.delete(&scene.started(0)).await;
    scene.delete(&scene.tree.started()).await;
    turn.pass(scene.registry()).await;

    assert!(all(&mut round).await.unwrap().is_none(), "it was not ours to call");
}

pub(crate) async fn a_gate_that_is_cleared_too_early_is_told_at_once(ground: &dyn Ground) {
    let scene = Scene::new(ground, "a-gate-that-is", 2).await;
    let one = scene.join().await;
    let mut round = one.register(1, &[0], PATIENCE).await;

    // As a Java instance does when it loses patience.
    scene.delete(&scene.started(0)).await;
    scene.delete(&scene.tree.started()).await;
    let error = tokio::time::timeout(PATIENCE / 2, all(&mut round)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::Cleared { missing, .. } if *missing == BTreeSet::from([1])),
        "{error}"
    );
}

pub(crate) async fn who_has_gone_on_is_not_waited_for(ground: &dyn Ground) {
    let scene = Scene::new(ground, "who-has-gone-on", 3).await;
    let one = scene.join().await;
    let page = |fire, state| Page {
        run: Some(run(fire)),
        due_at: Some(due(fire)),
        state,
        ..Page::default()
    };
    scene.create(&scene.tree.page(1), page(5, State::Running).to_bytes()).await;
    scene.create(&scene.tree.page(2), page(5, State::Done).to_bytes()).await;

    let mut round = one.register(5, &[0], PATIENCE).await;
    let error = tokio::time::timeout(PATIENCE / 2, all(&mut round)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::GoneOn { shards, .. } if *shards == BTreeSet::from([2])),
        "{error}"
    );
    round.withdraw().await;

    // Those that are out of step meet again at the later fire.
    let two = scene.join().await;
    let ahead = two.register(7, &[1, 2], PATIENCE).await;
    let mut behind = one.register(6, &[0], PATIENCE).await;
    let error = all(&mut behind).await.unwrap_err();
    assert!(matches!(error, BarrierError::GoneOn { .. }), "{error}");
    behind.withdraw().await;
    assert_eq!(meet(vec![ahead, one.register(7, &[0], PATIENCE).await]).await, 1);
}

pub(crate) async fn when_the_one_with_the_turn_dies_another_one_has_it(ground: &dyn Ground) {
    let scene = Scene::new(ground, "when-the-one-with", 2).await;
    let (one, two) = (scene.join().await, scene.join().await);
    let mut first = one.register(1, &[0], PATIENCE).await;
    let mut second = two.register(1, &[1], PATIENCE).await;
    let held = all(&mut second).await.unwrap().expect("nobody else is looking");

    assert!(tokio::time::timeout(SHORT, all(&mut first)).await.is_err(), "the turn is taken");
    two.member.registry.close().await;
    drop(held);

    let last = all(&mut first).await.unwrap().expect("the turn is free, and the gate is full");
    last.finish().await.unwrap();
    assert_eq!(scene.registered().await, None);
}

pub(crate) async fn who_registered_for_the_next_round_meanwhile_stays_registered(
    ground: &dyn Ground,
) {
    let scene = Scene::new(ground, "who-registered-for", 2).await;
    let (one, two) = (scene.join().await, scene.join().await);
    let hasty = one.register(1, &[0], PATIENCE).await;
    let mut round = two.register(1, &[1], PATIENCE).await;
    let last = all(&mut round).await.unwrap().expect("nobody else is looking");
    let mut watch = scene.registry().watch(&scene.tree.started()).await.unwrap();

    hasty.withdraw().await;
    let mut ahead = one.register(2, &[0], PATIENCE).await;
    last.finish().await.unwrap();

    deleted(&mut watch, &scene.tree.started()).await;
    assert_eq!(scene.registered().await, Some(BTreeSet::from(["0".to_owned()])));
    assert!(
        tokio::time::timeout(SHORT, all(&mut ahead)).await.is_err(),
        "its round has just begun"
    );
    let behind = two.register(2, &[1], PATIENCE).await;
    assert_eq!(meet(vec![ahead, behind]).await, 1);
}

pub(crate) async fn an_outage_ends_the_wait(ground: &dyn Ground) {
    let scene = Scene::new(ground, "an-outage-ends", 2).await;
    let one = scene.join().await;
    let mut round = one.register(1, &[0], PATIENCE).await;

    one.member.line.cut().await;
    let error = all(&mut round).await.unwrap_err();

    // Not because its patience ended.
    assert!(matches!(error, BarrierError::Registry(_)), "{error}");
    one.member.line.heal().await;
    let rounds = vec![one.register(2, &[0, 1], PATIENCE).await];
    assert_eq!(meet(rounds).await, 1, "and the next round is whole");
}

pub(crate) async fn a_removed_job_is_not_brought_back(ground: &dyn Ground) {
    let scene = Scene::new(ground, "a-removed-job-is", 1).await;
    let one = scene.join().await;
    scene.delete(&scene.tree.config()).await;

    let error = one.try_register(1, &[0], PATIENCE).await.unwrap_err();

    assert!(matches!(error, BarrierError::Removed), "{error}");
    assert_eq!(scene.registered().await, None);
}
