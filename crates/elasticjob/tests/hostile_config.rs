//! Stored configurations that are meant to do harm. Each costs its own job and nothing else: it is refused when it is read, with the key
//! and a way out, and the other jobs of the same node, admin and mirror go on.

#[path = "backends/intercepted_registry.rs"]
mod intercepted_registry;

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    admin::{Admin, AdminError, Edit},
    coordination::{
        ledger::LedgerPage,
        tree::{JobTree, ShardNode},
    },
    job::{Alert, CatchUp, Job, JobName, Overwrite, Shard, ShardLimit},
    node::{JoinError, NodeError, NodeJob, RunningNode},
    registry::{Committed, Error, ExpectedVersion, Node, Op, Path, Registry, ensure_path},
    testing::Cluster,
};

use self::intercepted_registry::{InterceptedRegistry, Interceptor};

const START: &str = "2026-11-15T00:00:00Z";

fn name(text: &str) -> JobName {
    text.parse().unwrap()
}

/// A document of the job `hostile` with everything that is required, and more.
fn document(more: &str) -> String {
    format!("jobName: hostile\nshardingTotalCount: 1\n{more}")
}

/// Half a megabyte that stands for nine gigabytes.
fn alias_bomb() -> String {
    let text = "x".repeat(500_000);
    let aliases = "*a, ".repeat(19_000);
    document(&format!("props:\n  a: &a {text}\n  b: [{aliases}]\n"))
}

/// Each list has ten times the nodes of the one before.
fn node_bomb() -> String {
    let mut bomb = document("props:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "  a{level}: &a{level} [{below}]").unwrap();
    }
    bomb
}

/// A text in fifty anchored lists, one inside the other: each anchor is a copy.
fn nested_anchors() -> String {
    let open: Vec<String> = (0..45).map(|level| format!("&b{level} [")).collect();
    let open = open.concat();
    document(&format!("props:\n  a: {open}{}{}\n", "x".repeat(900_000), "]".repeat(45)))
}

/// Entries of `props`.
fn many_props(count: usize) -> String {
    let props: Vec<String> = (0..count).map(|number| format!("  k{number}: v\n")).collect();
    props.concat()
}

/// Documents, and a part of the reason for which each is refused.
fn hostile_documents() -> Vec<(String, &'static str)> {
    let count = |count: &str| format!("jobName: hostile\nshardingTotalCount: {count}\n");
    let props = |key: &str, value: &str| document(&format!("props:\n  {key}: {value}\n"));
    let long = |bytes: usize| "x".repeat(bytes);
    let many = many_props(9_000);
    vec![
        (count("2147483647"), "key shardingTotalCount: a job has at most 100000 shards"),
        (count("1000000"), "key shardingTotalCount"),
        (count("10001"), "this process accepts at most 10000 shards"),
        (count("-1"), "key shardingTotalCount"),
        (count("99999999999999999999"), "key shardingTotalCount"),
        (document("reconcileIntervalMinutes: 2147483648\n"), "key reconcileIntervalMinutes"),
        (document("maxTimeDiffSeconds: 2147483648\n"), "key maxTimeDiffSeconds"),
        (props("elasticjob.timeout", "99999999999d"), "key props.elasticjob.timeout"),
        (props("elasticjob.retry.max.attempts", "4294967295"), "from 1 to 1000000"),
        (props("elasticjob.retry.backoff", "1s..9999999d"), "key props.elasticjob.retry.backoff"),
        (props("elasticjob.catch.up", "all:9999999d"), "key props.elasticjob.catch.up"),
        (document(&format!("cron: '0 0 0 ? * {}'\n", "MON,".repeat(5_000))), "key cron"),
        (document(&format!("timeZone: {}\n", long(9_000))), "key timeZone"),
        (document(&format!("jobParameter: {}\n", long(200_000))), "key jobParameter"),
        (document(&format!("description: {}\n", long(200_000))), "key description"),
        (document(&format!("label: {}\n", long(200_000))), "key label"),
        (document(&format!("jobErrorHandlerType: {}\n", long(9_000))), "key jobErrorHandlerType"),
        (document(&format!("jobListenerTypes: [{}]\n", "a,".repeat(5_000))), "5000 entries"),
        (document(&format!("jobListenerTypes: [{}]\n", long(9_000))), "key jobListenerTypes"),
        (document(&format!("shardingItemParameters: {}\n", long(500_000))), "number=text"),
        (document(&format!("props:\n{many}")), "at most 1000 properties"),
        (document(&format!("props:\n  ? {}\n  : v\n", long(9_000))), "key props."),
        (props("a", &long(200_000)), "key props.a"),
        (document(&format!("? {}\n: 1\n", long(900_000))), "unknown"),
        (alias_bomb(), "its texts and aliases have more than"),
        (nested_anchors(), "its texts and aliases have more than"),
        (node_bomb(), "nodes"),
        ("[".repeat(100_000), "line 1"),
        (document("props: &a\n  b: *a\n"), "contain itself"),
        ("\0".repeat(1_000), ""),
    ]
}

#[test]
fn hostile_document_is_refused_with_a_short_reason() {
    for (document, reason) in hostile_documents() {
        let beginning: String = document.chars().take(80).collect();
        let error = Job::read(&name("hostile"), document.as_bytes()).expect_err(&beginning);

        assert!(error.to_string().contains(reason), "{beginning:?}: {error}");
        assert!(error.to_string().len() < 1_500, "{beginning:?}: {error}");
    }
}

#[test]
fn document_that_no_registry_should_hold_is_not_parsed() {
    let document = document(&format!("description: '{}'\n", "x".repeat(2_000_000)));

    let error = Job::read(&name("hostile"), document.as_bytes()).unwrap_err();

    assert!(error.to_string().contains("at most 1048576 are read"), "{error}");
}

#[test]
fn largest_values_are_read_and_written() {
    let props = many_props(999);
    let largest = format!(
        "jobName: hostile\nshardingTotalCount: 10000\nreconcileIntervalMinutes: 2147483647\nmaxTimeDiffSeconds: 2147483647\n\
         jobParameter: {}\ndescription: {}\nlabel: {}\nprops:\n  elasticjob.timeout: 3650d\n{props}",
        "x".repeat(128 << 10),
        "x".repeat(128 << 10),
        "x".repeat(128 << 10),
    );

    let job = Job::read(&name("hostile"), largest.as_bytes()).unwrap();

    job.check(ShardLimit::default()).unwrap();
    assert_eq!(Job::read(&job.name, job.to_yaml().as_bytes()), Ok(job));
}

#[test]
fn request_timeout_is_at_most_a_day() {
    let alert = |millis: &str| {
        let job = Job::named("j").unwrap().alert("WECHAT").prop("wechat.webhook", "http://x");
        let job = job.unwrap().prop("wechat.readTimeoutMilliseconds", millis).unwrap();
        Alert::of(&job)
    };

    assert!(alert("86400000").is_ok());
    assert!(alert("86400001").is_err());
    assert!(alert("18446744073709551615").is_err());
}

/// Java accepts every number of 32 bits and texts of any length.
#[tokio::test(start_paused = true)]
async fn large_values_of_java_are_run_kept_and_shortened_in_lists() {
    let mut cluster = Cluster::at(START).await;
    let runs = Runs::default();
    let long = "x".repeat(100_000);
    let stored = document(&format!(
        "cron: '* * * * * ?'\nmaxTimeDiffSeconds: 2147483647\nreconcileIntervalMinutes: 2147483647\ndescription: {long}\nlabel: {long}\n"
    ));
    let start = async |cluster: &mut Cluster| {
        let job = every_second("hostile");
        cluster.node(|node| node.job(job, runs.handler())).await.unwrap()
    };
    start(&mut cluster).await.stop().await;
    store(&cluster, &stored).await;
    runs.take();

    let _node = start(&mut cluster).await;
    cluster.advance(Duration::from_secs(5)).await;

    assert_eq!(runs.take(), 5);
    let listed = cluster.admin().jobs().await.unwrap().remove(0);
    assert_eq!((listed.problem, listed.description.chars().count()), (None, 1_001));
    let kept = cluster.admin().outline("hostile").await.unwrap().unwrap().job.unwrap();
    assert_eq!((&kept.description, kept.label.as_ref()), (&long, Some(&long)));
    assert_eq!((kept.max_time_diff.get(), kept.reconcile.get()), (i32::MAX, i32::MAX));
}

/// Counts the runs of a job.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn handler(
        &self,
    ) -> impl Fn(Shard) -> std::future::Ready<Result<(), std::io::Error>> + Send + Sync + 'static
    {
        let runs = self.clone();
        move |_| {
            runs.0.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(()))
        }
    }

    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

fn every_second(job: &str) -> Job {
    Job::named(job).unwrap().cron("* * * * * ?").unwrap()
}

async fn store(cluster: &Cluster, document: &str) {
    let path = "/test/hostile/config".parse().unwrap();
    let data = document.to_owned().into();
    cluster.registry().set(&path, data, ExpectedVersion::Any).await.unwrap();
}

async fn problem(admin: &Admin) -> Option<String> {
    let jobs = admin.jobs().await.unwrap();
    assert!(jobs.iter().any(|job| job.name == "bystander" && job.problem.is_none()), "{jobs:?}");
    jobs.into_iter().find(|job| job.name == "hostile").unwrap().problem
}

#[tokio::test(start_paused = true)]
async fn hostile_configuration_of_a_running_job_stops_no_other_job() {
    let (bystander, hostile) = (Runs::default(), Runs::default());
    let mut cluster = Cluster::at(START).await;
    let node = cluster
        .node(|node| {
            node.job(every_second("bystander"), bystander.handler())
                .job(every_second("hostile"), hostile.handler())
        })
        .await
        .unwrap();
    let valid = every_second("hostile").to_yaml();

    for (document, reason) in hostile_documents() {
        cluster.advance(Duration::from_secs(2)).await;
        bystander.take();
        hostile.take();
        store(&cluster, &document).await;
        cluster.advance(Duration::from_secs(5)).await;

        assert_eq!(bystander.take(), 5, "{reason}");
        assert_eq!(hostile.take(), 5, "{reason}: it goes on with its last valid configuration");
        let invalid = node.invalid_jobs();
        assert!(invalid.len() == 1 && invalid[&name("hostile")].contains(reason), "{invalid:?}");
        assert!(problem(&cluster.admin()).await.unwrap().contains(reason));
        let shards = cluster.admin().shards(&name("hostile")).await.unwrap();
        assert_eq!(shards.len(), 1, "only what exists");
        assert!(cluster.admin().explain(&name("hostile"), None, None).await.is_ok());
        assert!(node.is_ready());

        store(&cluster, &valid).await;
        cluster.settle().await;
        assert!(node.invalid_jobs().is_empty(), "{reason}");
    }
    assert_eq!(problem(&cluster.admin()).await, None);
}

#[tokio::test(start_paused = true)]
async fn hostile_configuration_does_not_keep_a_node_from_starting() {
    let (bystander, hostile) = (Runs::default(), Runs::default());
    let mut cluster = Cluster::at(START).await;
    let start = async |cluster: &mut Cluster| -> RunningNode {
        cluster
            .node(|node| {
                node.job(every_second("hostile"), hostile.handler())
                    .job(every_second("bystander"), bystander.handler())
            })
            .await
            .unwrap()
    };
    start(&mut cluster).await.stop().await;
    store(&cluster, "jobName: hostile\nshardingTotalCount: 2147483647\n").await;
    bystander.take();
    hostile.take();

    let node = start(&mut cluster).await;
    cluster.advance(Duration::from_secs(5)).await;

    assert_eq!((bystander.take(), hostile.take()), (5, 0));
    assert!(node.invalid_jobs()[&name("hostile")].contains("100000 shards"));
    assert!(node.is_ready(), "the other jobs can run");
    store(&cluster, &every_second("hostile").to_yaml()).await;
    cluster.advance(Duration::from_secs(2)).await;
    hostile.take();
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(hostile.take(), 5, "it is joined once its configuration is valid");
    assert!(node.invalid_jobs().is_empty() && node.is_ready());
}

/// The nodes of the job `hostile` while `is_on`.
#[derive(Debug, Clone)]
struct FaultyNodes {
    fault: Fault,
    is_on: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// They are closed to this node.
    Denied,
    /// Another program changes them before each write.
    Contended,
}

impl FaultyNodes {
    fn has(&self, fault: Fault, path: &Path) -> bool {
        self.fault == fault
            && path.as_str().starts_with("/test/hostile")
            && self.is_on.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Interceptor for FaultyNodes {
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error> {
        if let Some(index) = ops.iter().position(|op| self.has(Fault::Contended, op.path())) {
            let path = ops[index].path().clone();
            let cause = Box::new(Error::Conflict { path, expected: ExpectedVersion::Any });
            return Err(Error::Operation { index, cause });
        }
        registry.multi(ops).await
    }

    async fn get(&self, registry: &dyn Registry, path: &Path) -> Result<Option<Node>, Error> {
        if self.has(Fault::Denied, path) {
            return Err(Error::NotAuthorised { path: path.clone() });
        }
        registry.get(path).await
    }
}

/// Asserts that only the bystander runs, and the node names the other job with this reason.
async fn assert_only_bystander_runs(
    cluster: &mut Cluster,
    node: &RunningNode,
    (bystander, hostile): (&Runs, &Runs),
    reason: &str,
) {
    cluster.advance(Duration::from_secs(1)).await;
    bystander.take();
    hostile.take();
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!((bystander.take(), hostile.take()), (5, 0), "{reason}");
    let invalid = node.invalid_jobs();
    assert!(invalid.len() == 1 && invalid[&name("hostile")].contains(reason), "{invalid:?}");
    assert!(node.is_ready(), "the other jobs can run");
}

/// Asserts that the job was joined within two seconds after it was mended.
async fn assert_hostile_is_joined(cluster: &mut Cluster, node: &RunningNode, hostile: &Runs) {
    cluster.advance(Duration::from_secs(2)).await;
    hostile.take();
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(hostile.take(), 5, "it is joined once it is mended");
    assert!(node.invalid_jobs().is_empty() && node.is_ready());
}

async fn store_root(cluster: &Cluster, class: &'static str) {
    let root = "/test/hostile".parse().unwrap();
    cluster.registry().set(&root, class.into(), ExpectedVersion::Any).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn job_of_another_handler_does_not_keep_a_node_from_starting() {
    let (bystander, hostile) = (Runs::default(), Runs::default());
    let ours = || every_second("hostile").handler("ours");
    for class in ["", "com.acme.Theirs"] {
        let mut cluster = Cluster::at(START).await;
        let start = async |cluster: &mut Cluster| {
            let both = cluster.node(|node| {
                let node = node.job(ours(), hostile.handler());
                node.job(every_second("bystander"), bystander.handler())
            });
            both.await.unwrap()
        };
        start(&mut cluster).await.stop().await;
        store_root(&cluster, class).await;
        if class.is_empty() {
            store(&cluster, &every_second("hostile").handler("theirs").to_yaml()).await;
        }

        let node = start(&mut cluster).await;

        let runs = (&bystander, &hostile);
        assert_only_bystander_runs(&mut cluster, &node, runs, "job hostile belongs to").await;
        store_root(&cluster, "").await;
        store(&cluster, &ours().to_yaml()).await;
        assert_hostile_is_joined(&mut cluster, &node, &hostile).await;
    }
}

/// What is stored for other programs is kept when a program overwrites its job, and only both together are too large.
#[tokio::test(start_paused = true)]
async fn merged_configuration_above_a_bound_does_not_keep_a_node_from_starting() {
    let (bystander, hostile) = (Runs::default(), Runs::default());
    let mut cluster = Cluster::at(START).await;
    let large = "x".repeat(100_000);
    let overwriting = || every_second("hostile").parameter(&large).overwrite(Overwrite::LocalWins);
    let start = async |cluster: &mut Cluster| {
        let both = cluster.node(|node| {
            let node = node.job(overwriting(), hostile.handler());
            node.job(every_second("bystander"), bystander.handler())
        });
        both.await.unwrap()
    };
    start(&mut cluster).await.stop().await;
    let extra = "x".repeat(1_000_000);
    let extra = format!("jobExtraConfigurations:\n- !!org.acme.Tracing\n  text: {extra}\n");
    store(&cluster, &document(&extra)).await;

    let node = start(&mut cluster).await;

    let runs = (&bystander, &hostile);
    assert_only_bystander_runs(&mut cluster, &node, runs, "at most 1048576 are read").await;
    store(&cluster, &document("")).await;
    assert_hostile_is_joined(&mut cluster, &node, &hostile).await;
}

#[tokio::test(start_paused = true)]
async fn refused_nodes_of_one_job_do_not_keep_a_node_from_starting() {
    for (fault, reason) in [
        (Fault::Denied, "not authorised for /test/hostile"),
        (Fault::Contended, "its configuration changes faster than it can be read"),
    ] {
        let (bystander, hostile) = (Runs::default(), Runs::default());
        let mut cluster = Cluster::at(START).await;
        let is_on = Arc::new(AtomicBool::new(true));
        let interceptor = FaultyNodes { fault, is_on: Arc::clone(&is_on) };

        let node = cluster.node(|node| {
            node.job(every_second("hostile"), hostile.handler())
                .job(every_second("bystander"), bystander.handler())
                .wrap_registry(move |registry| {
                    let interceptor = interceptor.clone();
                    Arc::new(InterceptedRegistry { registry, interceptor })
                })
        });
        let node = node.await.unwrap();

        let runs = (&bystander, &hostile);
        assert_only_bystander_runs(&mut cluster, &node, runs, reason).await;
        is_on.store(false, Ordering::Relaxed);
        assert_hostile_is_joined(&mut cluster, &node, &hostile).await;
    }
}

#[tokio::test(start_paused = true)]
async fn start_fails_if_no_job_can_be_joined() {
    let mut cluster = Cluster::at(START).await;
    let start = async |cluster: &mut Cluster| {
        let (job, runs) = (every_second("hostile"), Runs::default());
        cluster.node(|node| node.job(job, runs.handler())).await
    };
    start(&mut cluster).await.unwrap().stop().await;
    store_root(&cluster, "com.acme.Theirs").await;

    let error = start(&mut cluster).await.err().unwrap();

    assert!(matches!(error, NodeError::Join(JoinError::Conflict(_))), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn node_that_waits_runs_other_jobs_while_its_only_one_is_refused() {
    let (bystander, hostile) = (Runs::default(), Runs::default());
    let mut cluster = Cluster::at(START).await;
    let start = async |cluster: &mut Cluster| {
        let job = every_second("hostile");
        let node = cluster.node(|node| node.job(job, hostile.handler()).wait_if_all_refused(true));
        node.await.unwrap()
    };
    start(&mut cluster).await.stop().await;
    store_root(&cluster, "com.acme.Theirs").await;

    let node = start(&mut cluster).await;

    let added = NodeJob::code(every_second("bystander"), bystander.handler());
    node.add(added).await.unwrap();
    let runs = (&bystander, &hostile);
    assert_only_bystander_runs(&mut cluster, &node, runs, "job hostile belongs to").await;
    store_root(&cluster, "").await;
    assert_hostile_is_joined(&mut cluster, &node, &hostile).await;
}

#[tokio::test(start_paused = true)]
async fn node_of_which_every_job_is_refused_is_not_ready() {
    let mut cluster = Cluster::at(START).await;
    let runs = Runs::default();
    let start = async |cluster: &mut Cluster| {
        let job = every_second("hostile");
        cluster.node(|node| node.job(job, runs.handler())).await.unwrap()
    };
    start(&mut cluster).await.stop().await;
    store(&cluster, "jobName: hostile\nshardingTotalCount: 2147483647\n").await;

    let node = start(&mut cluster).await;

    assert_eq!(node.invalid_jobs().len(), 1);
    assert!(!node.is_ready(), "nothing can run");
    store(&cluster, &every_second("hostile").to_yaml()).await;
    assert_hostile_is_joined(&mut cluster, &node, &runs).await;
}

#[tokio::test(start_paused = true)]
async fn invalid_definition_fails_the_start_before_any_job_is_joined() {
    let mut cluster = Cluster::at(START).await;
    let runs = Runs::default();
    let handler = || runs.handler();
    let first = cluster.node(|node| node.job(every_second("large"), handler())).await.unwrap();
    first.stop().await;

    let large = every_second("large").shards(10_001);
    let error =
        cluster.node(|node| node.job(every_second("bystander"), handler()).job(large, handler()));
    let error = error.await.err().unwrap();

    assert!(matches!(error, NodeError::Join(JoinError::Invalid(_))), "{error:?}");
    let jobs = cluster.admin().jobs().await.unwrap();
    assert_eq!(jobs.iter().map(|job| &*job.name).collect::<Vec<_>>(), ["large"]);
}

#[tokio::test(start_paused = true)]
async fn job_above_the_limit_is_neither_stored_nor_joined() {
    let mut cluster = Cluster::at(START).await;
    let large = || every_second("large").shards(10_001);
    let handler = |_: Shard| async { Ok::<(), std::io::Error>(()) };

    let error = cluster.node(|node| node.job(large(), handler)).await.err().unwrap();

    assert!(matches!(error, NodeError::Join(JoinError::Invalid(_))), "{error:?}");
    assert!(format!("{error:?}").contains("--max-shards"), "{error:?}");
    let refused = cluster.admin().plan(Edit::new(large())).await.unwrap_err();
    assert!(matches!(refused, AdminError::Invalid { .. }), "{refused}");
    assert!(cluster.admin().jobs().await.unwrap().is_empty());

    let raised = cluster.admin().max_shards("20000".parse().unwrap());
    raised.apply(&raised.plan(Edit::new(large())).await.unwrap()).await.unwrap();
    assert_eq!(raised.jobs().await.unwrap()[0].shards, Some(10_001));
    let problem = cluster.admin().jobs().await.unwrap().remove(0).problem;
    assert!(problem.unwrap().contains("at most 10000 shards"));
}

#[tokio::test(start_paused = true)]
async fn page_of_shards_has_only_its_shards() {
    let cluster = Cluster::at(START).await;
    let admin = cluster.admin();
    let job = Job::named("wide").unwrap().shards(10_000);
    admin.apply(&admin.plan(Edit::new(job)).await.unwrap()).await.unwrap();

    let page = admin.shards_page(&name("wide"), 9_990, 50).await.unwrap();

    let items: Vec<u32> = page.shards.iter().map(|shard| shard.item).collect();
    assert_eq!((page.total, items), (10_000, (9_990..10_000).collect()));
    assert!(admin.shards_page(&name("wide"), usize::MAX, 50).await.unwrap().shards.is_empty());
}

/// What a newer version stores in a ledger page is kept, and must not drift a little with each claim.
#[test]
fn number_of_a_newer_version_is_written_back_unchanged() {
    let stored = r#"{"owner":"10.0.0.7@-@4711-000","state":"DONE","v":1,"x":[1.5e200,null]}"#;
    let page = LedgerPage::read(stored.as_bytes()).unwrap();

    let written = page.to_bytes();

    assert_eq!(LedgerPage::read(&written), Ok(page), "{}", String::from_utf8_lossy(&written));
}

/// Counts the nodes that are read.
#[derive(Debug, Default)]
struct ReadCounter(Arc<AtomicUsize>);

#[async_trait]
impl Interceptor for ReadCounter {
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error> {
        registry.multi(ops).await
    }

    async fn get(&self, registry: &dyn Registry, path: &Path) -> Result<Option<Node>, Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        registry.get(path).await
    }
}

#[tokio::test(start_paused = true)]
async fn page_of_shards_reads_no_nodes_of_other_shards() {
    let cluster = Cluster::at(START).await;
    let admin = cluster.admin();
    let job = Job::named("wide").unwrap().shards(10_000);
    admin.apply(&admin.plan(Edit::new(job)).await.unwrap()).await.unwrap();
    let registry = cluster.registry();
    let tree = JobTree::new(registry.namespace(), &name("wide")).unwrap();
    // One more shard than the job has now.
    for shard in 0..=10_000 {
        let owner = tree.shard(shard, ShardNode::Owner);
        for path in [owner, tree.ledger_page(shard)] {
            ensure_path(&**registry, &path).await.unwrap();
        }
    }
    let interceptor = ReadCounter::default();
    let reads = Arc::clone(&interceptor.0);
    let registry = Arc::clone(registry);
    let admin = Admin::new(Arc::new(InterceptedRegistry { registry, interceptor }));

    let page = admin.shards_page(&name("wide"), 9_990, 50).await.unwrap();

    let items: Vec<u32> = page.shards.iter().map(|shard| shard.item).collect();
    assert_eq!((page.total, items), (10_001, (9_990..=10_000).collect()));
    let reads = reads.load(Ordering::Relaxed);
    assert!(reads < 100, "{reads} nodes");
}

#[tokio::test(start_paused = true)]
async fn job_with_very_much_data_is_refused_and_can_be_removed() {
    let cluster = Cluster::at(START).await;
    let (admin, registry) = (cluster.admin(), cluster.registry());
    for job in ["bystander", "hostile"] {
        let job = Job::named(job).unwrap();
        admin.apply(&admin.plan(Edit::new(job)).await.unwrap()).await.unwrap();
    }
    let data: bytes::Bytes = vec![b'x'; 512 << 10].into();
    for number in 0..130 {
        let path = format!("/test/hostile/sharding/{number}").parse().unwrap();
        ensure_path(&**registry, &path).await.unwrap();
        registry.set(&path, data.clone(), ExpectedVersion::Any).await.unwrap();
    }

    let refused = admin.shards(&name("hostile")).await.unwrap_err();

    assert!(matches!(refused, AdminError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("/test/hostile has more than 64 MiB"), "{refused}");
    assert_eq!(admin.shards(&name("bystander")).await.unwrap().len(), 1);
    admin.remove(&name("hostile"), false).await.unwrap();
    assert_eq!(admin.jobs().await.unwrap().len(), 1);
}

/// Ten years of seconds are more than fit into memory. The handler never ends, so only the first of them starts.
#[tokio::test(start_paused = true)]
async fn catch_up_of_ten_years_begins_at_once_and_stops_no_other_job() {
    let mut cluster = Cluster::at("2016-11-15T00:00:00Z").await;
    let bystander = Runs::default();
    let window = Duration::from_hours(3650 * 24);
    let hostile = || every_second("hostile").catch_up(CatchUp::All { window });
    let quick = |_: Shard| async { Ok::<(), std::io::Error>(()) };
    let first = cluster.node(|node| node.job(hostile(), quick)).await.unwrap();
    cluster.advance(Duration::from_secs(2)).await;
    first.stop().await;
    cluster.advance_to("2026-11-12T00:00:00Z").await;

    let begun = Runs::default();
    let count = begun.handler();
    let endless = move |shard: Shard| {
        drop(count(shard));
        std::future::pending::<Result<(), std::io::Error>>()
    };
    let node = cluster.node(|node| {
        node.job(hostile(), endless).job(every_second("bystander"), bystander.handler())
    });
    let _node = node.await.unwrap();
    cluster.advance(Duration::from_secs(5)).await;

    assert_eq!((begun.take(), bystander.take()), (1, 5));
}
