//! Triggers that a hostile writer stores beside the ledger: they cost their own job, and no other job of the node.

#[path = "backends/intercepted_registry.rs"]
mod intercepted_registry;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    coordination::tree::JobTree,
    job::{Job, RunId, Shard},
    registry::{Committed, Create, Error, Node, Op, Path, Registry, ensure_path},
    testing::Cluster,
};

use self::intercepted_registry::{InterceptedRegistry, Interceptor};

const START: &str = "2026-11-15T00:00:00Z";

fn every_second(name: &str) -> Job {
    Job::named(name).unwrap().cron("* * * * * ?").unwrap()
}

/// Counts requests that concern stored triggers.
#[derive(Debug, Default, Clone)]
struct Counter {
    reading: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
    created: Arc<AtomicUsize>,
}

#[async_trait]
impl Interceptor for Counter {
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error> {
        let is_entry =
            |op: &&Op| matches!(op, Op::Create(_)) && op.path().as_str().contains("/triggers/");
        self.created.fetch_add(ops.iter().filter(is_entry).count(), Ordering::Relaxed);
        registry.multi(ops).await
    }

    async fn get(&self, registry: &dyn Registry, path: &Path) -> Result<Option<Node>, Error> {
        let now = self.reading.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(now, Ordering::Relaxed);
        tokio::task::yield_now().await;
        let node = registry.get(path).await;
        self.reading.fetch_sub(1, Ordering::Relaxed);
        node
    }
}

async fn run_beside(triggers: impl Iterator<Item = (RunId, String)>) -> (Counter, usize) {
    let mut cluster = Cluster::at(START).await;
    let registry = Arc::clone(cluster.registry());
    let tree = JobTree::new(registry.namespace(), &"hostile".parse().unwrap()).unwrap();
    ensure_path(&*registry, &tree.accepted_triggers()).await.unwrap();
    for (run, data) in triggers {
        let path = tree.accepted_trigger(run);
        registry.multi(vec![Op::Create(Create::persistent(&path, data))]).await.unwrap();
    }
    let (counter, runs) = (Counter::default(), Arc::new(AtomicUsize::new(0)));
    let (interceptor, bystander_runs) = (counter.clone(), Arc::clone(&runs));
    let node = cluster.node(|node| {
        let bystander = move |_: Shard| {
            bystander_runs.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, std::io::Error>(()))
        };
        node.job(every_second("hostile"), |_: Shard| {
            std::future::ready(Ok::<_, std::io::Error>(()))
        })
        .job(every_second("bystander"), bystander)
        .wrap_registry(move |registry| {
            let interceptor = interceptor.clone();
            Arc::new(InterceptedRegistry { registry, interceptor })
        })
    });
    let _node = node.await.unwrap();
    cluster.advance(Duration::from_secs(5)).await;
    (counter, runs.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn many_stored_triggers_are_read_few_at_a_time() {
    let garbage = (0..5_000).map(|number| (RunId::triggered(number), "{".to_owned()));

    let (counter, runs) = run_beside(garbage).await;

    let most = counter.most_at_once.load(Ordering::Relaxed);
    assert!(most <= 256, "{most} reads at once: each may be a megabyte");
    assert_eq!(runs, 5);
}

#[tokio::test(start_paused = true)]
async fn trigger_of_shards_that_no_job_has_is_not_answered_shard_by_shard() {
    let trigger = r#"{"v":1,"config":0,"whole":false,"shards":[[0,99999]],"at":"2026-11-14T00:00:00Z","requestedAt":"2026-11-14T00:00:00Z","expiresAt":"2026-11-14T01:00:00Z"}"#;

    let (counter, runs) = run_beside([(RunId::triggered(7), trigger.to_owned())].into_iter()).await;

    let created = counter.created.load(Ordering::Relaxed);
    assert!(created < 1_000, "{created} entries for a trigger of {} bytes", trigger.len());
    assert_eq!(runs, 5);
}
