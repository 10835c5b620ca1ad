//! What many jobs cost that are not due: to register them, and to keep them.

use std::{net::SocketAddr, time::Duration};

use testbed::ZooKeeper;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Both, Page, long, short},
    worker::{Pattern, Side, Worker},
};
use crate::{
    BoxError,
    process::{resident, threads},
    stopwatch::Stopwatch,
};

/// Not due while this runs.
const NEVER: &str = "0 0 2 1 1 ? 2099";
/// How long everybody is left alone before something is counted.
const REST: Duration = Duration::from_secs(1);

/// How long sessions last here: what one leaves behind is waited for.
const SESSION: Duration = Duration::from_secs(10);
/// How long that may take, after longer sessions.
const LEAVING: Duration = Duration::from_mins(1);
/// How long they may take to register; what is there then counts.
const REGISTERING: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, Copy)]
struct Crowd {
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
        "## Many jobs\n\nJobs of four shards in one process, none of them due: how long it takes to register them all, what ZooKeeper keeps for each job (nodes, watches), and the \
         threads and resident memory of the process. ElasticJob registers one job after the other, as a program that uses it does; ours as many at once as a node does that starts with them. ElasticJob makes \
         the nodes of the shards (two for each) when a job first runs, ours when it joins.",
    );
    page.table(&[
        "jobs",
        "",
        "to register",
        "nodes for each",
        "watches for each",
        "threads",
        "resident",
    ]);
    for (turn, count) in scale.crowds.iter().enumerate() {
        let mut crowds = Vec::new();
        for side in Side::in_turn(turn) {
            crowds.push((side, crowd(server, side, *count).await?));
        }
        let Some(both) = Both::of(crowds) else { continue };
        for (side, crowd) in both.each() {
            page.row(&cells(*count, side, crowd));
        }
        let less = both.java.megabytes / both.ours.megabytes;
        if *count >= 1_000 {
            page.aimed(
                "1,000 jobs are registered in less than a second",
                &long(both.ours.ms),
                both.ours.ms < 1_000.0,
            );
            let measured = format!("{} MB, {less:.0} times less", short(both.ours.megabytes));
            page.aimed(
                "1,000 jobs take less than 50 MB, at least 20 times less",
                &measured,
                both.ours.megabytes < 50.0 && less >= 20.0,
            );
        }
    }
    for count in scale.large_crowds {
        let crowd = crowd(server, Side::Ours, *count).await?;
        page.row(&cells(*count, Side::Ours, &crowd));
    }
    Ok(())
}

fn cells(count: usize, side: Side, crowd: &Crowd) -> [String; 7] {
    [
        count.to_string(),
        side.name().to_owned(),
        if crowd.joined == count {
            long(crowd.ms)
        } else {
            format!("{} of them in {}", crowd.joined, long(crowd.ms))
        },
        short(crowd.nodes),
        short(crowd.watches),
        crowd.threads.to_string(),
        format!("{} MB", short(crowd.megabytes)),
    ]
}

async fn crowd(server: &ZooKeeper, side: Side, count: usize) -> Result<Crowd, BoxError> {
    nobody_is_left(server).await?;
    let address: SocketAddr = server.address();
    let namespace = format!("crowd-{side:?}-{count}");
    let mut worker = Worker::start(side, address, &namespace, 0, SESSION).await?;
    let before = Kept::by(server);
    let stopwatch = Stopwatch::start();
    let pattern = Pattern::new(NEVER, 4);
    let joined = worker.join_many("job-", count, pattern, REGISTERING).await?.count;
    let ms = stopwatch.elapsed().as_secs_f64() * 1e3;
    sleep(REST).await;
    let (after, pid) = (Kept::by(server), worker.pid()?);
    #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
    let each = |after: u64, before: u64| after.saturating_sub(before) as f64 / joined as f64;
    Ok(Crowd {
        joined,
        ms,
        nodes: each(after.nodes, before.nodes),
        watches: each(after.watches, before.watches),
        threads: threads(pid)?,
        megabytes: resident(pid)?,
    })
}

/// Waits until the server has forgotten whoever was there before: what goes with them would be counted.
async fn nobody_is_left(server: &ZooKeeper) -> Result<(), BoxError> {
    let stopwatch = Stopwatch::start();
    let is_left = |answer: &str| {
        let count =
            |key: &str| answer.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        ["zk_ephemerals_count", "zk_watch_count"].iter().any(|key| count(key) != Some("0"))
    };
    while is_left(&server.four_letter("mntr")) {
        if stopwatch.elapsed() > LEAVING {
            return Err("those who were killed are still there".into());
        }
        sleep(REST / 10).await;
    }
    Ok(())
}

/// What a server keeps.
#[derive(Debug, Clone, Copy)]
struct Kept {
    nodes: u64,
    watches: u64,
}

impl Kept {
    fn by(server: &ZooKeeper) -> Self {
        let of = |word: &str, key: &str| {
            let answer = server.four_letter(word);
            let number = answer.lines().find_map(|line| line.strip_prefix(key));
            number.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
        };
        Self { nodes: of("srvr", "Node count:"), watches: of("wchs", "Total watches:") }
    }
}
