//! A database stops under load and comes back: every attempt that the handlers saw is stored then, exactly once.
//!
//! `HISTORY_OUTAGE=60` for a longer outage, in seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    Job, Node, Shard,
    history::{
        Counts, ExecutionFilter, HistoryUrl, Importance, Recorder, Retention, RunFilter, RunState,
        Store,
    },
    job::Retry,
    node::RunningNode,
    runtime::{Clock, SystemClock},
};
use tempfile::TempDir;
use testbed::{MariaDb, Postgres};
use tinykeeper::server::{Config, Server};

const JOBS: usize = 10;
const SHARDS: u32 = 4;
/// Default length of the outage, in fires of each job.
const FIRES: usize = 10;
const TIMEOUT: Duration = Duration::from_mins(5);

/// Run, shard, attempt.
type AttemptKey = (String, i64, i64);

/// The attempts that the handlers saw, and whether they succeeded.
#[derive(Clone, Default)]
struct SeenAttempts(Arc<Mutex<Vec<(AttemptKey, bool)>>>);

impl SeenAttempts {
    /// The first attempt of shard 3 fails, and so does every attempt of the last job.
    fn handle(&self, shard: &Shard) -> Result<(), String> {
        let number = i64::from(shard.attempt.number.get());
        let last = format!("job-{}", JOBS - 1);
        let succeeds = (shard.item != 3 || number > 1)
            && shard.run.to_string().split('/').next() != Some(&last);
        let attempt = (shard.run.to_string(), shard.item.into(), number);
        self.0.lock().unwrap().push((attempt, succeeds));
        if succeeds { Ok(()) } else { Err(format!("no {number}")) }
    }

    fn runs(&self) -> usize {
        let seen = self.0.lock().unwrap();
        seen.iter().map(|((run, ..), _)| run.clone()).collect::<BTreeSet<_>>().len()
    }

    /// Waits until this many more runs have started.
    async fn wait(&self, more: usize) {
        let until = self.runs() + more;
        wait("runs start", || (self.runs() >= until).then_some(())).await;
    }
}

/// Waits until `probe` returns something.
async fn wait<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = SystemClock.monotonic() + TIMEOUT;
    loop {
        if let Some(seen) = probe() {
            return seen;
        }
        assert!(SystemClock.monotonic() < deadline, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn fires() -> usize {
    env::var("HISTORY_OUTAGE").map_or(FIRES, |seconds| seconds.parse().unwrap())
}

fn counts(node: &RunningNode) -> Counts {
    node.recording().unwrap().counts()[0].1
}

/// Runs a node under load, stops and restarts the database, and compares what the handlers saw with history.
async fn check_outage(url: &str, mut stop: impl FnMut(), mut restart: impl FnMut()) {
    let url: HistoryUrl = url.parse().unwrap();
    let registry = Server::start(Config::in_memory()).await.unwrap();
    let (folder, seen) = (TempDir::new().unwrap(), SeenAttempts::default());
    let recorder = Recorder::new().database(url.clone(), Retention::default()).spill(folder.path());
    let mut node =
        Node::join(&format!("zookeeper://{}/shop", registry.address())).history(recorder);
    for number in 0..JOBS {
        let retry =
            Retry::attempts(2).backoff(Duration::from_millis(10), Duration::from_millis(10));
        let job = Job::named(&format!("job-{number}")).unwrap().shards(SHARDS);
        let job = job.cron("* * * * * ?").unwrap().retry(retry);
        let seen = seen.clone();
        node = node.job(job, move |shard: Shard| std::future::ready(seen.handle(&shard)));
    }
    let node = node.start().await.unwrap();
    seen.wait(JOBS * 3).await;
    wait("events are stored", || (counts(&node).recorded > 0).then_some(())).await;

    tokio::task::block_in_place(&mut stop);
    seen.wait(JOBS * fires()).await;
    wait("events wait in a file", || (counts(&node).spilled > 0).then_some(())).await;
    let meanwhile = counts(&node);
    tokio::task::block_in_place(&mut restart);
    seen.wait(JOBS * 3).await;
    // Events that are recorded while the last spilled ones are stored, are stored with them.
    wait("nothing waits in a file", || (counts(&node).spill_bytes == 0).then_some(())).await;
    let at_last = counts(&node);
    node.stop().await;

    assert!(meanwhile.failures > 0, "{meanwhile:?}");
    assert!(Importance::ALL.into_iter().all(|worth| at_last.dropped(worth) == 0), "{at_last:?}");
    let store = Store::open(&url).await.unwrap();
    let seen = seen.0.lock().unwrap().clone();
    let expected: BTreeMap<AttemptKey, bool> = seen.iter().cloned().collect();
    assert_eq!(expected.len(), seen.len(), "nothing ran twice");
    let stored = stored(&store).await;
    assert_eq!(stored.len(), expected.len(), "attempts in {url}");
    assert_eq!(stored.into_iter().collect::<BTreeMap<_, _>>(), expected);
    check_runs(&store, &expected).await;
}

/// All stored attempts.
async fn stored(store: &Store) -> Vec<(AttemptKey, bool)> {
    let mut filter = ExecutionFilter { limit: Some(10_000), ..ExecutionFilter::default() };
    let mut stored = Vec::new();
    loop {
        let page = store.executions(&filter).await.unwrap();
        for row in page.rows {
            assert!(row.outcome.is_some() && row.complete_time.is_some(), "{row:?}");
            let attempt = (row.run_id.unwrap(), row.sharding_item, row.attempt.unwrap());
            stored.push((attempt, row.success));
        }
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return stored,
        }
    }
}

/// Checks that runs agree with their attempts.
async fn check_runs(store: &Store, expected: &BTreeMap<AttemptKey, bool>) {
    let filter = RunFilter { limit: Some(10_000), ..RunFilter::default() };
    let runs = store.runs(&filter).await.unwrap().rows;
    let ids: BTreeSet<&str> = expected.keys().map(|(run, ..)| run.as_str()).collect();
    assert_eq!(runs.iter().map(|run| run.run_id.as_str()).collect::<BTreeSet<_>>(), ids);
    for run in &runs {
        let fails = run.job_name == format!("job-{}", JOBS - 1);
        let state = if fails { RunState::Failed } else { RunState::Done };
        assert_eq!((run.state, run.shards), (state, SHARDS.into()), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real PostgreSQL: make test"]
async fn stopped_postgresql_gets_all_events_after_restart() {
    let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let (url, postgres) = (postgres.url(), Mutex::new(postgres));

    check_outage(&url, || postgres.lock().unwrap().stop(), || postgres.lock().unwrap().restart())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real MariaDB: make test"]
async fn killed_mariadb_gets_all_events_after_restart() {
    let mariadb = tokio::task::spawn_blocking(MariaDb::start).await.unwrap();
    let (url, mariadb) = (mariadb.url(), Mutex::new(mariadb));

    check_outage(&url, || mariadb.lock().unwrap().stop(), || mariadb.lock().unwrap().restart())
        .await;
}
