//! Tests of jobs as users write them: a cluster in process whose time passes when told to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    execution::blocking,
    job::{Job, Misfire, Shard},
    testing::Cluster,
};

const MIDNIGHT: &str = "2026-11-15T00:00:00Z";

/// What ran: when it was due, where, which shard, with which parameter.
type Ran = (String, String, u32, String);

#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<Ran>>>);

impl Book {
    fn note(&self, shard: &Shard) {
        let server = shard.task.instance.server().to_owned();
        let parameter = shard.parameter.clone().unwrap_or_default();
        self.0.lock().unwrap().push((shard.due_at.to_string(), server, shard.item, parameter));
    }

    /// A handler that notes what it is given.
    fn handler(
        &self,
    ) -> impl Fn(Shard) -> std::future::Ready<Result<(), std::io::Error>> + Send + Sync + 'static
    {
        let book = self.clone();
        move |shard| {
            book.note(&shard);
            std::future::ready(Ok(()))
        }
    }

    /// What ran since the last look, in order of shards.
    fn take(&self) -> Vec<Ran> {
        let mut ran = std::mem::take(&mut *self.0.lock().unwrap());
        ran.sort();
        ran
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
    let book = Book::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), book.handler())).await.unwrap();

    cluster.advance_to("2026-11-15T01:59:59.999Z").await;
    assert!(book.take().is_empty());
    cluster.advance(Duration::from_millis(1)).await;

    let ran = |item, parameter: &str| {
        ("2026-11-15T02:00:00Z".into(), "10.0.0.1".into(), item, parameter.into())
    };
    assert_eq!(book.take(), [ran(0, "Beijing"), ran(1, "Shanghai"), ran(2, "Guangzhou")]);
    cluster.advance_to("2026-11-16T01:59:59Z").await;
    assert!(book.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nightly_job_fires_every_night_of_a_week() {
    let book = Book::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let job = nightly().shards(1).items("").unwrap();
    let _node = cluster.node(|node| node.job(job, book.handler())).await.unwrap();

    cluster.advance(Duration::from_hours(7 * 24)).await;

    let nights: Vec<String> = book.take().into_iter().map(|ran| ran.0).collect();
    assert_eq!(nights.len(), 7);
    assert!(nights.iter().all(|night| night.ends_with("T02:00:00Z")), "{nights:?}");
    assert!(nights.windows(2).all(|pair| pair[0] < pair[1]), "{nights:?}");
    assert_eq!(cluster.now().to_string(), "2026-11-22T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_dead_node_go_to_the_survivor() {
    let book = Book::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _first = cluster.node(|node| node.job(nightly(), book.handler())).await.unwrap();
    let second = cluster.node(|node| node.job(nightly(), book.handler())).await.unwrap();
    let servers = |ran: Vec<Ran>| ran.into_iter().map(|ran| (ran.2, ran.1)).collect::<Vec<_>>();

    cluster.advance_to("2026-11-15T02:00:00Z").await;
    let shared = servers(book.take());
    drop(second);
    cluster.settle().await;
    cluster.advance_to("2026-11-16T02:00:00Z").await;
    let alone = servers(book.take());

    let (first, second) = ("10.0.0.1".to_owned(), "10.0.0.2".to_owned());
    // As the ancestor deals: the last id as text comes first, and what is left over goes to it.
    assert_eq!(shared, [(1, first.clone()), (0, second.clone()), (2, second)]);
    assert_eq!(alone, [(0, first.clone()), (1, first.clone()), (2, first)]);
}

#[tokio::test(start_paused = true)]
async fn triggered_job_runs_at_once() {
    let book = Book::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let job = Job::named("report").unwrap().shards(2);
    let _node = cluster.node(|node| node.job(job, book.handler())).await.unwrap();
    cluster.advance(Duration::from_hours(24)).await;
    assert!(book.take().is_empty(), "it has no cron");

    cluster.trigger("report").await;

    let due = |item| ("2026-11-16T00:00:00Z".into(), "10.0.0.1".into(), item, String::new());
    assert_eq!(book.take(), [due(0), due(1)]);
}

#[tokio::test(start_paused = true)]
async fn fire_due_during_a_long_run_runs_right_after() {
    let (begun, done) = (Book::default(), Book::default());
    let handler = {
        let (begun, done) = (begun.clone(), done.clone());
        move |shard: Shard| {
            let (begun, done) = (begun.clone(), done.clone());
            async move {
                begun.note(&shard);
                tokio::time::sleep(Duration::from_mins(90)).await;
                done.note(&shard);
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let hourly = Job::named("slow").unwrap().cron("0 0 * * * ?").unwrap().if_late(Misfire::RunOnce);
    let mut cluster = Cluster::at("2026-11-15T00:30:00Z").await;
    let _node = cluster.node(|node| node.job(hourly, handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:29:59Z").await;
    assert_eq!((begun.take().len(), done.take().len()), (1, 0));
    cluster.advance_to("2026-11-15T02:31:00Z").await;

    let due = |ran: Vec<Ran>| ran.into_iter().map(|ran| ran.0).collect::<Vec<_>>();
    assert_eq!(due(done.take()), ["2026-11-15T01:00:00Z"]);
    assert_eq!(due(begun.take()), ["2026-11-15T02:00:00Z"], "it was due while the first ran");
}

#[tokio::test(start_paused = true)]
async fn blocking_handler_has_ended_when_the_cluster_settles() {
    let book = Book::default();
    let handler = {
        let book = book.clone();
        blocking(move |shard: Shard| {
            // Longer than anything else here takes, on a thread the runtime does not poll.
            std::thread::sleep(Duration::from_millis(30));
            book.note(&shard);
            Ok::<(), std::io::Error>(())
        })
    };
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let _node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:00:00Z").await;

    assert_eq!(book.take().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn stopping_node_lets_running_shards_finish() {
    let book = Book::default();
    let handler = {
        let book = book.clone();
        move |shard: Shard| {
            let book = book.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                book.note(&shard);
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();
    cluster.advance_to("2026-11-15T02:00:00Z").await;
    assert!(book.take().is_empty());

    node.stop().await;

    assert_eq!(book.take().len(), 3);
    let instances = "/test/settle/instances".parse().unwrap();
    assert_eq!(cluster.registry().children(&instances).await.unwrap(), Some(Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn job_without_a_zone_uses_the_zone_of_the_node() {
    let book = Book::default();
    let mut cluster = Cluster::at(MIDNIGHT).await;
    let shanghai = "Asia/Shanghai".parse().unwrap();
    let job = nightly().shards(1);
    let _node = cluster.node(|node| node.zone(shanghai).job(job, book.handler())).await.unwrap();

    cluster.advance(Duration::from_hours(24)).await;

    let due: Vec<String> = book.take().into_iter().map(|ran| ran.0).collect();
    assert_eq!(due, ["2026-11-15T18:00:00Z"]);
}

#[tokio::test]
#[should_panic(expected = "hint: #[tokio::test(start_paused = true)]")]
async fn unpaused_runtime_is_refused_with_a_hint() {
    Cluster::at(MIDNIGHT).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "2026-11-14T23:00:00Z is over")]
async fn advancing_into_the_past_panics() {
    Cluster::at(MIDNIGHT).await.advance_to("2026-11-14T23:00:00Z").await;
}
