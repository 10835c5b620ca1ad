//! `testing::Cluster` as users write tests with it: an in-process cluster with a manual clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    admin::Severity,
    execution::{Listener, blocking},
    job::{Failover, Job, JobName, Misfire, Shard},
    node::NodeJob,
    registry::{Create, ExpectedVersion},
    testing::Cluster,
};

const MIDNIGHT: &str = "2026-11-15T00:00:00Z";

/// One attempt: due time, server, shard, parameter.
type Attempt = (String, String, u32, String);

#[derive(Clone, Default)]
struct RunLog(Arc<Mutex<Vec<Attempt>>>);

impl RunLog {
    fn record(&self, shard: &Shard) {
        let server = shard.task.instance.server().to_owned();
        let parameter = shard.parameter.clone().unwrap_or_default();
        self.0.lock().unwrap().push((shard.due_at.to_string(), server, shard.item, parameter));
    }

    /// A handler that records each attempt.
    fn handler(
        &self,
    ) -> impl Fn(Shard) -> std::future::Ready<Result<(), std::io::Error>> + Send + Sync + 'static
    {
        let log = self.clone();
        move |shard| {
            log.record(&shard);
            std::future::ready(Ok(()))
        }
    }

    /// Attempts since the last call, sorted.
    fn take(&self) -> Vec<Attempt> {
        let mut attempts = std::mem::take(&mut *self.0.lock().unwrap());
        attempts.sort();
        attempts
    }
}

fn nightly() -> Job {
    Job::named("settle")
        .unwrap()
        .cron("0 0 2 * * ?")
        .unwrap()
        .shards(3)
        .items("0=Beijing,1=Shanghai,2=Guangzhou")
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn nightly_job_runs_each_shard_once_with_its_parameter() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();

    cluster.advance_to("2026-11-15T01:59:59.999Z").await;
    assert!(log.take().is_empty());
    cluster.advance(Duration::from_millis(1)).await;

    let attempt = |item, parameter: &str| {
        ("2026-11-15T02:00:00Z".into(), "10.0.0.1".into(), item, parameter.into())
    };
    assert_eq!(
        log.take(),
        [attempt(0, "Beijing"), attempt(1, "Shanghai"), attempt(2, "Guangzhou")]
    );
    cluster.advance_to("2026-11-16T01:59:59Z").await;
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nightly_job_fires_every_night_of_a_week() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let job = nightly().shards(1).items("").unwrap();
    let _node = cluster.node(|node| node.job(job, log.handler())).await.unwrap();

    cluster.advance(Duration::from_hours(7 * 24)).await;

    let nights: Vec<String> = log.take().into_iter().map(|attempt| attempt.0).collect();
    assert_eq!(nights.len(), 7);
    assert!(nights.iter().all(|night| night.ends_with("T02:00:00Z")), "{nights:?}");
    assert!(nights.windows(2).all(|pair| pair[0] < pair[1]), "{nights:?}");
    assert_eq!(cluster.now().to_string(), "2026-11-22T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_dead_node_go_to_the_survivor() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _first = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    let second = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    let servers = |attempts: Vec<Attempt>| {
        attempts.into_iter().map(|attempt| (attempt.2, attempt.1)).collect::<Vec<_>>()
    };

    cluster.advance_to("2026-11-15T02:00:00Z").await;
    let shared = servers(log.take());
    drop(second);
    cluster.settle().await;
    cluster.advance_to("2026-11-16T02:00:00Z").await;
    let alone = servers(log.take());

    let (first, second) = ("10.0.0.1".to_owned(), "10.0.0.2".to_owned());
    // As Java assigns shards: the last id in text order comes first and gets the remainder.
    assert_eq!(shared, [(1, first.clone()), (0, second.clone()), (2, second)]);
    assert_eq!(alone, [(0, first.clone()), (1, first.clone()), (2, first)]);
}

#[tokio::test(start_paused = true)]
async fn triggered_job_runs_at_once() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let job = Job::named("report").unwrap().shards(2);
    let _node = cluster.node(|node| node.job(job, log.handler())).await.unwrap();
    cluster.advance(Duration::from_hours(24)).await;
    assert!(log.take().is_empty(), "the job has no cron");

    cluster.trigger("report").await;

    let due = |item| ("2026-11-16T00:00:00Z".into(), "10.0.0.1".into(), item, String::new());
    assert_eq!(log.take(), [due(0), due(1)]);
}

#[tokio::test(start_paused = true)]
async fn fire_due_during_a_long_run_runs_right_after() {
    let (started, done) = (RunLog::default(), RunLog::default());
    let handler = {
        let (started, done) = (started.clone(), done.clone());
        move |shard: Shard| {
            let (started, done) = (started.clone(), done.clone());
            async move {
                started.record(&shard);
                tokio::time::sleep(Duration::from_mins(90)).await;
                done.record(&shard);
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let hourly = Job::named("slow").unwrap().cron("0 0 * * * ?").unwrap().misfire(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T00:30:00Z").await;
    let _node = cluster.node(|node| node.job(hourly, handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:29:59Z").await;
    assert_eq!((started.take().len(), done.take().len()), (1, 0));
    cluster.advance_to("2026-11-15T02:31:00Z").await;

    let due =
        |attempts: Vec<Attempt>| attempts.into_iter().map(|attempt| attempt.0).collect::<Vec<_>>();
    assert_eq!(due(done.take()), ["2026-11-15T01:00:00Z"]);
    assert_eq!(due(started.take()), ["2026-11-15T02:00:00Z"], "due during the first run");
}

#[tokio::test(start_paused = true)]
async fn blocking_handler_has_ended_when_the_cluster_settles() {
    let log = RunLog::default();
    let handler = {
        let log = log.clone();
        blocking(move |shard: Shard| {
            // Longer than everything else in this test, on a thread that the runtime does not poll.
            std::thread::sleep(Duration::from_millis(30));
            log.record(&shard);
            Ok::<(), std::io::Error>(())
        })
    };
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:00:00Z").await;

    assert_eq!(log.take().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn stopping_node_lets_running_shards_finish() {
    let log = RunLog::default();
    let handler = {
        let log = log.clone();
        move |shard: Shard| {
            let log = log.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                log.record(&shard);
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();
    cluster.advance_to("2026-11-15T02:00:00Z").await;
    assert!(log.take().is_empty());

    node.stop().await;

    assert_eq!(log.take().len(), 3);
    let instances = "/test/settle/instances".parse().unwrap();
    assert_eq!(cluster.registry().children(&instances).await.unwrap(), Some(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn job_without_a_zone_uses_the_zone_of_the_node() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let shanghai = "Asia/Shanghai".parse().unwrap();
    let job = nightly().shards(1);
    let _node = cluster.node(|node| node.zone(shanghai).job(job, log.handler())).await.unwrap();

    cluster.advance(Duration::from_hours(24)).await;

    let due: Vec<String> = log.take().into_iter().map(|attempt| attempt.0).collect();
    assert_eq!(due, ["2026-11-15T18:00:00Z"]);
}

#[tokio::test]
#[should_panic(expected = "hint: #[tokio::test(start_paused = true)]")]
async fn unpaused_runtime_is_refused_with_a_hint() {
    Cluster::at(MIDNIGHT).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "cannot advance to 2026-11-14T23:00:00Z")]
async fn advancing_into_the_past_panics() {
    Cluster::at(MIDNIGHT).await.advance_to("2026-11-14T23:00:00Z").await;
}

#[tokio::test(start_paused = true)]
async fn shard_that_ended_before_its_node_died_does_not_run_again() {
    let started = RunLog::default();
    let handler = {
        let started = started.clone();
        move |shard: Shard| {
            let started = started.clone();
            async move {
                started.record(&shard);
                if shard.item % 2 == 1 {
                    tokio::time::sleep(Duration::from_hours(1)).await;
                }
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let job = || nightly().shards(4).items("").unwrap().failover(Failover::TakeOver);
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _first = cluster.node(|node| node.job(job(), handler.clone())).await.unwrap();
    let second = cluster.node(|node| node.job(job(), handler)).await.unwrap();
    let second_server = "10.0.0.2";

    cluster.advance_to("2026-11-15T02:30:00Z").await;
    let before = started.take();
    assert_eq!(before.len(), 4);
    let stuck: Vec<u32> = before
        .into_iter()
        .filter(|(_, server, item, _)| server == second_server && item % 2 == 1)
        .map(|(_, _, item, _)| item)
        .collect();
    assert_eq!(stuck.len(), 1, "the second node has one shard that ended and one that runs");
    drop(second);
    cluster.settle().await;
    cluster.advance_to("2026-11-15T02:31:00Z").await;

    let again: Vec<u32> = started.take().into_iter().map(|attempt| attempt.2).collect();
    assert_eq!(again, stuck, "only what was running runs again");
}

/// The path of a server's node in the job of these tests.
fn server_path(address: &str) -> elasticjob::registry::Path {
    format!("/test/settle/servers/{address}").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn empty_server_status_is_replaced_and_stops_no_run() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    let server = server_path("10.0.0.1");

    // The console of ElasticJob 2.x enables a server this way.
    cluster.registry().set(&server, "".into(), ExpectedVersion::Any).await.unwrap();
    cluster.settle().await;
    cluster.advance_to("2026-11-15T02:00:00Z").await;

    assert_eq!(log.take().len(), 3);
    assert_eq!(cluster.registry().get(&server).await.unwrap().unwrap().data, "ENABLED");
}

#[tokio::test(start_paused = true)]
async fn promised_misfire_runs_although_the_schedule_changes() {
    let started = RunLog::default();
    let handler = {
        let started = started.clone();
        move |shard: Shard| {
            let started = started.clone();
            async move {
                started.record(&shard);
                tokio::time::sleep(Duration::from_mins(90)).await;
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let job =
        |cron: &str| Job::named("slow").unwrap().cron(cron).unwrap().misfire(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T00:30:00Z").await;
    let _node = cluster.node(|node| node.job(job("0 0 * * * ?"), handler)).await.unwrap();
    cluster.advance_to("2026-11-15T02:10:00Z").await;

    let config = "/test/slow/config".parse().unwrap();
    let daily = job("0 0 12 * * ?").to_yaml();
    cluster.registry().set(&config, daily.into(), ExpectedVersion::Any).await.unwrap();
    cluster.advance_to("2026-11-15T08:00:00Z").await;

    let due: Vec<String> = started.take().into_iter().map(|attempt| attempt.0).collect();
    assert_eq!(due, ["2026-11-15T01:00:00Z", "2026-11-15T02:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn instance_creates_its_server_again_if_it_is_gone() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    let server = "/test/settle/servers/10.0.0.1".parse().unwrap();

    cluster.registry().delete(&server, ExpectedVersion::Any).await.unwrap();
    cluster.settle().await;
    cluster.advance_to("2026-11-15T02:00:00Z").await;

    assert_eq!(log.take().len(), 3);
    assert_eq!(cluster.registry().get(&server).await.unwrap().unwrap().data, "ENABLED");
}

#[tokio::test(start_paused = true)]
async fn instance_that_joins_replaces_the_empty_status_of_its_server() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let first = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    first.stop().await;
    // An instance of ElasticJob 2.x left it; the next node of this cluster has this address.
    let server = server_path("10.0.0.2");
    cluster.registry().create(Create::persistent(&server, "")).await.unwrap();

    let _second = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();

    assert_eq!(cluster.registry().get(&server).await.unwrap().unwrap().data, "ENABLED");
    cluster.advance_to("2026-11-15T02:00:00Z").await;
    assert_eq!(log.take().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn admin_enables_a_server_with_an_empty_status() {
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let log = RunLog::default();
    let node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    node.stop().await;
    let server = server_path("10.0.0.1");
    let empty = async || {
        cluster.registry().set(&server, "".into(), ExpectedVersion::Any).await.unwrap();
    };
    let status = async || cluster.registry().get(&server).await.unwrap().unwrap().data;

    empty().await;
    assert_eq!(cluster.admin().enable_server("10.0.0.1", None).await.unwrap(), ["settle"]);
    assert_eq!(status().await, "ENABLED");

    empty().await;
    let switched = cluster.admin().enable(&"settle".parse().unwrap()).await.unwrap();
    assert_eq!(switched.servers, ["10.0.0.1"]);
    assert_eq!(status().await, "ENABLED");
}

#[tokio::test(start_paused = true)]
async fn empty_server_status_is_a_finding_that_names_the_server() {
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let log = RunLog::default();
    let node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    node.stop().await;
    cluster
        .registry()
        .set(&server_path("10.0.0.1"), "".into(), ExpectedVersion::Any)
        .await
        .unwrap();

    let explained = cluster.admin().explain(&"settle".parse().unwrap(), None, None).await.unwrap();

    let about_server = explained.findings.iter().find(|one| one.message.contains("empty status"));
    assert!(about_server.unwrap().message.contains("10.0.0.1"));
    assert_eq!(about_server.unwrap().severity, Severity::Blocking, "no server is enabled");
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_newer_version_survive_a_run() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    cluster.advance_to("2026-11-15T12:00:00Z").await;
    let page = "/test~ledger/settle/0".parse().unwrap();
    // An instance of a newer version ran shard 0 last.
    let newer = r#"{"v":2,"state":"DONE","attempt":1,"dueAt":"2026-11-15T02:00:00Z","run":"settle/1794708000000","owner":"10.0.0.9@-@1-a","floor":"2026-11-15T01:00:00Z"}"#;
    cluster.registry().set(&page, newer.into(), ExpectedVersion::Any).await.unwrap();
    log.take();

    cluster.advance_to("2026-11-16T12:00:00Z").await;

    assert_eq!(log.take().len(), 3);
    let stored = cluster.registry().get(&page).await.unwrap().unwrap().data;
    let stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(
        (&stored["dueAt"], &stored["state"]),
        (&"2026-11-16T02:00:00Z".into(), &"DONE".into())
    );
    assert_eq!(stored["floor"], "2026-11-15T01:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn unreadable_ledger_page_stops_only_its_shard() {
    let log = RunLog::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), log.handler())).await.unwrap();
    cluster.advance_to("2026-11-15T12:00:00Z").await;
    assert_eq!(log.take().len(), 3);
    let page = "/test~ledger/settle/1".parse().unwrap();
    let asleep = r#"{"state":"ASLEEP"}"#;
    cluster.registry().set(&page, asleep.into(), ExpectedVersion::Any).await.unwrap();

    let items = |log: &RunLog| log.take().into_iter().map(|attempt| attempt.2).collect::<Vec<_>>();
    cluster.advance_to("2026-11-16T12:00:00Z").await;
    assert_eq!(items(&log), [0, 2], "the page is read because the claim is refused");
    cluster.advance_to("2026-11-17T12:00:00Z").await;
    assert_eq!(items(&log), [0, 2], "the page is known to be unreadable");

    let job = "settle".parse().unwrap();
    let explained = cluster.admin().explain(&job, Some(1), None).await.unwrap();
    let hints = explained.findings.iter().filter_map(|one| one.hint.as_deref());
    assert!(hints.into_iter().any(|hint| hint == "elasticjob shard reset settle 1"));
    assert!(cluster.admin().reset_shard(&job, 1).await.unwrap());
    assert!(!cluster.admin().reset_shard(&job, 1).await.unwrap(), "it can be read");
    cluster.advance_to("2026-11-18T12:00:00Z").await;
    assert_eq!(items(&log), [0, 1, 2]);
}

/// Counts missed fires.
#[derive(Clone, Default)]
struct MissedFires(Arc<Mutex<usize>>);

impl Listener for MissedFires {
    fn missed(&self, _: &JobName, fires: usize) {
        *self.0.lock().unwrap() += fires;
    }
}

#[tokio::test(start_paused = true)]
async fn fire_of_an_unreadable_shard_counts_as_missed() {
    let (log, missed) = (RunLog::default(), MissedFires::default());
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let job = NodeJob::code(nightly(), log.handler()).listener(Arc::new(missed.clone()));
    let _node = cluster.node(|node| node.with(job)).await.unwrap();
    cluster.advance_to("2026-11-15T12:00:00Z").await;
    assert_eq!(*missed.0.lock().unwrap(), 0);
    let page = "/test~ledger/settle/1".parse().unwrap();
    cluster.registry().set(&page, "not a page".into(), ExpectedVersion::Any).await.unwrap();

    cluster.advance_to("2026-11-17T12:00:00Z").await;

    assert_eq!(*missed.0.lock().unwrap(), 2, "two nights");
}

#[tokio::test(start_paused = true)]
async fn page_of_a_shard_that_runs_is_not_reset() {
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let handler = |_: Shard| async {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok::<(), std::io::Error>(())
    };
    let node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();
    cluster.advance_to("2026-11-15T02:00:01Z").await;
    let (job, page) = ("settle".parse().unwrap(), "/test~ledger/settle/1".parse().unwrap());
    cluster.registry().set(&page, "not a page".into(), ExpectedVersion::Any).await.unwrap();

    let refused = cluster.admin().reset_shard(&job, 1).await.unwrap_err();
    assert!(refused.to_string().contains("is running on 10.0.0.1"), "{refused}");

    drop(node);
    cluster.advance_to("2026-11-15T03:00:00Z").await;
    assert!(cluster.admin().reset_shard(&job, 1).await.unwrap(), "its instance is dead");
}
