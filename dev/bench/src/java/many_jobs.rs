//! Measures the cost of many jobs that are not due: registering them and keeping them.

use std::{net::SocketAddr, time::Duration};

use testbed::ZooKeeper;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Comparison, Page, format_ms, format_number},
    worker::{JobTemplate, Side, Worker},
};
use crate::{
    BoxError,
    process::{resident, threads},
    stopwatch::Stopwatch,
};

/// Not due during the benchmark.
const NEVER: &str = "0 0 2 1 1 ? 2099";
/// How long the benchmark waits before it counts.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// The session timeout: short, because each measurement waits until the previous session is gone.
const SESSION: Duration = Duration::from_secs(10);
/// How long that may take, after longer sessions.
const EXPIRY_LIMIT: Duration = Duration::from_mins(1);
/// How long the jobs may take to register; only those registered by then count.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, Copy)]
struct Measurement {
    joined: usize,
    ms: f64,
    nodes: f64,
    watches: f64,
    threads: usize,
    megabytes: f64,
}

pub(super) async fn measure(
    server: &ZooKeeper,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(
        "### Many jobs\n\nJobs of four shards in one process, none of them due: the time to register them all, the nodes and watches in ZooKeeper per job, and the \
         threads and resident memory of the process. Java registers one job after the other, as a program that uses it does; Rust registers them concurrently, as a starting node does. Java creates \
         the nodes of the shards (two for each) when a job first runs, Rust when it joins.",
    );
    page.table(
        2,
        &[
            "jobs",
            "",
            "time to register",
            "nodes per job",
            "watches per job",
            "threads",
            "resident",
        ],
    );
    for (turn, count) in scale.job_counts.iter().enumerate() {
        let mut results = Vec::new();
        for side in Side::in_turn(turn) {
            results.push((side, measure_side(server, side, *count).await?));
        }
        let Some(comparison) = Comparison::of(results) else { continue };
        for (side, measurement) in comparison.each() {
            page.row(&cells(*count, side, measurement));
        }
        let ratio = comparison.java.megabytes / comparison.rust.megabytes;
        if *count >= 1_000 {
            page.goal(
                "1,000 jobs are registered in less than a second",
                &format_ms(comparison.rust.ms),
                comparison.rust.ms < 1_000.0,
            );
            let measured =
                format!("{} MB, {ratio:.0} times less", format_number(comparison.rust.megabytes));
            page.goal(
                "1,000 jobs take less than 50 MB, at least 20 times less",
                &measured,
                comparison.rust.megabytes < 50.0 && ratio >= 20.0,
            );
        }
    }
    for count in scale.large_job_counts {
        let measurement = measure_side(server, Side::Rust, *count).await?;
        page.row(&cells(*count, Side::Rust, &measurement));
    }
    Ok(())
}

fn cells(count: usize, side: Side, measurement: &Measurement) -> [String; 7] {
    [
        count.to_string(),
        side.name().to_owned(),
        if measurement.joined == count {
            format_ms(measurement.ms)
        } else {
            format!("{} in {}", measurement.joined, format_ms(measurement.ms))
        },
        format_number(measurement.nodes),
        format_number(measurement.watches),
        measurement.threads.to_string(),
        format!("{} MB", format_number(measurement.megabytes)),
    ]
}

async fn measure_side(
    server: &ZooKeeper,
    side: Side,
    count: usize,
) -> Result<Measurement, BoxError> {
    wait_until_sessions_are_gone(server).await?;
    let address: SocketAddr = server.address();
    let namespace = format!("many-jobs-{side:?}-{count}");
    let mut worker = Worker::start(side, address, &namespace, 0, SESSION).await?;
    let before = ServerState::read(server);
    let stopwatch = Stopwatch::start();
    let template = JobTemplate::new(NEVER, 4);
    let joined = worker.join_many("job-", count, template, REGISTRATION_LIMIT).await?.count;
    let ms = stopwatch.elapsed().as_secs_f64() * 1e3;
    sleep(SETTLE_TIME).await;
    let (after, pid) = (ServerState::read(server), worker.pid()?);
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    let each = |after: u64, before: u64| after.saturating_sub(before) as f64 / joined as f64;
    Ok(Measurement {
        joined,
        ms,
        nodes: each(after.nodes, before.nodes),
        watches: each(after.watches, before.watches),
        threads: threads(pid)?,
        megabytes: resident(pid)?,
    })
}

/// Waits until the server has removed the nodes and watches of earlier sessions, which would be counted otherwise.
async fn wait_until_sessions_are_gone(server: &ZooKeeper) -> Result<(), BoxError> {
    let stopwatch = Stopwatch::start();
    let has_sessions = |answer: &str| {
        let count =
            |key: &str| answer.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        ["zk_ephemerals_count", "zk_watch_count"].iter().any(|key| count(key) != Some("0"))
    };
    while has_sessions(&server.four_letter("mntr")) {
        if stopwatch.elapsed() > EXPIRY_LIMIT {
            return Err("the sessions of killed processes have not expired".into());
        }
        sleep(SETTLE_TIME / 10).await;
    }
    Ok(())
}

/// What a server holds.
#[derive(Debug, Clone, Copy)]
struct ServerState {
    nodes: u64,
    watches: u64,
}

impl ServerState {
    fn read(server: &ZooKeeper) -> Self {
        let number = |word: &str, key: &str| {
            let answer = server.four_letter(word);
            let number = answer.lines().find_map(|line| line.strip_prefix(key));
            number.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
        };
        Self { nodes: number("srvr", "Node count:"), watches: number("wchs", "Total watches:") }
    }
}
