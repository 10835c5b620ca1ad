//! A thousand triggers while workers are killed, frozen, disconnected and restarted, with an account of each.
//!
//! Every trigger has a logical time of its own, by which the events of the workers are found again.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use chaos::{Cluster, ClusterConfig, EventKind, StepJob};
use elasticjob::{
    admin::Admin,
    coordination::{
        tree::JobTree,
        trigger::{ShardEntry, TriggerRequest},
    },
    job::{Outcome, RunId},
    registry::Registry,
    runtime::{Clock, SystemClock},
};
use jiff::Timestamp;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use testbed::{Proxy, ZooKeeper};
use tokio::task::JoinSet;

const TRIGGERS: u32 = 1_000;
/// At most a hundred ended triggers are kept for each job, and each is needed for the account.
const JOBS: u32 = 10;
const SHARDS: u32 = 3;
const WORKERS: usize = 3;
const SESSION: Duration = Duration::from_secs(2);
/// So long are triggers accepted, and do faults happen.
const STORM: Duration = Duration::from_secs(20);
/// By then every shard of every trigger is accounted for.
const SETTLED_WITHIN: Duration = Duration::from_mins(2);
const SEED: u64 = 20_261_118;

/// An accepted trigger.
struct Accepted {
    job: String,
    run: RunId,
    /// Its logical time in milliseconds.
    at: i64,
}

/// What became of the shards of all triggers, by kind.
type Account = BTreeMap<String, usize>;

fn jobs() -> Vec<StepJob> {
    let job = |number: u32| {
        let name = format!("triggered-{number}");
        let job = StepJob::new(&name, "0 0 0 1 1 ? 2099", SHARDS, 2, Duration::from_millis(30));
        if number.is_multiple_of(3) { job.without_failover() } else { job }
    };
    (0..JOBS).map(job).collect()
}

async fn sleep(duration: Duration) {
    SystemClock.sleep_until(SystemClock.monotonic() + duration).await;
}

/// Accepts all triggers, evenly over the storm.
async fn accept_all(registry: Arc<dyn Registry>) -> Vec<Accepted> {
    let admin = Admin::new(registry);
    let mut accepted = Vec::new();
    let begin = SystemClock.monotonic();
    for number in 0..TRIGGERS {
        let job = format!("triggered-{}", number % JOBS);
        let at = 1_800_000_000_000 + i64::from(number);
        let request = TriggerRequest {
            at: Timestamp::from_millisecond(at).ok(),
            parameter: Some(format!("parameter of {number}")),
            ..TriggerRequest::default()
        };
        match admin.trigger(&job.parse().unwrap(), request).await {
            Ok(response) => accepted.push(Accepted { job, run: response.run, at }),
            // While no worker lives there is no instance to tell.
            Err(error) => assert!(error.to_string().contains("has no instance"), "{error}"),
        }
        SystemClock.sleep_until(begin + STORM * number / TRIGGERS).await;
    }
    accepted
}

/// One fault after the other, until the storm is over.
async fn injure(cluster: &mut Cluster) -> usize {
    let mut rng = SmallRng::seed_from_u64(SEED);
    let end = SystemClock.monotonic() + STORM;
    let mut count = 0;
    while SystemClock.monotonic() < end {
        let worker = rng.random_range(0..WORKERS);
        let duration = SESSION.mul_f64(rng.random_range(0.2..1.6));
        match count % 4 {
            0 => {
                cluster.kill(worker).await.unwrap();
                sleep(duration / 2).await;
                cluster.restart(worker).unwrap();
            }
            1 => {
                cluster.process(worker).unwrap().freeze().unwrap();
                sleep(duration).await;
                cluster.process(worker).unwrap().thaw().unwrap();
            }
            2 => {
                cluster.proxies(worker).iter().for_each(Proxy::cut);
                sleep(duration).await;
                cluster.proxies(worker).iter().for_each(Proxy::heal);
            }
            _ => {
                assert!(cluster.stop(worker).await.unwrap().success());
                cluster.restart(worker).unwrap();
            }
        }
        count += 1;
        sleep(Duration::from_millis(rng.random_range(0..500))).await;
    }
    count
}

async fn entry(registry: &dyn Registry, tree: &JobTree, run: &RunId, shard: u32) -> ShardEntry {
    let path = tree.trigger_entry(run, shard);
    let end = SystemClock.monotonic() + SETTLED_WITHIN;
    loop {
        let node = registry.get(&path).await.unwrap();
        let entry = node.map(|node| ShardEntry::read(&node.data).unwrap());
        match entry {
            Some(entry) if entry.is_over() => return entry,
            entry => assert!(SystemClock.monotonic() < end, "{path} is still {entry:?}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// The reasons for which each shard of each run was started: by job, logical time and shard.
fn starts(cluster: &Cluster) -> BTreeMap<(String, i64, u32), Vec<String>> {
    let mut starts: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for event in cluster.events().all() {
        if let EventKind::Started(key, reason) = event.kind {
            starts.entry((key.job, key.run, key.item)).or_default().push(reason.name);
        }
    }
    starts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper: make test"]
async fn thousand_triggers_in_a_storm_are_all_accounted_for() {
    let server = ZooKeeper::builder().tick(Duration::from_millis(500)).start();
    let mut cluster = Cluster::new(ClusterConfig {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join("triggers"),
        servers: vec![server.address()],
        namespace: "triggers".into(),
        session: SESSION,
        database: None,
        jobs: jobs(),
        on_one_host: false,
    })
    .unwrap();
    for _ in 0..WORKERS {
        cluster.start().await.unwrap();
    }
    cluster
        .events()
        .until("all workers join", |events| {
            let joined = events.iter().filter(|event| event.kind == EventKind::Joined);
            (joined.count() == WORKERS).then_some(())
        })
        .await;
    let observer = cluster.observer().await.unwrap();
    let mut accepting = JoinSet::new();
    accepting.spawn(accept_all(Arc::clone(&observer)));

    let faults = injure(&mut cluster).await;
    let accepted = accepting.join_next().await.unwrap().unwrap();

    let mut account = Account::new();
    let mut entries = Vec::new();
    for Accepted { job, run, at } in &accepted {
        let tree = JobTree::new(observer.namespace(), &job.parse().unwrap()).unwrap();
        for shard in 0..SHARDS {
            entries.push((job, *at, shard, entry(&*observer, &tree, run, shard).await));
        }
    }
    let starts = starts(&cluster);
    let mut violations = Vec::new();
    for (job, at, shard, entry) in entries {
        let reasons = starts.get(&(job.clone(), at, shard)).cloned().unwrap_or_default();
        let first = reasons.iter().filter(|reason| *reason == "Trigger").count();
        let (kind, is_right) = match &entry {
            ShardEntry::Skipped(reason) => {
                (format!("skipped: {}", reason.as_str()), reasons.is_empty())
            }
            ShardEntry::Ended { outcome: Outcome::Lost, .. } => {
                ("lost, reported".to_owned(), first <= 1)
            }
            ShardEntry::Ended { attempt: 1, outcome, .. } => {
                (format!("ran: {}", outcome.as_str()), reasons == ["Trigger"])
            }
            ShardEntry::Ended { outcome, .. } => (
                format!("failed over: {}", outcome.as_str()),
                first <= 1 && reasons.iter().any(|reason| reason == "Failover"),
            ),
            ShardEntry::Claimed { .. } => ("claimed".to_owned(), false),
        };
        *account.entry(kind).or_default() += 1;
        if !is_right {
            violations.push(format!("{job}/{shard} at {at}: {entry:?}, started for {reasons:?}"));
        }
    }
    eprintln!("{} triggers accepted, {faults} faults, shards: {account:#?}", accepted.len());
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(accepted.len() > TRIGGERS as usize * 9 / 10, "{} were accepted", accepted.len());
    assert_eq!(account.values().sum::<usize>(), accepted.len() * SHARDS as usize);
    let failed_over = account.iter().filter(|(kind, _)| kind.starts_with("failed over"));
    assert!(failed_over.count() > 0, "inconclusive: no failover of a trigger");
}
