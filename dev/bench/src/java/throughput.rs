//! Measures how many fires per second one process sustains, compared with the write rate of ZooKeeper.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use testbed::ZooKeeper;

use super::{
    Scale,
    page::{Comparison, Page},
    worker::{JobTemplate, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, registry::write_limit, statistics::median};

const SHARDS: u32 = 4;
/// Duration of a measurement.
const SECONDS: i64 = 5;
/// The share of due fires that must run for a rate to count as sustained.
const MIN_SHARE: f64 = 0.99;
/// How long jobs may take to join.
const JOIN_LIMIT: Duration = Duration::from_mins(2);

/// The result of one process.
#[derive(Debug, Default)]
struct Throughput {
    /// The highest sustained rate, in fires per second.
    sustained: usize,
    /// What happened at the next higher rate.
    beyond: Option<String>,
    /// Transactions per second at the sustained rate.
    writes: f64,
}

pub(super) async fn measure(
    server: &ZooKeeper,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "### Throughput\n\nJobs of {SHARDS} shards in one process, each due every second; jobs are added until fires are missed. The write rate of ZooKeeper itself is measured in the same run, before \
         and after: one session that sets nodes of 100 bytes with 256 requests in flight, and the same with transactions of eight sets, which is about what a fire of Rust writes."
    ));
    let mut baseline = vec![write_limit(server.address(), "/limit-before").await?];
    let mut results = Vec::new();
    for side in Side::in_turn(1) {
        results.push((side, measure_side(server, side, scale).await?));
    }
    let Some(comparison) = Comparison::of(results) else { return Ok(()) };
    baseline.push(write_limit(server.address(), "/limit-after").await?);
    let [sets, transactions] = [
        median(baseline.iter().map(|limit| limit.0)),
        median(baseline.iter().map(|limit| limit.1)),
    ];
    page.table(1, &["", "fires per second", "ZooKeeper writes per second", "at a higher rate"]);
    for (side, throughput) in comparison.each() {
        page.row(&[
            side.name().to_owned(),
            throughput.sustained.to_string(),
            format!("{:.0}", throughput.writes),
            throughput.beyond.clone().unwrap_or_else(|| "not tried".to_owned()),
        ]);
    }
    page.row(&[
        "ZooKeeper alone: sets".to_owned(),
        "–".to_owned(),
        format!("{sets:.0}"),
        "–".to_owned(),
    ]);
    page.row(&[
        "ZooKeeper alone: transactions of eight".to_owned(),
        "–".to_owned(),
        format!("{transactions:.0}"),
        "–".to_owned(),
    ]);
    page.block(&format!(
        "Rust uses {:.0} % of ZooKeeper's rate of transactions, Java {:.0} % of its rate of single writes; a fire of Java consists mostly of reads.",
        comparison.rust.writes / transactions * 100.0,
        comparison.java.writes / sets * 100.0
    ));
    Ok(())
}

async fn measure_side(
    server: &ZooKeeper,
    side: Side,
    scale: &Scale,
) -> Result<Throughput, BoxError> {
    let steps = if side == Side::Java { scale.java_steps } else { scale.rust_steps };
    let mut worker =
        Worker::start(side, server.address(), &format!("limit-{side:?}"), 0, SESSION).await?;
    let (mut throughput, mut jobs) = (Throughput::default(), 0);
    for step in steps {
        let prefix = format!("step-{step}-");
        let joined = worker
            .join_many(&prefix, step - jobs, JobTemplate::new("* * * * * ?", SHARDS), JOIN_LIMIT)
            .await?;
        if let Some(reason) = joined.reason {
            throughput.beyond = Some(format!("{step}: {reason}"));
            break;
        }
        jobs = *step;
        // Leave time for resharding, so that joining does not affect the measurement.
        until((now() / 1_000 + 4) * 1_000 - 50).await;
        worker.take_starts().await?;
        let before = zxid(server);
        until(now() + SECONDS * 1_000).await;
        let written = zxid(server).saturating_sub(before);
        let mut fires: BTreeMap<(String, i64), BTreeSet<u64>> = BTreeMap::new();
        for start in worker.take_starts().await? {
            fires.entry((start.job, start.at / 1_000)).or_default().insert(start.item);
        }
        let complete = fires.values().filter(|items| items.len() == SHARDS as usize).count();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (share, writes) =
            (complete as f64 / (jobs as f64 * SECONDS as f64), written as f64 / SECONDS as f64);
        if share < MIN_SHARE {
            throughput.beyond =
                Some(format!("{:.0} % of {step} fires per second ran", share * 100.0));
            break;
        }
        (throughput.sustained, throughput.writes) = (jobs, writes);
    }
    Ok(throughput)
}

/// The number of transactions so far.
fn zxid(server: &ZooKeeper) -> u64 {
    let answer = server.four_letter("srvr");
    let number = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    number.and_then(|number| u64::from_str_radix(number.trim(), 16).ok()).unwrap_or_default()
}
