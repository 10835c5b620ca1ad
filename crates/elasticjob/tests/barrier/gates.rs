//! The gates alone: which shards wait for which, and which nodes remain in the tree.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use elasticjob::{
    coordination::{
        barrier::{Arrival, Barrier, BarrierError, Gate, GateWaiter, ListenerTurn},
        latch,
        ledger::{LedgerPage, LedgerState},
        tree::{JobTree, ShardNode},
    },
    job::{Job, RunId},
    registry::{Create, Event, ExpectedVersion, Path, Registry, ensure_path},
    runtime::{CancelToken, SystemClock},
    testing::conformance::{self, TestServer},
};
use futures_util::{FutureExt, future::join_all};
use jiff::Timestamp;

/// Limit for every wait that should succeed.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Limit for a wait that should not succeed.
const SHORT: Duration = Duration::from_millis(300);

/// A job whose shards are assigned, and an observer.
struct Cluster<'g> {
    ground: &'g dyn TestServer,
    namespace: &'static str,
    observer: conformance::TestClient,
    tree: JobTree,
    total: u32,
}

/// An instance that uses the gates.
struct Instance {
    barrier: Barrier,
    member: conformance::TestClient,
    total: u32,
}

impl<'g> Cluster<'g> {
    async fn new(ground: &'g dyn TestServer, namespace: &'static str, total: u32) -> Self {
        let observer = ground.join(namespace, None).await;
        let registry = &*observer.registry;
        let job = Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(total);
        let tree = JobTree::new(registry.namespace(), &job.name).unwrap();
        ensure_path(registry, &tree.sharding()).await.unwrap();
        ensure_path(registry, tree.ledger()).await.unwrap();
        registry.create(Create::persistent(&tree.config(), job.to_yaml())).await.unwrap();
        let cluster = Self { ground, namespace, observer, tree, total };
        for shard in 0..total {
            cluster.create(&cluster.tree.shard(shard, ShardNode::Root), "").await;
            cluster.create(&cluster.tree.shard(shard, ShardNode::Owner), "owner").await;
        }
        cluster
    }

    fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    async fn create(&self, path: &Path, data: impl Into<bytes::Bytes>) {
        self.registry().create(Create::persistent(path, data)).await.unwrap();
    }

    async fn delete(&self, path: &Path) {
        self.registry().delete(path, ExpectedVersion::Any).await.unwrap();
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

    /// The shards registered at the first gate; `None` if its root does not exist.
    async fn registered(&self) -> Option<BTreeSet<String>> {
        // The observer sees the writes of others only after a sync.
        self.registry().sync().await.unwrap();
        let children = self.registry().children(&self.tree.started()).await.unwrap();
        children.map(|names| names.into_iter().collect())
    }
}

impl Instance {
    async fn register(&self, fire: i64, shards: &[u32], timeout: Duration) -> GateWaiter {
        self.try_register(fire, shards, timeout).await.unwrap()
    }

    async fn try_register(
        &self,
        fire: i64,
        shards: &[u32],
        timeout: Duration,
    ) -> Result<GateWaiter, BarrierError> {
        self.arrive(run(fire), due(fire), shards, timeout).await
    }

    async fn arrive(
        &self,
        run: RunId,
        due_at: Timestamp,
        shards: &[u32],
        timeout: Duration,
    ) -> Result<GateWaiter, BarrierError> {
        let arrival = Arrival { run, due_at, shards: shards.to_vec(), total: self.total };
        self.barrier.register(Gate::Started, arrival, 7, timeout).await
    }
}

fn due(fire: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + fire).unwrap()
}

fn run(fire: i64) -> RunId {
    RunId::scheduled("settle".parse().unwrap(), due(fire))
}

async fn all(round: &mut GateWaiter) -> Result<Option<ListenerTurn>, BarrierError> {
    let waited = tokio::time::timeout(TIMEOUT * 2, round.wait(&CancelToken::new())).await;
    waited.expect("the wait has a limit")
}

/// Passes the gate with all instances; returns how many of them got the turn.
async fn meet(rounds: Vec<GateWaiter>) -> usize {
    let turns = join_all(rounds.into_iter().map(|mut round| async move {
        match all(&mut round).await.unwrap() {
            Some(last) => last.finish().await.map(|()| 1).unwrap(),
            None => 0,
        }
    }));
    turns.await.into_iter().sum()
}

/// Waits until a node is deleted, as a Java instance does.
async fn wait_for_deletion(watch: &mut elasticjob::registry::Watch, path: &Path) {
    let deletion = async {
        while let Some(event) = watch.next().await {
            if event == (Event::Delete { path: path.clone() }) {
                return;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, deletion).await.expect("deletion within the timeout");
}

pub(crate) async fn one_instance_gets_the_turn_and_the_others_wait_for_it(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "one-instance-gets", 4).await;
    let (one, two, three) = (cluster.join().await, cluster.join().await, cluster.join().await);
    let mut first = one.register(1, &[0, 1], TIMEOUT).await;
    assert!(all(&mut first).now_or_never().is_none(), "two shards are missing");
    let mut second = two.register(1, &[2], TIMEOUT).await;

    let mut third = three.register(1, &[3], TIMEOUT).await;
    let last = all(&mut third).await.unwrap().expect("no other instance has the turn");
    let early = tokio::time::timeout(SHORT, all(&mut first)).await;
    assert!(early.is_err(), "the listener has not been called yet");
    last.finish().await.unwrap();

    assert!(all(&mut first).await.unwrap().is_none());
    assert!(all(&mut second).await.unwrap().is_none());
    assert_eq!(cluster.registered().await, None);
    for fire in 2..5 {
        let rounds = vec![
            one.register(fire, &[0, 1], TIMEOUT).await,
            two.register(fire, &[2], TIMEOUT).await,
            three.register(fire, &[3], TIMEOUT).await,
        ];
        assert_eq!(meet(rounds).await, 1);
    }
}

pub(crate) async fn withdrawal_deletes_only_own_registrations(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "withdrawal-deletes-only", 3).await;
    let (one, two, three) = (cluster.join().await, cluster.join().await, cluster.join().await);
    let mut impatient = one.register(1, &[0], SHORT).await;
    let patient = two.register(1, &[1], TIMEOUT).await;

    let late = all(&mut impatient).await.unwrap_err();
    impatient.withdraw().await;

    assert!(
        matches!(&late, BarrierError::TimedOut { missing, .. } if *missing == BTreeSet::from([2])),
        "{late}"
    );
    assert_eq!(cluster.registered().await, Some(BTreeSet::from(["1".to_owned()])));
    patient.withdraw().await;
    assert_eq!(cluster.registered().await, None, "the last one deletes the root");
    let rounds = vec![
        one.register(2, &[0], TIMEOUT).await,
        two.register(2, &[1], TIMEOUT).await,
        three.register(2, &[2], TIMEOUT).await,
    ];
    assert_eq!(meet(rounds).await, 1);
}

pub(crate) async fn registrations_of_a_dead_run_do_not_count(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "registrations-of-a", 3).await;
    ensure_path(cluster.registry(), &cluster.tree.started()).await.unwrap();
    // A Rust instance died in an earlier run, and a Java instance died before its shard got a new owner.
    cluster.create(&cluster.started(1), run(1).to_string()).await;
    cluster.create(&cluster.started(2), "").await;
    let owner = cluster.tree.shard(2, ShardNode::Owner);
    cluster.registry().set(&owner, "another".into(), ExpectedVersion::Any).await.unwrap();
    let (one, two) = (cluster.join().await, cluster.join().await);

    let mut alone = one.register(2, &[0], SHORT).await;
    let late = all(&mut alone).await.unwrap_err();
    alone.withdraw().await;
    assert!(
        matches!(&late, BarrierError::TimedOut { missing, .. } if *missing == BTreeSet::from([1, 2])),
        "{late}"
    );

    let rounds =
        vec![one.register(2, &[0], TIMEOUT).await, two.register(2, &[1, 2], TIMEOUT).await];
    assert_eq!(meet(rounds).await, 1);
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn triggered_runs_meet_despite_different_run_ids(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "triggered-runs-meet", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);

    let rounds = vec![
        one.arrive(RunId::triggered(1), due(1), &[0], TIMEOUT).await.unwrap(),
        two.arrive(RunId::triggered(2), due(2), &[1], TIMEOUT).await.unwrap(),
    ];

    assert_eq!(meet(rounds).await, 1);
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn disabled_shard_is_not_waited_for(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "disabled-shard-is-not", 3).await;
    cluster.create(&cluster.tree.shard(1, ShardNode::Disabled), "").await;
    let one = cluster.join().await;

    let mut round = one.register(1, &[0], TIMEOUT).await;
    assert!(tokio::time::timeout(SHORT, all(&mut round)).await.is_err(), "shard 2 is missing");
    cluster.create(&cluster.tree.shard(2, ShardNode::Disabled), "").await;
    let last = all(&mut round).await.unwrap().expect("this is the only instance");

    last.finish().await.unwrap();
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn gate_root_is_deleted_for_waiting_java_instances(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "gate-root-is", 2).await;
    let one = cluster.join().await;
    ensure_path(cluster.registry(), &cluster.tree.started()).await.unwrap();
    cluster.create(&cluster.started(1), "").await;
    let mut watch = cluster.registry().watch(&cluster.tree.started()).await.unwrap();

    let turns = meet(vec![one.register(1, &[0], TIMEOUT).await]).await;

    assert_eq!(turns, 1);
    wait_for_deletion(&mut watch, &cluster.tree.started()).await;
    let data = cluster.registry().get(&cluster.tree.guarantee()).await.unwrap();
    assert!(data.is_some(), "the parent stays");
}

pub(crate) async fn java_instance_can_get_the_turn(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "java-instance-can", 2).await;
    let one = cluster.join().await;
    let mut round = one.register(1, &[0], TIMEOUT).await;
    let latch = cluster.tree.started_latch();

    // The Java instance is in the latch before any other instance sees the gate complete, and deletes child by child.
    let turn = latch::acquire(cluster.registry(), &latch, 1, TIMEOUT).await.unwrap().unwrap();
    cluster.create(&cluster.started(1), "").await;
    assert!(
        tokio::time::timeout(SHORT, all(&mut round)).await.is_err(),
        "the listener is being called"
    );
    cluster.delete(&cluster.started(1)).await;
    cluster.delete(&cluster.started(0)).await;
    cluster.delete(&cluster.tree.started()).await;
    turn.release(cluster.registry()).await;

    assert!(all(&mut round).await.unwrap().is_none(), "the Java instance had the turn");
}

pub(crate) async fn gate_cleared_too_early_is_reported_at_once(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "gate-cleared-too", 2).await;
    let one = cluster.join().await;
    let mut round = one.register(1, &[0], TIMEOUT).await;

    // A Java instance does this when its wait times out.
    cluster.delete(&cluster.started(0)).await;
    cluster.delete(&cluster.tree.started()).await;
    let error = tokio::time::timeout(TIMEOUT / 2, all(&mut round)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::ClearedEarly { missing, .. } if *missing == BTreeSet::from([1])),
        "{error}"
    );
}

pub(crate) async fn shard_that_has_gone_on_is_not_waited_for(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "shard-that-has", 3).await;
    let one = cluster.join().await;
    let page = |fire, state| LedgerPage {
        run: Some(run(fire)),
        due_at: Some(due(fire)),
        state,
        ..LedgerPage::default()
    };
    cluster.create(&cluster.tree.ledger_page(1), page(5, LedgerState::Running).to_bytes()).await;
    cluster.create(&cluster.tree.ledger_page(2), page(5, LedgerState::Done).to_bytes()).await;

    let mut round = one.register(5, &[0], TIMEOUT).await;
    let error = tokio::time::timeout(TIMEOUT / 2, all(&mut round)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::MovedOn { shards, .. } if *shards == BTreeSet::from([2])),
        "{error}"
    );
    round.withdraw().await;

    // Instances at different fires meet again at the later one.
    let two = cluster.join().await;
    let ahead = two.register(7, &[1, 2], TIMEOUT).await;
    let mut behind = one.register(6, &[0], TIMEOUT).await;
    let error = all(&mut behind).await.unwrap_err();
    assert!(matches!(error, BarrierError::MovedOn { .. }), "{error}");
    behind.withdraw().await;
    assert_eq!(meet(vec![ahead, one.register(7, &[0], TIMEOUT).await]).await, 1);
}

pub(crate) async fn turn_passes_on_when_its_holder_dies(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "turn-passes-on", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);
    let mut first = one.register(1, &[0], TIMEOUT).await;
    let mut second = two.register(1, &[1], TIMEOUT).await;
    let held = all(&mut second).await.unwrap().expect("no other instance has the turn");

    assert!(tokio::time::timeout(SHORT, all(&mut first)).await.is_err(), "the turn is taken");
    two.member.registry.close().await;
    drop(held);

    let last = all(&mut first).await.unwrap().expect("the turn is free, and the gate is complete");
    last.finish().await.unwrap();
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn registration_for_the_next_run_survives_clearing(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "registration-for-the", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);
    let impatient = one.register(1, &[0], TIMEOUT).await;
    let mut round = two.register(1, &[1], TIMEOUT).await;
    let last = all(&mut round).await.unwrap().expect("no other instance has the turn");
    let mut watch = cluster.registry().watch(&cluster.tree.started()).await.unwrap();

    impatient.withdraw().await;
    let mut ahead = one.register(2, &[0], TIMEOUT).await;
    last.finish().await.unwrap();

    wait_for_deletion(&mut watch, &cluster.tree.started()).await;
    assert_eq!(cluster.registered().await, Some(BTreeSet::from(["0".to_owned()])));
    assert!(
        tokio::time::timeout(SHORT, all(&mut ahead)).await.is_err(),
        "the next run has just started"
    );
    let behind = two.register(2, &[1], TIMEOUT).await;
    assert_eq!(meet(vec![ahead, behind]).await, 1);
}

pub(crate) async fn outage_ends_the_wait(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "outage-ends-the", 2).await;
    let one = cluster.join().await;
    let mut round = one.register(1, &[0], TIMEOUT).await;

    one.member.link.cut().await;
    let error = all(&mut round).await.unwrap_err();

    // The outage ends the wait, not the timeout.
    assert!(matches!(error, BarrierError::Registry(_)), "{error}");
    one.member.link.heal().await;
    let rounds = vec![one.register(2, &[0, 1], TIMEOUT).await];
    assert_eq!(meet(rounds).await, 1, "the next run is complete");
}

pub(crate) async fn removed_job_is_not_recreated(ground: &dyn TestServer) {
    let cluster = Cluster::new(ground, "removed-job-is", 1).await;
    let one = cluster.join().await;
    cluster.delete(&cluster.tree.config()).await;

    let error = one.try_register(1, &[0], TIMEOUT).await.unwrap_err();

    assert!(matches!(error, BarrierError::JobRemoved), "{error}");
    assert_eq!(cluster.registered().await, None);
}
