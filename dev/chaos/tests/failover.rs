//! Measures how long a failover takes, over many kills.
//!
//! The measured time begins when a survivor learns that the instance is gone, since no instance can act earlier, and ends when the shard runs
//! there. The whole time, from the kill on, consists mostly of the session timeout; it is printed too.

use std::{path::Path, time::Duration};

use chaos::{
    Cluster, ClusterConfig, Event, EventKind, Execution, StepJob, executions, wait_until_quiescent,
};
use elasticjob::runtime::{Clock, SystemClock};
use testbed::ZooKeeper;

/// Kills in each of the clusters, which run in parallel.
const KILLS: usize = 13;
const CLUSTERS: usize = 2;
/// Each job has a shard on each of the three workers, so that a kill hits this many shards.
const JOBS: usize = 4;
const SESSION: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(500);
/// Limit of the 99th percentile, from the deletion of the instance node to the start of the shard. Six workers without optimisation share the
/// processors with the server: 139 ms were measured on one machine with two cores, 230 to 270 ms on a slower one, of the same code.
const MAX_P99_MS: f64 = 400.0;

struct Takeover {
    from_notice_ms: f64,
    from_kill_ms: f64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper: make test"]
async fn shards_of_a_killed_worker_run_elsewhere_within_400_ms_of_notice() {
    let server = ZooKeeper::builder().tick(TICK).start();
    let (one, two) = tokio::join!(kill_repeatedly(&server, 0), kill_repeatedly(&server, 1));

    let takeovers: Vec<Takeover> = one.into_iter().chain(two).collect();
    let sorted = |of: fn(&Takeover) -> f64| {
        let mut times: Vec<f64> = takeovers.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let [notice, kill] = [sorted(|one| one.from_notice_ms), sorted(|one| one.from_kill_ms)];
    let at = |times: &[f64], percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
    let [p50, p99] = [50, 99].map(|percent| at(&notice, percent));
    eprintln!(
        "{} shards taken over in {} kills: from the notice p50 {p50:.1} ms, p99 {p99:.1} ms, max {:.1} ms; from the kill p50 {:.0} ms, \
         max {:.0} ms, of which session and tick are {} ms",
        takeovers.len(),
        KILLS * CLUSTERS,
        notice[notice.len() - 1],
        at(&kill, 50),
        kill[kill.len() - 1],
        (SESSION + TICK).as_millis(),
    );
    assert!(
        takeovers.len() >= 100,
        "{} takeovers are too few for a 99th percentile",
        takeovers.len()
    );
    assert!(p99 <= MAX_P99_MS, "p99 {p99:.1} ms from the notice, at most {MAX_P99_MS} expected");
}

/// Repeatedly kills one of three workers in the middle of a run.
async fn kill_repeatedly(server: &ZooKeeper, number: usize) -> Vec<Takeover> {
    // A run is longer than a takeover, and the next fire comes later than a takeover: a shard that ran only at its next fire would show a delay of
    // seconds.
    let job = |number| {
        let name = format!("settle-{number}");
        StepJob::new(&name, "0/5 * * * * ?", 3, 40, Duration::from_millis(100))
    };
    let jobs: Vec<StepJob> = (0..JOBS).map(job).collect();
    let cluster = Cluster::new(ClusterConfig {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("failover-{number}")),
        servers: vec![server.address()],
        namespace: format!("failover-{number}"),
        session: SESSION,
        database: None,
        jobs: jobs.clone(),
        on_one_host: false,
    });
    let mut cluster = cluster.unwrap();
    for _ in 0..3 {
        cluster.start().await.unwrap();
    }
    let observer = cluster.observer().await.unwrap();
    wait_until_quiescent(&*observer, &jobs, 3).await.unwrap();
    let mut takeovers = Vec::new();
    for kill in 0..KILLS {
        let victim = kill % 3;
        let lost = running_on(&cluster, victim).await;
        let killed_at = SystemClock.now().as_nanosecond() as i64;
        cluster.kill(victim).await.unwrap();
        cluster.restart(victim).unwrap();
        for lost in &lost {
            let (noticed_at, started_at) = takeover_times(&cluster, lost).await;
            let ms = |from: i64, to: i64| {
                Duration::from_nanos((to - from).max(0).cast_unsigned()).as_secs_f64() * 1e3
            };
            takeovers.push(Takeover {
                from_notice_ms: ms(noticed_at, started_at),
                from_kill_ms: ms(killed_at, started_at),
            });
        }
    }
    for worker in 0..3 {
        cluster.stop(worker).await.unwrap();
    }
    takeovers
}

/// Waits until a worker runs a shard of every job, started within the last second, and returns these executions.
async fn running_on(cluster: &Cluster, worker: usize) -> Vec<Execution> {
    let log = cluster.events();
    log.until("the victim runs a shard of every job", |events| {
        let now = SystemClock.now().as_nanosecond() as i64;
        let is_fresh = |execution: &Execution| {
            let age_ms = (now - execution.started_at) / 1_000_000;
            execution.worker == worker && execution.outcome.is_none() && age_ms < 1_000
        };
        let all = executions(events, &mut Vec::new()).into_values();
        let mut running: Vec<Execution> = all.filter(is_fresh).collect();
        // Exclude executions of processes killed earlier.
        let pid = events.iter().rev().find(|event| event.worker == worker)?.pid;
        running.retain(|execution| execution.key.instance.contains(&format!("@-@{pid}-")));
        let has_written = |execution: &Execution| execution.writes.len() > 1;
        (running.len() == JOBS && running.iter().all(has_written)).then_some(running)
    })
    .await
}

/// When the successor saw that the instance was gone, and when it started the shard.
async fn takeover_times(cluster: &Cluster, lost: &Execution) -> (i64, i64) {
    let expectation =
        format!("{}/{} of {} is taken over", lost.key.job, lost.key.item, lost.key.run);
    let find_takeover = |events: &[Event]| {
        let successor = executions(events, &mut Vec::new()).into_values().find(|execution| {
            (&execution.key.job, execution.key.item) == (&lost.key.job, lost.key.item)
                && execution.key.token > lost.key.token
        })?;
        let noticed = events.iter().find(|event| {
            event.worker == successor.worker
                && matches!(&event.kind, EventKind::InstanceGone(gone) if *gone == lost.key.instance)
        })?;
        Some((noticed.at, successor.started_at))
    };
    cluster.events().until(&expectation, find_takeover).await
}
