//! How long what a killed process ran is not run by anybody.

use std::{net::SocketAddr, time::Duration};

use elasticjob::job::Failover;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Both, Page, long},
    worker::{Beat, Pattern, Side, Worker},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// How long a session lasts on both sides.
const SESSION: Duration = Duration::from_secs(4);
/// Jobs, one shard each.
const JOBS: usize = 5;
/// How long a takeover may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// From the kill until each shard began elsewhere, in milliseconds.
struct Taken {
    after: Vec<f64>,
    lost: usize,
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "## A death\n\nTwo processes, {JOBS} jobs of one shard with failover, each due every two seconds and run by one of the two for a long time. That one is killed (`kill -9`); how long \
         until its shards begin on the other one. Then a new process joins, and the other one is killed; {} times. The session is {} seconds on both sides, and the server looks after it every 200 ms: \
         nobody can know sooner.",
        scale.kills,
        SESSION.as_secs()
    ));
    page.table(&[
        "",
        "shards taken over",
        "median",
        "p99",
        "the last",
        "median after the session's end",
    ]);
    let mut both = Vec::new();
    for side in Side::in_turn(0) {
        both.push((side, taken(server, side, scale.kills).await?));
    }
    let Some(both) = Both::of(both) else { return Ok(()) };
    for (side, taken) in both.each() {
        let quantile = |percent: usize| {
            let at = taken.after.len().saturating_sub(1) * percent / 100;
            taken.after.get(at).copied().unwrap_or_default()
        };
        let due = scale.kills * JOBS;
        page.row(&[
            side.name().to_owned(),
            format!("{} of {due}", due - taken.lost),
            long(quantile(50)),
            long(quantile(99)),
            long(quantile(100)),
            long(quantile(50) - SESSION.as_secs_f64() * 1e3),
        ]);
    }
    page.held(
        "every shard of a killed process is taken over",
        &format!("{} not", both.ours.lost),
        both.ours.lost == 0,
    );
    Ok(())
}

async fn taken(server: SocketAddr, side: Side, kills: usize) -> Result<Taken, BoxError> {
    let namespace = format!("death-{side:?}");
    let long_run = Pattern {
        failover: Failover::TakeOver,
        lasts: Duration::from_mins(10),
        ..Pattern::new("0/2 * * * * ?", 1)
    };
    let mut runs = Worker::start(side, server, &namespace, 0, SESSION).await?;
    runs.join_many("job-", JOBS, long_run, PATIENCE).await?;
    if began(&mut runs).await?.len() < JOBS {
        return Err("the jobs do not begin".into());
    }
    let (mut after, mut lost) = (Vec::new(), 0);
    for number in 1..=kills {
        let mut waits = Worker::start(side, server, &namespace, number, SESSION).await?;
        waits.join_many("job-", JOBS, long_run, PATIENCE).await?;
        let killed_at = runs.kill().await?;
        let beats = began(&mut waits).await?;
        lost += JOBS - beats.len();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        after.extend(beats.iter().map(|beat| (beat.at - killed_at) as f64));
        runs = waits;
    }
    after.sort_by(f64::total_cmp);
    Ok(Taken { after, lost })
}

/// Waits until one shard of every job has begun; those that did.
async fn began(worker: &mut Worker) -> Result<Vec<Beat>, BoxError> {
    let (stopwatch, mut beats) = (Stopwatch::start(), Vec::<Beat>::new());
    while beats.len() < JOBS && stopwatch.elapsed() < PATIENCE {
        for beat in worker.beats().await? {
            if beats.iter().all(|known| known.job != beat.job) {
                beats.push(beat);
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(beats)
}
