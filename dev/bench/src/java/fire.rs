//! Counts the ZooKeeper requests of a fire.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use elasticjob::job::Failover;

use super::{
    Scale,
    counting_proxy::CountingProxy,
    page::{Comparison, Page, format_number},
    worker::{JobTemplate, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// Jobs that fire at the same time, so that a few seconds are many fires.
const JOBS: usize = 10;
/// How long it may take until every instance has shards.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Requests per instance and fire.
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
        "### Requests per fire\n\nThe requests that an instance sends to ZooKeeper for one fire of a job: all requests, and those that write. A transaction is one request and one write, \
         whatever its size; pings do not count. {JOBS} jobs, due every second, for {} seconds, counted by a proxy that reads the protocol.",
        scale.fire_seconds
    ));
    page.table(
        3,
        &[
            "shards",
            "instances",
            "failover",
            "Java: requests",
            "writes",
            "Rust: requests",
            "writes",
            "ratio of requests",
        ],
    );
    let mut turn = 0;
    for instances in [1, 3] {
        for shards in scale.fire_shards {
            for failover in [Failover::Wait, Failover::TakeOver] {
                let template = JobTemplate { failover, ..JobTemplate::new("* * * * * ?", *shards) };
                turn += 1;
                let mut costs = Vec::new();
                for side in Side::in_turn(turn) {
                    let namespace = format!("fire-{side:?}-{shards}-{instances}-{failover:?}");
                    let seconds = scale.fire_seconds;
                    let cost = cost(server, side, &namespace, template, instances, seconds).await?;
                    costs.push((side, cost));
                }
                let Some(Comparison { java, rust }) = Comparison::of(costs) else { continue };
                let ratio = java.requests / rust.requests;
                let on = if failover == Failover::Wait { "off" } else { "on" };
                page.row(&[
                    shards.to_string(),
                    instances.to_string(),
                    on.to_owned(),
                    format_number(java.requests),
                    format_number(java.writes),
                    format_number(rust.requests),
                    format_number(rust.writes),
                    format!("{ratio:.0}"),
                ]);
                if *shards == 4 {
                    let fire = format!("a fire of 4 shards, {instances} instances, failover {on}");
                    let measured = format!(
                        "{} and {}",
                        format_number(rust.requests),
                        format_number(rust.writes)
                    );
                    // Keeping the session and comparing the clock cost a few requests that do not belong to a fire.
                    let is_met = rust.requests < 2.5 && rust.writes < 2.5;
                    page.required(
                        &format!("{fire}: 2 requests, 2 writes per instance"),
                        &measured,
                        is_met,
                    );
                    let times = format!("{ratio:.0} times");
                    let description = format!("{fire}: at least 25 times fewer requests");
                    // The more instances there are, the fewer shards each Java instance has to read.
                    if instances == 1 {
                        page.required(&description, &times, ratio >= 25.0);
                    } else {
                        page.goal(&description, &times, ratio >= 25.0);
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
    template: JobTemplate,
    instances: usize,
    seconds: i64,
) -> Result<Cost, BoxError> {
    let proxy = CountingProxy::start(server).await?;
    let mut workers = Vec::new();
    for number in 0..instances {
        workers.push(Worker::start(side, proxy.address(), namespace, number, SESSION).await?);
    }
    for worker in &mut workers {
        worker.join_many("job-", JOBS, template, TIMEOUT).await?;
    }
    let stopwatch = Stopwatch::start();
    while !is_shared(&mut workers, template).await? {
        if stopwatch.elapsed() > TIMEOUT {
            return Err(format!("{namespace}: an instance has no shards").into());
        }
    }
    between_fires().await;
    for worker in &mut workers {
        worker.take_starts().await?;
    }
    let before = proxy.counts();
    until(now() + seconds * 1_000).await;
    let counts = proxy.counts().since(before);
    let mut ran = 0;
    for worker in &mut workers {
        ran += worker.take_starts().await?.len();
    }
    // Divide by the shards that ran, so that late and compensated fires count too.
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    let each = |count: u64| count as f64 * f64::from(template.shards) / (ran * instances) as f64;
    Ok(Cost { requests: each(counts.reads + counts.writes), writes: each(counts.writes) })
}

/// Whether every shard of every job ran within one second, on as many instances as can have a shard.
async fn is_shared(workers: &mut [Worker], template: JobTemplate) -> Result<bool, BoxError> {
    between_fires().await;
    let second = now() / 1_000;
    let (mut shards, mut busy) = (BTreeSet::new(), 0);
    for worker in workers.iter_mut() {
        let starts = worker.take_starts().await?;
        let ran: Vec<_> = starts.into_iter().filter(|start| start.at / 1_000 == second).collect();
        busy += usize::from(!ran.is_empty());
        shards.extend(ran.into_iter().map(|start| (start.job, start.item)));
    }
    let expected = workers.len().min(template.shards as usize);
    Ok(busy >= expected && shards.len() == JOBS * template.shards as usize)
}

/// Waits until late in a second, when no fire is in progress.
async fn between_fires() {
    const LATE: i64 = 850;
    let (second, part) = (now().div_euclid(1_000), now().rem_euclid(1_000));
    until((second + i64::from(part >= LATE)) * 1_000 + LATE).await;
}
