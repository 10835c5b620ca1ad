//! The gates without nodes or listeners: which shards wait for which, and which registry nodes remain.

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
struct Cluster<'s> {
    server: &'s dyn TestServer,
    namespace: &'static str,
    observer: conformance::TestClient,
    tree: JobTree,
    total: u32,
}

/// An instance that uses the gates.
struct Instance {
    barrier: Barrier,
    client: conformance::TestClient,
    total: u32,
}

impl<'s> Cluster<'s> {
    async fn new(server: &'s dyn TestServer, namespace: &'static str, total: u32) -> Self {
        let observer = server.join(namespace, None).await;
        let registry = &*observer.registry;
        let job = Job::named("settle").unwrap().cron("0/5 * * * * ?").unwrap().shards(total);
        let tree = JobTree::new(registry.namespace(), &job.name).unwrap();
        ensure_path(registry, &tree.sharding()).await.unwrap();
        ensure_path(registry, tree.ledger()).await.unwrap();
        registry.create(Create::persistent(&tree.config(), job.to_yaml())).await.unwrap();
        let cluster = Self { server, namespace, observer, tree, total };
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
        let client = self.server.join(self.namespace, None).await;
        let barrier = Barrier {
            registry: Arc::clone(&client.registry),
            clock: Arc::new(SystemClock),
            tree: self.tree.clone(),
        };
        Instance { barrier, client, total: self.total }
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

/// Waits until all shards are at the gate. Returns the turn if this instance has to call the listener.
async fn wait(waiter: &mut GateWaiter) -> Result<Option<ListenerTurn>, BarrierError> {
    let result = tokio::time::timeout(TIMEOUT * 2, waiter.wait(&CancelToken::new())).await;
    result.expect("the wait has a limit")
}

/// Waits at the gate with all instances; returns how many of them had to call the listener.
async fn pass_gate(waiters: Vec<GateWaiter>) -> usize {
    let turns = join_all(waiters.into_iter().map(|mut waiter| async move {
        match wait(&mut waiter).await.unwrap() {
            Some(turn) => turn.finish().await.map(|()| 1).unwrap(),
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

pub(crate) async fn only_one_instance_calls_the_listener_while_others_wait(
    server: &dyn TestServer,
) {
    let cluster = Cluster::new(server, "only-one-instance", 4).await;
    let (one, two, three) = (cluster.join().await, cluster.join().await, cluster.join().await);
    let mut first = one.register(1, &[0, 1], TIMEOUT).await;
    assert!(wait(&mut first).now_or_never().is_none(), "two shards are missing");
    let mut second = two.register(1, &[2], TIMEOUT).await;

    let mut third = three.register(1, &[3], TIMEOUT).await;
    let turn = wait(&mut third).await.unwrap().expect("no other instance calls the listener");
    let early = tokio::time::timeout(SHORT, wait(&mut first)).await;
    assert!(early.is_err(), "the listener has not been called yet");
    turn.finish().await.unwrap();

    assert!(wait(&mut first).await.unwrap().is_none());
    assert!(wait(&mut second).await.unwrap().is_none());
    assert_eq!(cluster.registered().await, None);
    for fire in 2..5 {
        let waiters = vec![
            one.register(fire, &[0, 1], TIMEOUT).await,
            two.register(fire, &[2], TIMEOUT).await,
            three.register(fire, &[3], TIMEOUT).await,
        ];
        assert_eq!(pass_gate(waiters).await, 1);
    }
}

pub(crate) async fn withdrawal_deletes_only_own_registrations(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "withdrawal-deletes-only", 3).await;
    let (one, two, three) = (cluster.join().await, cluster.join().await, cluster.join().await);
    let mut impatient = one.register(1, &[0], SHORT).await;
    let patient = two.register(1, &[1], TIMEOUT).await;

    let late = wait(&mut impatient).await.unwrap_err();
    impatient.withdraw().await;

    assert!(
        matches!(&late, BarrierError::TimedOut { missing, .. } if *missing == BTreeSet::from([2])),
        "{late}"
    );
    assert_eq!(cluster.registered().await, Some(BTreeSet::from(["1".to_owned()])));
    patient.withdraw().await;
    assert_eq!(cluster.registered().await, None, "the last one deletes the root");
    let waiters = vec![
        one.register(2, &[0], TIMEOUT).await,
        two.register(2, &[1], TIMEOUT).await,
        three.register(2, &[2], TIMEOUT).await,
    ];
    assert_eq!(pass_gate(waiters).await, 1);
}

pub(crate) async fn registrations_left_by_dead_instances_are_ignored(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "registrations-left-by", 3).await;
    ensure_path(cluster.registry(), &cluster.tree.started()).await.unwrap();
    // A Rust instance died in an earlier run, and a Java instance died before its shard got a new owner.
    cluster.create(&cluster.started(1), run(1).to_string()).await;
    cluster.create(&cluster.started(2), "").await;
    let owner = cluster.tree.shard(2, ShardNode::Owner);
    cluster.registry().set(&owner, "another".into(), ExpectedVersion::Any).await.unwrap();
    let (one, two) = (cluster.join().await, cluster.join().await);

    let mut alone = one.register(2, &[0], SHORT).await;
    let late = wait(&mut alone).await.unwrap_err();
    alone.withdraw().await;
    assert!(
        matches!(&late, BarrierError::TimedOut { missing, .. } if *missing == BTreeSet::from([1, 2])),
        "{late}"
    );

    let waiters =
        vec![one.register(2, &[0], TIMEOUT).await, two.register(2, &[1, 2], TIMEOUT).await];
    assert_eq!(pass_gate(waiters).await, 1);
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn triggered_shards_pass_the_gate_despite_different_run_ids(
    server: &dyn TestServer,
) {
    let cluster = Cluster::new(server, "triggered-shards-pass", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);

    let waiters = vec![
        one.arrive(RunId::triggered(1), due(1), &[0], TIMEOUT).await.unwrap(),
        two.arrive(RunId::triggered(2), due(2), &[1], TIMEOUT).await.unwrap(),
    ];

    assert_eq!(pass_gate(waiters).await, 1);
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn gate_does_not_wait_for_disabled_shards(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "gate-disabled-shards", 3).await;
    cluster.create(&cluster.tree.shard(1, ShardNode::Disabled), "").await;
    let one = cluster.join().await;

    let mut waiter = one.register(1, &[0], TIMEOUT).await;
    assert!(tokio::time::timeout(SHORT, wait(&mut waiter)).await.is_err(), "shard 2 is missing");
    cluster.create(&cluster.tree.shard(2, ShardNode::Disabled), "").await;
    let turn = wait(&mut waiter).await.unwrap().expect("this is the only instance");

    turn.finish().await.unwrap();
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn gate_root_is_deleted_so_that_java_instances_stop_waiting(
    server: &dyn TestServer,
) {
    let cluster = Cluster::new(server, "gate-root-is", 2).await;
    let one = cluster.join().await;
    ensure_path(cluster.registry(), &cluster.tree.started()).await.unwrap();
    cluster.create(&cluster.started(1), "").await;
    let mut watch = cluster.registry().watch(&cluster.tree.started()).await.unwrap();

    let turns = pass_gate(vec![one.register(1, &[0], TIMEOUT).await]).await;

    assert_eq!(turns, 1);
    wait_for_deletion(&mut watch, &cluster.tree.started()).await;
    let data = cluster.registry().get(&cluster.tree.guarantee()).await.unwrap();
    assert!(data.is_some(), "the parent stays");
}

pub(crate) async fn java_instance_may_be_the_one_that_calls_the_listener(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "java-instance-may", 2).await;
    let one = cluster.join().await;
    let mut waiter = one.register(1, &[0], TIMEOUT).await;
    let latch = cluster.tree.started_latch();

    // The Java instance is in the latch before any other instance sees the gate complete, and deletes child by child.
    let turn = latch::acquire(cluster.registry(), &latch, 1, TIMEOUT).await.unwrap().unwrap();
    cluster.create(&cluster.started(1), "").await;
    assert!(
        tokio::time::timeout(SHORT, wait(&mut waiter)).await.is_err(),
        "the listener is being called"
    );
    cluster.delete(&cluster.started(1)).await;
    cluster.delete(&cluster.started(0)).await;
    cluster.delete(&cluster.tree.started()).await;
    turn.release(cluster.registry()).await;

    assert!(wait(&mut waiter).await.unwrap().is_none(), "the Java instance called the listener");
}

pub(crate) async fn gate_that_java_deletes_early_fails_the_wait_at_once(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "gate-java-deletes", 2).await;
    let one = cluster.join().await;
    let mut waiter = one.register(1, &[0], TIMEOUT).await;

    // A Java instance does this when its wait times out.
    cluster.delete(&cluster.started(0)).await;
    cluster.delete(&cluster.tree.started()).await;
    let error = tokio::time::timeout(TIMEOUT / 2, wait(&mut waiter)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::ClearedEarly { missing, .. } if *missing == BTreeSet::from([1])),
        "{error}"
    );
}

pub(crate) async fn gate_does_not_wait_for_shards_that_finished_the_run(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "gate-finished-shards", 3).await;
    let one = cluster.join().await;
    let page = |fire, state| LedgerPage {
        run: Some(run(fire)),
        due_at: Some(due(fire)),
        state,
        ..LedgerPage::default()
    };
    cluster.create(&cluster.tree.ledger_page(1), page(5, LedgerState::Running).to_bytes()).await;
    cluster.create(&cluster.tree.ledger_page(2), page(5, LedgerState::Done).to_bytes()).await;

    let mut waiter = one.register(5, &[0], TIMEOUT).await;
    let error = tokio::time::timeout(TIMEOUT / 2, wait(&mut waiter)).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, BarrierError::MovedOn { shards, .. } if *shards == BTreeSet::from([2])),
        "{error}"
    );
    waiter.withdraw().await;

    // Instances at different fires meet again at the later one.
    let two = cluster.join().await;
    let ahead = two.register(7, &[1, 2], TIMEOUT).await;
    let mut behind = one.register(6, &[0], TIMEOUT).await;
    let error = wait(&mut behind).await.unwrap_err();
    assert!(matches!(error, BarrierError::MovedOn { .. }), "{error}");
    behind.withdraw().await;
    assert_eq!(pass_gate(vec![ahead, one.register(7, &[0], TIMEOUT).await]).await, 1);
}

pub(crate) async fn other_instance_calls_the_listener_if_the_first_one_dies(
    server: &dyn TestServer,
) {
    let cluster = Cluster::new(server, "other-instance-calls", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);
    let mut first = one.register(1, &[0], TIMEOUT).await;
    let mut second = two.register(1, &[1], TIMEOUT).await;
    let turn = wait(&mut second).await.unwrap().expect("no other instance calls the listener");

    assert!(tokio::time::timeout(SHORT, wait(&mut first)).await.is_err(), "the turn is taken");
    two.client.registry.close().await;
    drop(turn);

    let turn = wait(&mut first).await.unwrap().expect("the turn is free, and the gate is complete");
    turn.finish().await.unwrap();
    assert_eq!(cluster.registered().await, None);
}

pub(crate) async fn registration_for_the_next_run_survives_deletion_of_the_gate(
    server: &dyn TestServer,
) {
    let cluster = Cluster::new(server, "registration-for-the", 2).await;
    let (one, two) = (cluster.join().await, cluster.join().await);
    let impatient = one.register(1, &[0], TIMEOUT).await;
    let mut waiter = two.register(1, &[1], TIMEOUT).await;
    let turn = wait(&mut waiter).await.unwrap().expect("no other instance calls the listener");
    let mut watch = cluster.registry().watch(&cluster.tree.started()).await.unwrap();

    impatient.withdraw().await;
    let mut ahead = one.register(2, &[0], TIMEOUT).await;
    turn.finish().await.unwrap();

    wait_for_deletion(&mut watch, &cluster.tree.started()).await;
    assert_eq!(cluster.registered().await, Some(BTreeSet::from(["0".to_owned()])));
    assert!(
        tokio::time::timeout(SHORT, wait(&mut ahead)).await.is_err(),
        "the next run has just started"
    );
    let behind = two.register(2, &[1], TIMEOUT).await;
    assert_eq!(pass_gate(vec![ahead, behind]).await, 1);
}

pub(crate) async fn registry_outage_ends_the_wait_at_the_gate(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "registry-outage-ends", 2).await;
    let one = cluster.join().await;
    let mut waiter = one.register(1, &[0], TIMEOUT).await;

    one.client.link.cut().await;
    let error = wait(&mut waiter).await.unwrap_err();

    // The outage ends the wait, not the timeout.
    assert!(matches!(error, BarrierError::Registry(_)), "{error}");
    one.client.link.heal().await;
    let waiters = vec![one.register(2, &[0, 1], TIMEOUT).await];
    assert_eq!(pass_gate(waiters).await, 1, "the next run is complete");
}

pub(crate) async fn registration_fails_for_a_removed_job(server: &dyn TestServer) {
    let cluster = Cluster::new(server, "registration-fails-for", 1).await;
    let one = cluster.join().await;
    cluster.delete(&cluster.tree.config()).await;

    let error = one.try_register(1, &[0], TIMEOUT).await.unwrap_err();

    assert!(matches!(error, BarrierError::JobRemoved), "{error}");
    assert_eq!(cluster.registered().await, None);
}
