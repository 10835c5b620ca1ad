//! What a fire asks of ZooKeeper.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use elasticjob::job::Failover;

use super::{
    Scale,
    page::{Both, Page, short},
    wire::Wire,
    worker::{Pattern, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// Jobs that fire at the same time, so that a few seconds are many fires.
const JOBS: usize = 10;
/// How long everybody may take to have a share.
const PATIENCE: Duration = Duration::from_mins(1);

/// Asked by each instance for each fire.
#[derive(Debug, Clone, Copy)]
struct Cost {
    requests: f64,
    writes: f64,
}

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "## A fire\n\nWhat an instance asks of ZooKeeper for one fire of a job: all its requests, and those of them that write. A transaction is one request and one write, \
         however much it holds; heartbeats do not count. {JOBS} jobs, due every second, for {} seconds, counted by a proxy that reads the protocol.",
        scale.fire_seconds
    ));
    page.table(&[
        "shards",
        "instances",
        "failover",
        "ElasticJob: requests",
        "writes",
        "ours: requests",
        "writes",
        "times fewer requests",
    ]);
    let mut turn = 0;
    for instances in [1, 3] {
        for shards in scale.fire_shards {
            for failover in [Failover::Wait, Failover::TakeOver] {
                let pattern = Pattern { failover, ..Pattern::new("* * * * * ?", *shards) };
                turn += 1;
                let mut costs = Vec::new();
                for side in Side::in_turn(turn) {
                    let namespace = format!("fire-{side:?}-{shards}-{instances}-{failover:?}");
                    let seconds = scale.fire_seconds;
                    let cost = cost(server, side, &namespace, pattern, instances, seconds).await?;
                    costs.push((side, cost));
                }
                let Some(Both { java, ours }) = Both::of(costs) else { continue };
                let fewer = java.requests / ours.requests;
                let on = if failover == Failover::Wait { "off" } else { "on" };
                page.row(&[
                    shards.to_string(),
                    instances.to_string(),
                    on.to_owned(),
                    short(java.requests),
                    short(java.writes),
                    short(ours.requests),
                    short(ours.writes),
                    format!("{fewer:.0}"),
                ]);
                if *shards == 4 {
                    let what = format!("a fire of 4 shards, {instances} instances, failover {on}");
                    let measured = format!("{} and {}", short(ours.requests), short(ours.writes));
                    // Its session is kept and the clock compared now and then, whatever fires.
                    let is_met = ours.requests < 2.5 && ours.writes < 2.5;
                    page.held(
                        &format!("{what}: 2 requests, 2 writes for each instance"),
                        &measured,
                        is_met,
                    );
                    let times = format!("{fewer:.0} times");
                    let what = format!("{what}: at least 25 times fewer requests");
                    // The more instances there are, the fewer shards each of Java has to ask about.
                    if instances == 1 {
                        page.held(&what, &times, fewer >= 25.0);
                    } else {
                        page.aimed(&what, &times, fewer >= 25.0);
                    }
                }
            }
        }
    }
    Ok(())
}

async fn cost(
    server: SocketAddr,
    side: Side,
    namespace: &str,
    pattern: Pattern,
    instances: usize,
    seconds: i64,
) -> Result<Cost, BoxError> {
    let wire = Wire::start(server).await?;
    let mut workers = Vec::new();
    for number in 0..instances {
        workers.push(Worker::start(side, wire.address(), namespace, number, SESSION).await?);
    }
    for worker in &mut workers {
        worker.join_many("job-", JOBS, pattern, PATIENCE).await?;
    }
    let stopwatch = Stopwatch::start();
    while !is_shared(&mut workers, pattern).await? {
        if stopwatch.elapsed() > PATIENCE {
            return Err(format!("{namespace}: not everybody got a share").into());
        }
    }
    between_fires().await;
    for worker in &mut workers {
        worker.beats().await?;
    }
    let before = wire.asked();
    until(now() + seconds * 1_000).await;
    let asked = wire.asked().since(before);
    let mut ran = 0;
    for worker in &mut workers {
        ran += worker.beats().await?.len();
    }
    // By what ran, so that a fire that is late or makes up for another one is one, too.
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    let each = |count: u64| count as f64 * f64::from(pattern.shards) / (ran * instances) as f64;
    Ok(Cost { requests: each(asked.reads + asked.writes), writes: each(asked.writes) })
}

/// Looks at one whole second: whether every shard of every job ran, on as many as can have one.
async fn is_shared(workers: &mut [Worker], pattern: Pattern) -> Result<bool, BoxError> {
    between_fires().await;
    let second = now() / 1_000;
    let (mut shards, mut busy) = (BTreeSet::new(), 0);
    for worker in workers.iter_mut() {
        let beats = worker.beats().await?;
        let ran: Vec<_> = beats.into_iter().filter(|beat| beat.at / 1_000 == second).collect();
        busy += usize::from(!ran.is_empty());
        shards.extend(ran.into_iter().map(|beat| (beat.job, beat.item)));
    }
    let able = workers.len().min(pattern.shards as usize);
    Ok(busy >= able && shards.len() == JOBS * pattern.shards as usize)
}

/// The next time that little is under way: late in a second.
async fn between_fires() {
    const LATE: i64 = 850;
    let (second, part) = (now().div_euclid(1_000), now().rem_euclid(1_000));
    until((second + i64::from(part >= LATE)) * 1_000 + LATE).await;
}
