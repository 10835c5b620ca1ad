//! Measures how long it takes until the shards of a killed process run elsewhere.

use std::{net::SocketAddr, time::Duration};

use elasticjob::job::Failover;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Comparison, Page, format_ms},
    worker::{JobTemplate, Side, Start, Worker},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// The session timeout of both sides.
const SESSION: Duration = Duration::from_secs(4);
/// Number of jobs, of one shard each.
const JOBS: usize = 5;
/// How long a takeover may take.
const TIMEOUT: Duration = Duration::from_mins(1);

struct Takeovers {
    /// Time from the kill until each shard started elsewhere, in milliseconds, sorted.
    times: Vec<f64>,
    lost: usize,
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "### Failover\n\nTwo processes, {JOBS} jobs of one shard with failover, due every two seconds; one process runs all shards for a long time. It is killed (`kill -9`): the time \
         until its shards start on the other one. Then a new process joins, and the other one is killed; {} times. The session timeout is {} seconds on both sides, and the server checks it every 200 ms: \
         no instance can know sooner.",
        scale.kills,
        SESSION.as_secs()
    ));
    page.table(
        1,
        &["", "shards taken over", "median", "p99", "maximum", "median after the session expired"],
    );
    let mut results = Vec::new();
    for side in Side::in_turn(0) {
        results.push((side, measure_side(server, side, scale.kills).await?));
    }
    let Some(comparison) = Comparison::of(results) else { return Ok(()) };
    for (side, takeovers) in comparison.each() {
        let quantile = |percent: usize| {
            let at = takeovers.times.len().saturating_sub(1) * percent / 100;
            takeovers.times.get(at).copied().unwrap_or_default()
        };
        let due = scale.kills * JOBS;
        page.row(&[
            side.name().to_owned(),
            format!("{} of {due}", due - takeovers.lost),
            format_ms(quantile(50)),
            format_ms(quantile(99)),
            format_ms(quantile(100)),
            format_ms(quantile(50) - SESSION.as_secs_f64() * 1e3),
        ]);
    }
    page.required(
        "every shard of a killed process is taken over",
        &format!("{} were not", comparison.rust.lost),
        comparison.rust.lost == 0,
    );
    Ok(())
}

async fn measure_side(server: SocketAddr, side: Side, kills: usize) -> Result<Takeovers, BoxError> {
    let namespace = format!("failover-{side:?}");
    let long_run = JobTemplate {
        failover: Failover::TakeOver,
        duration: Duration::from_mins(10),
        ..JobTemplate::new("0/2 * * * * ?", 1)
    };
    let mut running = Worker::start(side, server, &namespace, 0, SESSION).await?;
    running.join_many("job-", JOBS, long_run, TIMEOUT).await?;
    if wait_for_starts(&mut running).await?.len() < JOBS {
        return Err("the jobs do not start".into());
    }
    let (mut times, mut lost) = (Vec::new(), 0);
    for number in 1..=kills {
        let mut standby = Worker::start(side, server, &namespace, number, SESSION).await?;
        standby.join_many("job-", JOBS, long_run, TIMEOUT).await?;
        let killed_at = running.kill().await?;
        let starts = wait_for_starts(&mut standby).await?;
        lost += JOBS - starts.len();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        times.extend(starts.iter().map(|start| (start.at - killed_at) as f64));
        running = standby;
    }
    times.sort_by(f64::total_cmp);
    Ok(Takeovers { times, lost })
}

/// Waits until a shard of every job has started. Returns the first start of each job.
async fn wait_for_starts(worker: &mut Worker) -> Result<Vec<Start>, BoxError> {
    let (stopwatch, mut starts) = (Stopwatch::start(), Vec::<Start>::new());
    while starts.len() < JOBS && stopwatch.elapsed() < TIMEOUT {
        for start in worker.take_starts().await? {
            if starts.iter().all(|known| known.job != start.job) {
                starts.push(start);
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(starts)
}
