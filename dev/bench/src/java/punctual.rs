//! How punctual many jobs are that are due in the same second.

use std::{collections::BTreeMap, net::SocketAddr, ops::Range, time::Duration};

use super::{
    Scale,
    page::{Page, long, short},
    worker::{Beat, Pattern, SESSION, Side, Worker, now, until},
};
use crate::{
    BoxError,
    process::{resident, threads},
    say,
};

const SHARDS: u32 = 4;
/// How long Java may take to register its jobs. The rest is not waited for.
const REGISTERING: Duration = Duration::from_mins(1);

/// How many jobs, and how often they are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) jobs: usize,
    pub(super) cron: &'static str,
    pub(super) every: i64,
    pub(super) fires: i64,
}

/// What was seen.
struct Seen {
    /// Of each shard that ran, in milliseconds, sorted.
    late: Vec<i64>,
    due: usize,
    threads: usize,
    megabytes: f64,
}

/// What came of it.
enum Outcome {
    Seen(Seen),
    /// It did not get that far.
    Gave(String),
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "## Punctuality\n\nJobs of {SHARDS} shards in one process, all due in the same second: how late a shard begins, and how many never begin in the interval they are due in. \
         The first fire does not count: ElasticJob deals the shards in it. Threads and memory are those of a process whose jobs fire. \
         A JVM gets {} seconds to register its jobs and 20,000 threads at most: the system has 32,768 for everybody.",
        REGISTERING.as_secs()
    ));
    page.table(&[
        "jobs",
        "",
        "due",
        "missed",
        "late: median",
        "p99",
        "the last",
        "threads",
        "resident",
    ]);
    for (turn, load) in scale.loads.iter().enumerate() {
        let mut outcomes = Vec::new();
        for side in Side::in_turn(turn) {
            outcomes.push((side, look(server, side, *load).await?));
        }
        outcomes.sort_by_key(|(side, _)| *side == Side::Ours);
        for (side, outcome) in &outcomes {
            page.row(&cells(*load, *side, outcome));
        }
        bars(*load, &outcomes, page);
    }
    Ok(())
}

fn bars(load: Load, outcomes: &[(Side, Outcome)], page: &mut Page) {
    let [(_, java), (_, Outcome::Seen(ours))] = outcomes else { return };
    let missed = ours.due - ours.late.len();
    let (what, measured) = (
        format!("{} jobs: every shard due begins", load.jobs),
        format!("{missed} of {} missed", ours.due),
    );
    if load.jobs <= 1_000 {
        page.held(&what, &measured, missed == 0);
    } else {
        page.aimed(&what, &measured, missed == 0);
    }
    if let (Outcome::Seen(java), 1_000..10_000) = (java, load.jobs) {
        let less = java.megabytes / ours.megabytes;
        let measured = format!("{} MB, {less:.0} times less", short(ours.megabytes));
        page.aimed(
            "1,000 jobs that fire take less than 50 MB, at least 20 times less",
            &measured,
            ours.megabytes < 50.0 && less >= 20.0,
        );
        let most = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 4;
        page.held(
            &format!("1,000 jobs that fire take at most {most} threads"),
            &ours.threads.to_string(),
            ours.threads <= most,
        );
    }
}

fn cells(load: Load, side: Side, outcome: &Outcome) -> Vec<String> {
    let mut cells = vec![load.jobs.to_string(), side.name().to_owned()];
    match outcome {
        Outcome::Gave(why) => {
            cells.extend(["–".to_owned(), why.clone()]);
            cells.extend(vec!["–".to_owned(); 5]);
        }
        Outcome::Seen(seen) => {
            let quantile = |percent: usize| {
                let at = seen.late.len().saturating_sub(1) * percent / 100;
                #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                seen.late.get(at).map_or_else(|| "–".to_owned(), |late| long(*late as f64))
            };
            cells.extend([seen.due.to_string(), (seen.due - seen.late.len()).to_string()]);
            cells.extend([50, 99, 100].map(quantile));
            cells.extend([seen.threads.to_string(), format!("{} MB", short(seen.megabytes))]);
        }
    }
    cells
}

async fn look(server: SocketAddr, side: Side, load: Load) -> Result<Outcome, BoxError> {
    let namespace = format!("punctual-{side:?}-{}", load.jobs);
    let mut worker = Worker::start(side, server, &namespace, 0, SESSION).await?;
    let pattern = Pattern::new(load.cron, SHARDS);
    let joined = worker.join_many("job-", load.jobs, pattern, REGISTERING).await;
    let joined = match joined {
        Ok(joined) => joined,
        Err(error) if side == Side::Java => return Ok(Outcome::Gave(format!("{error}"))),
        Err(error) => return Err(error),
    };
    let pid = worker.pid()?;
    if let Some(why) = joined.why {
        let (threads, megabytes) = (threads(pid)?, short(resident(pid)?));
        let text = format!(
            "{} jobs registered, then {why}: {threads} threads, {megabytes} MB",
            joined.count
        );
        say(&text);
        return Ok(Outcome::Gave(text));
    }
    let every = load.every * 1_000;
    // The next one deals; those after it count, each until the next.
    let first = (now() / every + 2) * every;
    let end = first + load.fires * every;
    until(first - 200).await;
    worker.beats().await?;
    until(end - 200).await;
    let beats = worker.beats().await?;
    let late = lateness(&beats, first..end, every);
    let due = load.jobs * SHARDS as usize * usize::try_from(load.fires)?;
    Ok(Outcome::Seen(Seen { late, due, threads: threads(pid)?, megabytes: resident(pid)? }))
}

/// How late each shard of each fire was, sorted.
fn lateness(beats: &[Beat], window: Range<i64>, every: i64) -> Vec<i64> {
    let mut fires: BTreeMap<(&str, u64, i64), i64> = BTreeMap::new();
    for beat in beats.iter().filter(|beat| window.contains(&beat.at)) {
        let late = beat.at % every;
        let soonest = fires.entry((&beat.job, beat.item, beat.at / every)).or_insert(late);
        *soonest = late.min(*soonest);
    }
    let mut late: Vec<i64> = fires.into_values().collect();
    late.sort_unstable();
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_counts_once_in_each_interval() {
        let beat = |item, at| Beat { job: "a".into(), item, at };
        let beats = [
            beat(0, 999),
            beat(0, 10_007),
            beat(1, 10_003),
            beat(0, 10_900),
            beat(0, 20_001),
            beat(0, 30_000),
        ];

        assert_eq!(lateness(&beats, 10_000..30_000, 10_000), [1, 3, 7]);
    }
}
