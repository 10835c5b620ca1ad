//! Compares everything that nodes and administrators write to a registry with a golden file; `golden/README.md` says why.
//!
//! Two nodes go through everything that writes to a registry. Path, kind and data of every registry node that they create or set are compared.
//! Ids, numbers and times are masked. Golden tests of single documents are beside the types that write them.

#![cfg(feature = "http")]

#[path = "backends/intercepted_registry.rs"]
mod intercepted_registry;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    Job, NodeJob, Shard,
    admin::{Admin, Edit, TriggerRequest},
    execution::{Execution, Failure, OnceListener},
    job::{Failover, JobName, MaxTimeDiff, RunId, ShardSelection, Strategy},
    node::RunningNode,
    registry::{Committed, Error, Kind, Op, Registry},
    runtime::Randomness,
    testing::{Cluster, ManualClock},
};
use testbed::golden;

use self::intercepted_registry::{InterceptedRegistry, Interceptor};

const NOON: &str = "2026-11-15T12:00:00Z";

/// The writes to each path: kind and data.
type Writes = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

#[derive(Debug, Clone)]
struct WriteRecorder {
    writes: Writes,
}

impl WriteRecorder {
    fn record(&self, op: &Op) {
        let (path, kind, data) = match op {
            Op::Create(create) => {
                let kind = match create.kind {
                    Kind::Persistent => "persistent",
                    Kind::Ephemeral(_) => "ephemeral",
                    Kind::Sequential => "sequential",
                    Kind::EphemeralSequential(_) => "ephemeral sequential",
                    Kind::Container => "container",
                };
                (&create.path, kind, &create.data)
            }
            Op::Set { path, data, .. } => (path, "set", data),
            Op::Delete { .. } | Op::Check { .. } => return,
        };
        let data = mask(std::str::from_utf8(data).unwrap());
        let mut writes = self.writes.lock().unwrap();
        writes.entry(mask(path.as_str())).or_default().insert(format!("{kind} {data:?}"));
    }
}

#[async_trait]
impl Interceptor for WriteRecorder {
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error> {
        let committed = registry.multi(ops.clone()).await?;
        for op in &ops {
            self.record(op);
        }
        Ok(committed)
    }
}

/// Returns the same numbers in every run of the test.
#[derive(Debug)]
struct CountingRandomness(AtomicU64);

impl Randomness for CountingRandomness {
    fn bits(&self) -> u128 {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// Replaces everything that differs between runs or between shards by a word.
fn mask(text: &str) -> String {
    let process = format!("@-@{}-", process::id());
    let mut text = text.replace(&process, "@-@PROCESS-");
    replace(&mut text, "@-@PROCESS-", |rest| (rest.len() >= 8).then_some((8, "RANDOM")));
    replace(&mut text, "10.0.0.", |_| Some((1, "N")));
    replace(&mut text, "\"2026-11-1", |rest| Some((rest.find('"')?, "TIME")));
    replace(&mut text, "/", |rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        (digits > 0 && !rest[digits..].starts_with('.')).then_some((digits, "NUMBER"))
    });
    for _ in 0..text.matches('-').count() {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let uuid = starts.into_iter().find(|at| {
            let candidate = text.get(*at..at + 36).map(str::parse::<RunId>);
            candidate.is_some_and(|run| run.is_ok_and(|run| !run.is_scheduled()))
        });
        let Some(at) = uuid else { break };
        text.replace_range(at..at + 36, "UUID");
    }
    text
}

/// After every `prefix`, replaces as many bytes as `replacement` returns by the word it returns.
fn replace(
    text: &mut String,
    prefix: &str,
    replacement: impl Fn(&str) -> Option<(usize, &'static str)>,
) {
    let mut from = 0;
    while let Some(at) = text[from..].find(prefix).map(|at| from + at + prefix.len()) {
        if let Some((length, word)) = replacement(&text[at..]) {
            text.replace_range(at..at + length, word);
        }
        from = at;
    }
}

/// How the handler of `settle` behaves: how long it takes, and whether it fails.
#[derive(Debug, Clone, Copy)]
struct HandlerBehaviour {
    duration: Duration,
    is_failing: bool,
}

struct NoopOnceListener;

#[async_trait]
impl OnceListener for NoopOnceListener {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        Ok(())
    }

    async fn after(&self, _: &Execution) -> Result<(), Failure> {
        Ok(())
    }
}

/// A cluster, its writes, and the behaviour of its handler.
struct Scenario {
    cluster: Cluster,
    writes: Writes,
    behaviour: Arc<Mutex<HandlerBehaviour>>,
}

impl Scenario {
    async fn new() -> Self {
        let behaviour = HandlerBehaviour { duration: Duration::ZERO, is_failing: false };
        Self {
            cluster: Cluster::at(NOON).await,
            writes: Writes::default(),
            behaviour: Arc::new(Mutex::new(behaviour)),
        }
    }

    fn set_behaviour(&self, duration: Duration, is_failing: bool) {
        *self.behaviour.lock().unwrap() = HandlerBehaviour { duration, is_failing };
    }

    fn admin(&self) -> Admin {
        let registry = Arc::clone(self.cluster.registry());
        let interceptor = WriteRecorder { writes: Arc::clone(&self.writes) };
        Admin::new(Arc::new(InterceptedRegistry { registry, interceptor }))
            .clock(Arc::new(ManualClock::at(self.cluster.now())))
            .randomness(Arc::new(CountingRandomness(AtomicU64::new(9_000_000))))
    }

    async fn node(&mut self, number: u64) -> RunningNode {
        let behaviour = Arc::clone(&self.behaviour);
        let settle = move |_: Shard| {
            let behaviour = *behaviour.lock().unwrap();
            async move {
                tokio::time::sleep(behaviour.duration).await;
                if behaviour.is_failing { Err(std::io::Error::other("no")) } else { Ok(()) }
            }
        };
        let quick = |_: Shard| async { Ok::<(), std::io::Error>(()) };
        let interceptor = WriteRecorder { writes: Arc::clone(&self.writes) };
        let node = self.cluster.node(|node| {
            let ping = yearly_job("ping").prop("http.uri", "http://127.0.0.1:9").unwrap();
            node.labels("zone=a")
                .randomness(Arc::new(CountingRandomness(AtomicU64::new(number * 1_000_000))))
                .wrap_registry(move |registry| {
                    let interceptor = interceptor.clone();
                    Arc::new(InterceptedRegistry { registry, interceptor })
                })
                .with(NodeJob::code(settle_job(), settle).java_class("com.acme.Settle"))
                .with(
                    NodeJob::code(once_listener_job(), quick)
                        .once_listener(Arc::new(NoopOnceListener)),
                )
                .job(balanced_job(), quick)
                .script(yearly_job("backup").prop("script.command.line", "true").unwrap())
                .http(ping.prop("http.method", "GET").unwrap())
        });
        node.await.unwrap()
    }

    async fn advance_to(&mut self, time: &str) {
        self.cluster.advance_to(&format!("2026-11-15T{time}Z")).await;
    }

    /// All writes as text, by path.
    fn report(&self) -> String {
        let mut text = String::new();
        for (path, writes) in &*self.writes.lock().unwrap() {
            let _ = writeln!(text, "{path}");
            for write in writes {
                let _ = writeln!(text, "  {write}");
            }
        }
        text
    }
}

/// A job with failover and misfire compensation.
fn settle_job() -> Job {
    Job::named("settle")
        .unwrap()
        .cron("0 * * * * ?")
        .unwrap()
        .shards(2)
        .failover(Failover::TakeOver)
        .max_time_diff(MaxTimeDiff::seconds(60))
}

/// A job with a once-listener.
fn once_listener_job() -> Job {
    Job::named("meet").unwrap().cron("0 * * * * ?").unwrap().shards(2)
}

/// A job whose only shard moves from server to server.
fn balanced_job() -> Job {
    let job = Job::named("wander").unwrap().cron("0 * * * * ?").unwrap();
    job.strategy(&Strategy::SingleShardingBalance)
}

/// A job that never fires during the test.
fn yearly_job(name: &str) -> Job {
    Job::named(name).unwrap().cron("0 0 0 1 1 ?").unwrap()
}

#[tokio::test(start_paused = true)]
async fn registry_writes_match_the_golden_file() {
    let mut scenario = Scenario::new().await;
    let (settle, meet): (JobName, JobName) = ("settle".parse().unwrap(), "meet".parse().unwrap());
    let first = scenario.node(1).await;
    let second = scenario.node(2).await;
    scenario.advance_to("12:01:30").await;

    // A trigger with all its fields, and one as Java writes it.
    let admin = scenario.admin();
    let ask = TriggerRequest {
        run: Some(RunId::triggered(7)),
        at: Some("2026-11-14T00:00:00Z".parse().unwrap()),
        shards: ShardSelection::only([0]).unwrap(),
        parameter: Some("2026-11".to_owned()),
        by: Some("ann".to_owned()),
        expires_in: None,
    };
    admin.trigger(&settle, ask).await.unwrap();
    scenario.advance_to("12:01:40").await;
    admin.trigger(&settle, TriggerRequest::default()).await.unwrap();
    scenario.advance_to("12:01:50").await;

    // A misfire, then a cancellation, then a failure.
    scenario.set_behaviour(Duration::from_secs(90), false);
    scenario.advance_to("12:03:15").await;
    admin.cancel(&settle, &ShardSelection::All).await.unwrap();
    scenario.set_behaviour(Duration::ZERO, true);
    scenario.advance_to("12:05:30").await;

    // A node dies during a run; the other node takes over.
    scenario.set_behaviour(Duration::from_secs(20), false);
    scenario.advance_to("12:06:05").await;
    drop(second);
    scenario.advance_to("12:07:50").await;

    // Disable and enable a shard, a server and a job; then edit and remove a job.
    admin.disable_shard(&settle, 1).await.unwrap();
    admin.enable_shard(&settle, 1).await.unwrap();
    admin.disable_server("10.0.0.1", Some(&settle)).await.unwrap();
    admin.enable_server("10.0.0.1", Some(&settle)).await.unwrap();
    admin.disable(&meet).await.unwrap();
    admin.enable(&meet).await.unwrap();
    let plan = admin.plan(Edit::new(yearly_job("nightly").shards(3))).await.unwrap();
    admin.apply(&plan).await.unwrap();
    scenario.advance_to("12:08:50").await;
    first.stop().await;
    admin.remove(&settle, false).await.unwrap();

    golden!("registry-writes.txt", scenario.report());
}
