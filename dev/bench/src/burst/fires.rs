//! A node whose jobs are all due at the same moments.

use std::time::Duration;

use elasticjob::runtime::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use testbed::ZooKeeper;

use super::SHARDS;
use crate::{
    BoxError,
    node_process::{HistoryCounts, NodePlan, NodeProcess},
    server_counters::ServerCounters,
};

/// Measured fires of every job.
const FIRES: i64 = 3;

pub(crate) struct Burst {
    /// Start delays of all shards of the measured fires, in milliseconds, in ascending order.
    delays: Vec<f64>,
    /// Requests while the measured fires were due.
    requests: f64,
    /// Measured fires of all jobs.
    pub(crate) fires: usize,
    /// Every shard of every measured fire ran.
    pub(crate) is_complete: bool,
    /// Resident memory after the measured fires, in megabytes.
    pub(crate) resident: f64,
    /// Processor time of the process for the measured fires.
    busy: Duration,
    pub(crate) sessions: u32,
    pub(crate) history: HistoryCounts,
}

impl Burst {
    /// Runs so many jobs in one process, all due every `interval` seconds, and measures some of their fires. The first one is a warm-up.
    pub(crate) async fn measure(
        server: &ZooKeeper,
        namespace: &str,
        (jobs, interval): (usize, i64),
        history: Option<String>,
    ) -> Result<Self, BoxError> {
        let plan = NodePlan {
            registry: format!("zookeeper://{}/{namespace}?sessionTimeout=30s", server.address()),
            jobs,
            shards: SHARDS,
            cron: format!("0/{interval} * * * * ?"),
            number: 1,
            history,
        };
        let (mut node, joined) = NodeProcess::start(&plan).await?;
        let warm_up = next_fire(SystemClock.now(), interval)?;
        let just_before = |fire: i64| warm_up + SignedDuration::from_secs(fire * interval) - MARGIN;
        until(just_before(1)).await;
        node.take_delays().await?;
        let (before, busy) = (ServerCounters::read(server)?, node.busy()?);
        until(just_before(1 + FIRES)).await;
        let counters = ServerCounters::read(server)?.since(before);
        let (resident, busy) = (node.resident()?, node.busy()?.saturating_sub(busy));
        let fires = node.take_delays().await?;
        let history = node.stop().await?;
        let due = jobs * SHARDS as usize;
        let is_complete = fires.len() == usize::try_from(FIRES)?
            && fires.iter().all(|fire| fire.due_at > warm_up && fire.delays.len() == due);
        let mut delays: Vec<f64> = fires.iter().flat_map(|fire| fire.delays.clone()).collect();
        delays.sort_by(f64::total_cmp);
        Ok(Self {
            delays,
            requests: counters.requests,
            fires: jobs * fires.len(),
            is_complete,
            resident,
            busy,
            sessions: joined.sessions,
            history,
        })
    }

    /// A quantile of the start delay, in milliseconds.
    pub(crate) fn delay(&self, percent: usize) -> f64 {
        let last = self.delays.len().saturating_sub(1);
        self.delays.get(last * percent / 100).copied().unwrap_or_default()
    }

    pub(crate) fn requests_per_fire(&self) -> f64 {
        self.requests / self.fires()
    }

    /// Processor time of the process for one fire, in microseconds.
    pub(crate) fn busy_per_fire(&self) -> f64 {
        self.busy.as_secs_f64() * 1e6 / self.fires()
    }

    fn fires(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let fires = self.fires.max(1) as f64;
        fires
    }
}

/// Counters are read this long before a fire.
const MARGIN: SignedDuration = SignedDuration::from_millis(500);

/// The first fire that a node which is ready `now` surely runs.
fn next_fire(now: Timestamp, interval: i64) -> Result<Timestamp, BoxError> {
    let second = (now + MARGIN).as_second();
    Ok(Timestamp::from_second((second / interval + 1) * interval)?)
}

async fn until(moment: Timestamp) {
    let wait = moment.duration_since(SystemClock.now());
    tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
}
