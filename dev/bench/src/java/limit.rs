//! How many fires a second one process keeps up with, and how far that is from what ZooKeeper can write.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use testbed::ZooKeeper;

use super::{
    Scale,
    page::{Both, Page},
    worker::{Pattern, SESSION, Side, Worker, now, until},
};
use crate::{BoxError, registry::write_limit, statistics::median};

const SHARDS: u32 = 4;
/// Seconds that are looked at.
const SECONDS: i64 = 5;
/// Of the fires that were due.
const KEPT: f64 = 0.99;
/// How long jobs may take to join.
const JOINING: Duration = Duration::from_mins(2);

/// What one process came to.
#[derive(Debug, Default)]
struct Limit {
    /// The most fires a second of which (nearly) none was missed.
    kept: usize,
    /// What happened when there were more.
    beyond: Option<String>,
    /// Transactions a second, when it kept up.
    writes: f64,
}

pub(super) async fn measure(
    server: &ZooKeeper,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(&format!(
        "## The limit\n\nJobs of {SHARDS} shards in one process, each due every second, more and more of them, until fires are missed. What ZooKeeper itself can write is measured in the same run, before and \
         after: one session that sets nodes of 100 bytes, 256 requests under way, and the same eight at a time in a transaction, which is about what a fire of ours writes."
    ));
    let mut alone = vec![write_limit(server.address(), "/limit-before").await?];
    let mut both = Vec::new();
    for side in Side::in_turn(1) {
        both.push((side, limit(server, side, scale).await?));
    }
    let Some(both) = Both::of(both) else { return Ok(()) };
    alone.push(write_limit(server.address(), "/limit-after").await?);
    let [sets, transactions] =
        [median(alone.iter().map(|limit| limit.0)), median(alone.iter().map(|limit| limit.1))];
    page.table(&["", "fires a second", "ZooKeeper writes a second", "and with more"]);
    for (side, limit) in both.each() {
        page.row(&[
            side.name().to_owned(),
            limit.kept.to_string(),
            format!("{:.0}", limit.writes),
            limit.beyond.clone().unwrap_or_else(|| "not tried".to_owned()),
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
        "That is {:.0} % of ZooKeeper's transactions for ours, and {:.0} % of its single writes for ElasticJob, whose fire is mostly reads.",
        both.ours.writes / transactions * 100.0,
        both.java.writes / sets * 100.0
    ));
    Ok(())
}

async fn limit(server: &ZooKeeper, side: Side, scale: &Scale) -> Result<Limit, BoxError> {
    let steps = if side == Side::Java { scale.java_steps } else { scale.our_steps };
    let mut worker =
        Worker::start(side, server.address(), &format!("limit-{side:?}"), 0, SESSION).await?;
    let (mut limit, mut jobs) = (Limit::default(), 0);
    for step in steps {
        let prefix = format!("step-{step}-");
        let joined = worker
            .join_many(&prefix, step - jobs, Pattern::new("* * * * * ?", SHARDS), JOINING)
            .await?;
        if let Some(why) = joined.why {
            limit.beyond = Some(format!("{step}: {why}"));
            break;
        }
        jobs = *step;
        // Time to deal, and to forget the joining.
        until((now() / 1_000 + 4) * 1_000 - 50).await;
        worker.beats().await?;
        let before = zxid(server);
        until(now() + SECONDS * 1_000).await;
        let written = zxid(server).saturating_sub(before);
        let mut fires: BTreeMap<(String, i64), BTreeSet<u64>> = BTreeMap::new();
        for beat in worker.beats().await? {
            fires.entry((beat.job, beat.at / 1_000)).or_default().insert(beat.item);
        }
        let whole = fires.values().filter(|items| items.len() == SHARDS as usize).count();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (kept, writes) =
            (whole as f64 / (jobs as f64 * SECONDS as f64), written as f64 / SECONDS as f64);
        if kept < KEPT {
            limit.beyond = Some(format!("of {step} a second {:.0} % were kept", kept * 100.0));
            break;
        }
        (limit.kept, limit.writes) = (jobs, writes);
    }
    Ok(limit)
}

/// How many transactions there were.
fn zxid(server: &ZooKeeper) -> u64 {
    let answer = server.four_letter("srvr");
    let number = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    number.and_then(|number| u64::from_str_radix(number.trim(), 16).ok()).unwrap_or_default()
}
