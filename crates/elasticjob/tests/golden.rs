//! What nodes and administrators write to a registry, frozen: `golden/README.md` says why.
//!
//! Two nodes live through everything that leaves something in a registry, and every node they create or set is compared: path, kind and data.
//! Ids, numbers and times are masked. Documents by themselves are frozen beside the types that write them.

#![cfg(feature = "http")]

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
    admin::{Admin, Ask, Edit},
    execution::{Execution, Failure, OnceListener},
    job::{Failover, JobName, MaxTimeDiff, RunId, Strategy},
    node::Running,
    registry::{Committed, Error, Kind, Namespace, Node, Op, Path, Registry, Session, Stat, Watch},
    runtime::Randomness,
    testing::Cluster,
};
use testbed::golden;

const NOON: &str = "2026-11-15T12:00:00Z";

/// What was written where: kind and data.
type Writes = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

/// A registry that notes what is written through it.
#[derive(Debug)]
struct Noting {
    registry: Arc<dyn Registry>,
    writes: Writes,
}

impl Noting {
    fn note(&self, op: &Op) {
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
        let data = masked(std::str::from_utf8(data).unwrap());
        let mut writes = self.writes.lock().unwrap();
        writes.entry(masked(path.as_str())).or_default().insert(format!("{kind} {data:?}"));
    }
}

#[async_trait]
impl Registry for Noting {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let committed = self.registry.multi(ops.clone()).await?;
        for op in &ops {
            self.note(op);
        }
        Ok(committed)
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.registry.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.registry.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.registry.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.registry.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.registry.watch(prefix).await
    }

    async fn close(&self) {
        self.registry.close().await;
    }
}

/// The same numbers in every run of the test.
#[derive(Debug)]
struct Counting(AtomicU64);

impl Randomness for Counting {
    fn bits(&self) -> u128 {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

/// Without what differs from run to run, and from shard to shard: only the words are left.
fn masked(text: &str) -> String {
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

/// After every `mark`, puts a word in the place of as many bytes as `of` says.
fn replace(text: &mut String, mark: &str, of: impl Fn(&str) -> Option<(usize, &'static str)>) {
    let mut from = 0;
    while let Some(at) = text[from..].find(mark).map(|at| from + at + mark.len()) {
        if let Some((length, word)) = of(&text[at..]) {
            text.replace_range(at..at + length, word);
        }
        from = at;
    }
}

/// How the shards of `settle` go: so long, and then well or not.
#[derive(Debug, Clone, Copy)]
struct Way {
    takes: Duration,
    fails: bool,
}

struct Meeting;

#[async_trait]
impl OnceListener for Meeting {
    async fn before(&self, _: &Execution) -> Result<(), Failure> {
        Ok(())
    }

    async fn after(&self, _: &Execution) -> Result<(), Failure> {
        Ok(())
    }
}

/// A cluster, what it writes, and how its shards go.
struct Stage {
    cluster: Cluster,
    writes: Writes,
    way: Arc<Mutex<Way>>,
}

impl Stage {
    async fn new() -> Self {
        let way = Way { takes: Duration::ZERO, fails: false };
        Self {
            cluster: Cluster::at(NOON).await,
            writes: Writes::default(),
            way: Arc::new(Mutex::new(way)),
        }
    }

    fn go(&self, takes: Duration, fails: bool) {
        *self.way.lock().unwrap() = Way { takes, fails };
    }

    fn admin(&self) -> Admin {
        let registry = Arc::clone(self.cluster.registry());
        let noting = Noting { registry, writes: Arc::clone(&self.writes) };
        Admin::on(Arc::new(noting)).randomness(Arc::new(Counting(AtomicU64::new(9_000_000))))
    }

    async fn node(&mut self, number: u64) -> Running {
        let way = Arc::clone(&self.way);
        let settle = move |_: Shard| {
            let way = *way.lock().unwrap();
            async move {
                tokio::time::sleep(way.takes).await;
                if way.fails { Err(std::io::Error::other("no")) } else { Ok(()) }
            }
        };
        let quick = |_: Shard| async { Ok::<(), std::io::Error>(()) };
        let writes = Arc::clone(&self.writes);
        let node = self.cluster.node(|node| {
            let ping = yearly("ping").prop("http.uri", "http://127.0.0.1:9").unwrap();
            node.labels("zone=a")
                .randomness(Arc::new(Counting(AtomicU64::new(number * 1_000_000))))
                .through(move |registry| Arc::new(Noting { registry, writes }))
                .with(NodeJob::code(settling(), settle).java_class("com.acme.Settle"))
                .with(NodeJob::code(meeting(), quick).once(Arc::new(Meeting)))
                .job(wandering(), quick)
                .script(yearly("backup").prop("script.command.line", "true").unwrap())
                .http(ping.prop("http.method", "GET").unwrap())
        });
        node.await.unwrap()
    }

    async fn until(&mut self, time: &str) {
        self.cluster.advance_to(&format!("2026-11-15T{time}Z")).await;
    }

    /// Everything that was written, one path after the other.
    fn written(&self) -> String {
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

/// Taken over when a node dies, made up for when it is late.
fn settling() -> Job {
    Job::named("settle")
        .unwrap()
        .cron("0 * * * * ?")
        .unwrap()
        .shards(2)
        .if_node_dies(Failover::TakeOver)
        .max_time_diff(MaxTimeDiff::seconds(60))
}

/// With a listener that is called once for every fire.
fn meeting() -> Job {
    Job::named("meet").unwrap().cron("0 * * * * ?").unwrap().shards(2)
}

/// Its one shard goes from server to server.
fn wandering() -> Job {
    let job = Job::named("wander").unwrap().cron("0 * * * * ?").unwrap();
    job.strategy(&Strategy::SingleShardingBalance)
}

/// Never runs here.
fn yearly(name: &str) -> Job {
    Job::named(name).unwrap().cron("0 0 0 1 1 ?").unwrap()
}

#[tokio::test(start_paused = true)]
async fn registry_writes_match_the_golden_file() {
    let mut stage = Stage::new().await;
    let (settle, meet): (JobName, JobName) = ("settle".parse().unwrap(), "meet".parse().unwrap());
    let first = stage.node(1).await;
    let second = stage.node(2).await;
    stage.until("12:01:30").await;

    // Triggered, with everything that can be said, and in Java's words.
    let admin = stage.admin();
    let ask = Ask {
        run: Some(RunId::triggered(7)),
        at: Some("2026-11-14T00:00:00Z".parse().unwrap()),
        shards: BTreeSet::from([0]),
        parameter: Some("2026-11".to_owned()),
        by: Some("ann".to_owned()),
    };
    admin.trigger(&settle, ask).await.unwrap();
    stage.until("12:01:40").await;
    admin.trigger(&settle, Ask::default()).await.unwrap();
    stage.until("12:01:50").await;

    // Late, then cancelled; then a failure.
    stage.go(Duration::from_secs(90), false);
    stage.until("12:03:15").await;
    admin.cancel(&settle, &BTreeSet::new()).await.unwrap();
    stage.go(Duration::ZERO, true);
    stage.until("12:05:30").await;

    // A node dies while it runs; the other one takes over.
    stage.go(Duration::from_secs(20), false);
    stage.until("12:06:05").await;
    drop(second);
    stage.until("12:07:50").await;

    // Switched off and on: a shard, a server, a job. Edited, and removed.
    admin.disable_shard(&settle, 1).await.unwrap();
    admin.enable_shard(&settle, 1).await.unwrap();
    admin.disable_server("10.0.0.1", Some(&settle)).await.unwrap();
    admin.enable_server("10.0.0.1", Some(&settle)).await.unwrap();
    admin.disable(&meet).await.unwrap();
    admin.enable(&meet).await.unwrap();
    let plan = admin.plan(Edit::of(yearly("nightly").shards(3))).await.unwrap();
    admin.apply(&plan).await.unwrap();
    stage.until("12:08:50").await;
    first.stop().await;
    admin.remove(&settle, false).await.unwrap();

    golden!("registry-writes.txt", stage.written());
}
