//! What a worker counts, in Prometheus's text format.
//!
//! It listens to every execution as any [`Listener`] does; the library knows nothing of it. Every job has all of its series from the start, at zero,
//! so that the first failure is a change that an alert can see.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use elasticjob::{
    execution::{Execution, Failure, Listener, Outcome, Ran},
    history::{Counts, Recording, Worth},
    job::{JobName, Reason},
    registry::{SessionState, States},
    runtime::{Clock, Monotonic},
};

/// Why a worker starts something, by the word it is counted under.
const REASONS: [&str; 4] = ["due", "misfire", "failover", "catch_up"];
/// How a shard ends, likewise.
const OUTCOMES: [&str; 5] = ["done", "failed", "timed_out", "cancelled", "fenced"];
/// The upper bounds of what is counted as how late, in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0];

/// What is counted.
pub(crate) struct Metrics {
    clock: Arc<dyn Clock>,
    jobs: Mutex<BTreeMap<JobName, Tally>>,
    is_connected: AtomicBool,
}

/// What is counted of one job.
struct Tally {
    fires: [u64; REASONS.len()],
    outcomes: [u64; OUTCOMES.len()],
    running: usize,
    /// How many were at most as late as the bound of the same place, and not as the one before.
    late: [u64; BUCKETS.len()],
    lateness: f64,
    /// All of them, those later than every bound among them.
    started: u64,
    /// When a shard was last done; before the first, when counting began. Then a job that never succeeds is noticed, too.
    succeeded: Monotonic,
}

impl Metrics {
    /// Counts these jobs.
    pub(crate) fn of<'a>(
        clock: Arc<dyn Clock>,
        jobs: impl IntoIterator<Item = &'a JobName>,
    ) -> Self {
        let now = clock.monotonic();
        let jobs = jobs.into_iter().map(|job| (job.clone(), Tally::new(now))).collect();
        Self { clock, jobs: Mutex::new(jobs), is_connected: AtomicBool::new(false) }
    }

    /// Follows the registry session until it is closed.
    pub(super) async fn follow(self: Arc<Self>, mut states: States) {
        while let Some(state) = states.next().await {
            let is_connected =
                matches!(state, SessionState::Connected(_) | SessionState::Renewed { .. });
            self.is_connected.store(is_connected, Ordering::Relaxed);
        }
        self.is_connected.store(false, Ordering::Relaxed);
    }

    /// Everything, as Prometheus reads it.
    pub(super) fn text(&self, is_ready: bool, history: Option<&Recording>) -> String {
        let (jobs, now) = (self.lock(), self.clock.monotonic());
        let mut page = Page::default();
        page.head("elasticjob_build_info", "gauge", "Which version this is.");
        page.line("elasticjob_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        page.head(
            "elasticjob_registry_connected",
            "gauge",
            "Whether the registry answers: 1 if it does.",
        );
        let is_connected = self.is_connected.load(Ordering::Relaxed);
        page.line("elasticjob_registry_connected", &[], u8::from(is_connected));
        page.head(
            "elasticjob_ready",
            "gauge",
            "Whether every job can run what is due: 1 if so, as /readyz says.",
        );
        page.line("elasticjob_ready", &[], u8::from(is_ready));

        page.head(
            "elasticjob_fires_total",
            "counter",
            "Fires this instance has run shards of, by why it did: due, misfire (made up for), failover (taken over), catch_up.",
        );
        for (job, tally) in &*jobs {
            for (reason, fires) in REASONS.iter().zip(tally.fires) {
                let labels = [("job_name", job.as_str()), ("reason", reason)];
                page.line("elasticjob_fires_total", &labels, fires);
            }
        }
        page.head(
            "elasticjob_shards_total",
            "counter",
            "Shards that have ended, by how: done, failed, timed_out, cancelled, fenced (after their lease).",
        );
        for (job, tally) in &*jobs {
            for (outcome, ended) in OUTCOMES.iter().zip(tally.outcomes) {
                let labels = [("job_name", job.as_str()), ("outcome", outcome)];
                page.line("elasticjob_shards_total", &labels, ended);
            }
        }
        page.head("elasticjob_shards_running", "gauge", "Shards that run now.");
        for (job, tally) in &*jobs {
            page.line("elasticjob_shards_running", &[("job_name", job.as_str())], tally.running);
        }
        page.head(
            "elasticjob_lateness_seconds",
            "histogram",
            "How long after it was due a fire was started.",
        );
        for (job, tally) in &*jobs {
            tally.lateness(job, &mut page);
        }
        page.head(
            "elasticjob_seconds_since_last_success",
            "gauge",
            "How long ago a shard was last done; before the first, since the worker started.",
        );
        for (job, tally) in &*jobs {
            let seconds = now.saturating_since(tally.succeeded).as_secs_f64();
            page.line(
                "elasticjob_seconds_since_last_success",
                &[("job_name", job.as_str())],
                seconds,
            );
        }
        drop(jobs);
        if let Some(history) = history {
            page.history(history);
        }
        page.0
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, Tally>> {
        // Nothing under this lock panics half way.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Listener for Metrics {
    /// Before all others: what they spoil is still counted.
    fn order(&self) -> i32 {
        i32::MIN
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let (Some(first), now) = (execution.shards.first(), self.clock.now()) else {
            return Ok(());
        };
        let reason = match first.attempt.reason {
            Reason::Misfire => 1,
            Reason::Failover => 2,
            Reason::CatchUp => 3,
            _ => 0,
        };
        let late = now.duration_since(first.due_at).as_secs_f64().max(0.0);
        if let Some(tally) = self.lock().get_mut(&first.job) {
            tally.fires[reason] += 1;
            tally.running += execution.shards.len();
            tally.started += 1;
            tally.lateness += late;
            if let Some(place) = BUCKETS.iter().position(|bound| late <= *bound) {
                tally.late[place] += 1;
            }
        }
        Ok(())
    }

    async fn after(&self, execution: &Execution, ran: &[Ran]) -> Result<(), Failure> {
        let (Some(first), now) = (execution.shards.first(), self.clock.monotonic()) else {
            return Ok(());
        };
        if let Some(tally) = self.lock().get_mut(&first.job) {
            tally.running = tally.running.saturating_sub(execution.shards.len());
            for Ran { outcome, .. } in ran {
                tally.outcomes[place(outcome)] += 1;
                if outcome.is_done() {
                    tally.succeeded = now;
                }
            }
        }
        Ok(())
    }
}

impl Tally {
    fn new(now: Monotonic) -> Self {
        Self {
            fires: [0; REASONS.len()],
            outcomes: [0; OUTCOMES.len()],
            running: 0,
            late: [0; BUCKETS.len()],
            lateness: 0.0,
            started: 0,
            succeeded: now,
        }
    }

    fn lateness(&self, job: &JobName, page: &mut Page) {
        let mut so_far = 0;
        for (bound, late) in BUCKETS.iter().zip(self.late) {
            so_far += late;
            let labels = [("job_name", job.as_str()), ("le", &*bound.to_string())];
            page.line("elasticjob_lateness_seconds_bucket", &labels, so_far);
        }
        let labels = [("job_name", job.as_str()), ("le", "+Inf")];
        page.line("elasticjob_lateness_seconds_bucket", &labels, self.started);
        page.line("elasticjob_lateness_seconds_sum", &labels[..1], self.lateness);
        page.line("elasticjob_lateness_seconds_count", &labels[..1], self.started);
    }
}

fn place(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done => 0,
        Outcome::TimedOut { .. } => 2,
        Outcome::Cancelled { .. } => 3,
        Outcome::Fenced => 4,
        _ => 1,
    }
}

/// The text format.
#[derive(Default)]
struct Page(String);

impl Page {
    /// What became of events, for each sink.
    fn history(&mut self, history: &Recording) {
        let counts = history.counts();
        let mut series = |name: &str, kind: &str, help: &str, count: fn(&Counts) -> u64| {
            let name = format!("elasticjob_history_{name}");
            self.head(&name, kind, help);
            for (sink, counts) in &counts {
                self.line(&name, &[("sink", sink)], count(counts));
            }
        };
        series("recorded_total", "counter", "Events that are kept.", |it| it.recorded);
        series(
            "spilled_total",
            "counter",
            "Events that went to a file to wait for the database.",
            |it| it.spilled,
        );
        series(
            "failures_total",
            "counter",
            "How often the database could not keep what it was given.",
            |it| it.failures,
        );
        series("queued", "gauge", "Events that wait in memory.", |it| it.queued);
        series("spill_bytes", "gauge", "Bytes that wait in a file.", |it| it.spill_bytes);
        let name = "elasticjob_history_dropped_total";
        self.head(
            name,
            "counter",
            "Events that are lost because there was no room: output goes first, failures last.",
        );
        for (sink, counts) in &counts {
            for worth in Worth::ALL {
                let labels = [("sink", *sink), ("worth", worth.as_str())];
                self.line(name, &labels, counts.dropped(worth));
            }
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to text does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elasticjob::{
        job::{Attempt, FencingToken, Fire, Job, Shard, TaskId},
        runtime::{CancelReason, SystemClock},
    };

    use super::*;

    fn execution(reason: Reason, late: Duration, shards: u32) -> Execution {
        let job = Job::named("settle \"all\"").unwrap().shards(shards);
        let due_at = SystemClock.now() - jiff::SignedDuration::try_from(late).unwrap();
        let fire = Fire::scheduled(job.name.clone(), due_at);
        let instance = "10.0.0.7@-@1".parse().unwrap();
        let task = TaskId { job: job.name.clone(), items: (0..shards).collect(), instance };
        let shards = (0..shards)
            .map(|item| {
                let shard = Shard::of(&job, &fire, task.clone(), item, FencingToken::new(1));
                shard.attempt(Attempt { reason, ..Attempt::FIRST })
            })
            .collect();
        Execution::new(task, fire.run, shards)
    }

    fn ran(execution: &Execution, outcomes: &[Outcome]) -> Vec<Ran> {
        let pairs = execution.shards.iter().zip(outcomes);
        pairs
            .map(|(shard, outcome)| Ran { shard: shard.clone(), outcome: outcome.clone() })
            .collect()
    }

    #[tokio::test]
    async fn what_begins_and_ends_is_counted_where_it_belongs() {
        let late = execution(Reason::Misfire, Duration::from_secs(7), 3);
        let metrics = Metrics::of(Arc::new(SystemClock), [&late.shards[0].job]);
        let says = |line: &str| {
            let text = metrics.text(true, None);
            let line = line.replace("JOB", r#"job_name="settle \"all\"""#);
            assert!(text.lines().any(|said| said == line), "no {line} in\n{text}");
        };

        says("elasticjob_fires_total{JOB,reason=\"misfire\"} 0");
        metrics.before(&late).await.unwrap();
        says("elasticjob_shards_running{JOB} 3");
        let reason = CancelReason::ShuttingDown;
        let outcomes = [Outcome::Done, Outcome::Fenced, Outcome::Cancelled { reason }];
        metrics.after(&late, &ran(&late, &outcomes)).await.unwrap();
        let taken = execution(Reason::Failover, Duration::from_hours(2), 1);
        metrics.before(&taken).await.unwrap();

        says("elasticjob_fires_total{JOB,reason=\"misfire\"} 1");
        says("elasticjob_fires_total{JOB,reason=\"failover\"} 1");
        says("elasticjob_shards_running{JOB} 1");
        says("elasticjob_shards_total{JOB,outcome=\"done\"} 1");
        says("elasticjob_shards_total{JOB,outcome=\"fenced\"} 1");
        says("elasticjob_shards_total{JOB,outcome=\"cancelled\"} 1");
        says("elasticjob_lateness_seconds_bucket{JOB,le=\"5\"} 0");
        says("elasticjob_lateness_seconds_bucket{JOB,le=\"15\"} 1");
        says("elasticjob_lateness_seconds_bucket{JOB,le=\"3600\"} 1");
        says("elasticjob_lateness_seconds_bucket{JOB,le=\"+Inf\"} 2");
        says("elasticjob_lateness_seconds_count{JOB} 2");
        says("elasticjob_ready 1");
        says("elasticjob_registry_connected 0");
    }
}
