//! Measures the start delay of many jobs that are due in the same second.

use std::{collections::BTreeMap, net::SocketAddr, ops::Range, time::Duration};

use super::{
    Scale,
    page::{Page, format_ms, format_number},
    worker::{JobTemplate, SESSION, Side, Start, Worker, now, until},
};
use crate::{
    BoxError, print_line,
    process::{resident, threads},
};

const SHARDS: u32 = 4;
/// How long Java may take to register its jobs.
const REGISTRATION_LIMIT: Duration = Duration::from_mins(1);

/// Number of jobs, and how often they are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) jobs: usize,
    pub(super) cron: &'static str,
    pub(super) every: i64,
    pub(super) fires: i64,
}

struct Measurement {
    /// Start delay of each shard that ran, in milliseconds, sorted.
    delays: Vec<i64>,
    due: usize,
    threads: usize,
    megabytes: f64,
}

enum Outcome {
    Measured(Measurement),
    /// The process did not register all jobs; the reason.
    Incomplete(String),
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "### Start delay\n\nJobs of {SHARDS} shards in one process, all due in the same second: the start delay of the shards, and how many do not start within the interval in which they are due. \
         The first fire does not count, because Java assigns the shards in it. Threads and memory are those of a process whose jobs fire. \
         A JVM gets {} seconds to register its jobs, and at most 20,000 threads: the system allows 32,768 for all processes together.",
        REGISTRATION_LIMIT.as_secs()
    ));
    page.table(
        2,
        &["jobs", "", "due", "missed", "delay: median", "p99", "maximum", "threads", "resident"],
    );
    for (turn, load) in scale.loads.iter().enumerate() {
        let mut outcomes = Vec::new();
        for side in Side::in_turn(turn) {
            outcomes.push((side, measure_side(server, side, *load).await?));
        }
        outcomes.sort_by_key(|(side, _)| *side == Side::Rust);
        for (side, outcome) in &outcomes {
            page.row(&cells(*load, *side, outcome));
        }
        add_targets(*load, &outcomes, page);
    }
    Ok(())
}

fn add_targets(load: Load, outcomes: &[(Side, Outcome)], page: &mut Page) {
    let [(_, java), (_, Outcome::Measured(rust))] = outcomes else { return };
    let missed = rust.due - rust.delays.len();
    let (description, measured) = (
        format!("{} jobs: every due shard starts", load.jobs),
        format!("{missed} of {} missed", rust.due),
    );
    if load.jobs <= 1_000 {
        page.required(&description, &measured, missed == 0);
    } else {
        page.goal(&description, &measured, missed == 0);
    }
    if let (Outcome::Measured(java), 1_000..10_000) = (java, load.jobs) {
        let ratio = java.megabytes / rust.megabytes;
        let measured = format!("{} MB, {ratio:.0} times less", format_number(rust.megabytes));
        page.goal(
            "1,000 jobs that fire take less than 50 MB, at least 20 times less",
            &measured,
            rust.megabytes < 50.0 && ratio >= 20.0,
        );
        let max_threads = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 4;
        page.required(
            &format!("1,000 jobs that fire take at most {max_threads} threads"),
            &rust.threads.to_string(),
            rust.threads <= max_threads,
        );
    }
}

fn cells(load: Load, side: Side, outcome: &Outcome) -> Vec<String> {
    let mut cells = vec![load.jobs.to_string(), side.name().to_owned()];
    match outcome {
        Outcome::Incomplete(reason) => {
            cells.extend(["–".to_owned(), reason.clone()]);
            cells.extend(vec!["–".to_owned(); 5]);
        }
        Outcome::Measured(measurement) => {
            let quantile = |percent: usize| {
                let at = measurement.delays.len().saturating_sub(1) * percent / 100;
                #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                measurement
                    .delays
                    .get(at)
                    .map_or_else(|| "–".to_owned(), |delay| format_ms(*delay as f64))
            };
            cells.extend([
                measurement.due.to_string(),
                (measurement.due - measurement.delays.len()).to_string(),
            ]);
            cells.extend([50, 99, 100].map(quantile));
            cells.extend([
                measurement.threads.to_string(),
                format!("{} MB", format_number(measurement.megabytes)),
            ]);
        }
    }
    cells
}

async fn measure_side(server: SocketAddr, side: Side, load: Load) -> Result<Outcome, BoxError> {
    let namespace = format!("start-delay-{side:?}-{}", load.jobs);
    let mut worker = Worker::start(side, server, &namespace, 0, SESSION).await?;
    let template = JobTemplate::new(load.cron, SHARDS);
    let joined = worker.join_many("job-", load.jobs, template, REGISTRATION_LIMIT).await;
    let joined = match joined {
        Ok(joined) => joined,
        Err(error) if side == Side::Java => return Ok(Outcome::Incomplete(format!("{error}"))),
        Err(error) => return Err(error),
    };
    let pid = worker.pid()?;
    if let Some(reason) = joined.reason {
        let (threads, megabytes) = (threads(pid)?, format_number(resident(pid)?));
        let text = format!(
            "{} jobs registered, then {reason}: {threads} threads, {megabytes} MB",
            joined.count
        );
        print_line(&text);
        return Ok(Outcome::Incomplete(text));
    }
    let every = load.every * 1_000;
    // Java assigns shards in the next fire; the fires after it count.
    let first = (now() / every + 2) * every;
    let end = first + load.fires * every;
    until(first - 200).await;
    worker.take_starts().await?;
    until(end - 200).await;
    let starts = worker.take_starts().await?;
    let delays = delays(&starts, first..end, every);
    let due = load.jobs * SHARDS as usize * usize::try_from(load.fires)?;
    Ok(Outcome::Measured(Measurement {
        delays,
        due,
        threads: threads(pid)?,
        megabytes: resident(pid)?,
    }))
}

/// The start delay of each shard in each fire, sorted. If a shard started twice in an interval, the earlier start counts.
fn delays(starts: &[Start], window: Range<i64>, every: i64) -> Vec<i64> {
    let mut fires: BTreeMap<(&str, u64, i64), i64> = BTreeMap::new();
    for start in starts.iter().filter(|start| window.contains(&start.at)) {
        let delay = start.at % every;
        let earliest = fires.entry((&start.job, start.item, start.at / every)).or_insert(delay);
        *earliest = delay.min(*earliest);
    }
    let mut delays: Vec<i64> = fires.into_values().collect();
    delays.sort_unstable();
    delays
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_counts_once_in_each_interval() {
        let start = |item, at| Start { job: "a".into(), item, at };
        let starts = [
            start(0, 999),
            start(0, 10_007),
            start(1, 10_003),
            start(0, 10_900),
            start(0, 20_001),
            start(0, 30_000),
        ];

        assert_eq!(delays(&starts, 10_000..30_000, 10_000), [1, 3, 7]);
    }
}
