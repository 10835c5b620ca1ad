//! Metrics of a worker in Prometheus's text format.
//!
//! Metrics are collected by a [`Listener`]; the library does not know about them. When a job is joined, all of its series start at zero, so that
//! an alert sees the first failure as a change. They are removed when the worker leaves the job, so that no alert waits for a job that no longer
//! runs here.

mod exposition;
mod histogram;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    execution::{AlertOutcome, Execution, Failure, Listener, Outcome, ShardResult},
    history::{Counts, Importance, Recording},
    job::{JobName, RunReason},
    registry::{SessionState, SessionStates},
    runtime::{Clock, Monotonic},
};

use self::{
    exposition::{Exposition, Family},
    histogram::Histogram,
};

/// Values of the label `reason`.
const REASONS: [RunReason; 5] = [
    RunReason::Schedule,
    RunReason::Trigger,
    RunReason::Misfire,
    RunReason::Failover,
    RunReason::CatchUp,
];
/// Values of the label `outcome`.
const OUTCOMES: [Outcome; 5] =
    [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Fenced];
/// Bucket bounds of the start delay, in seconds.
const DELAY_BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0];

/// Bucket bounds of the duration of registry requests, in seconds.
const REQUEST_BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
/// Values of the label `request`, in the order of [`Request`].
const REQUESTS: [&str; 3] = ["read", "write", "sync"];

/// Kind of registry request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    Read = 0,
    Write = 1,
    Sync = 2,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    clock: Arc<dyn Clock>,
    jobs: Mutex<BTreeMap<JobName, JobMetrics>>,
    request_durations: Mutex<[Histogram; REQUESTS.len()]>,
    unanswered: Mutex<[u64; REQUESTS.len()]>,
    /// Number of registry jobs that this worker may not run.
    refused: AtomicUsize,
    /// Number of jobs whose stored configuration is invalid.
    invalid: AtomicUsize,
    /// Registry sessions of the node, and how many of them are connected.
    sessions: AtomicUsize,
    connected_sessions: AtomicUsize,
}

#[derive(Debug)]
struct JobMetrics {
    fires: [u64; REASONS.len()],
    missed: usize,
    coalesced: usize,
    outcomes: [u64; OUTCOMES.len()],
    running: usize,
    alerts: [u64; AlertOutcome::ALL.len()],
    start_delay: Histogram,
    /// When a shard last succeeded; before the first success, when the job was added, so that a job that never succeeds is noticed, too.
    last_success: Monotonic,
}

impl Metrics {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            jobs: Mutex::default(),
            request_durations: Mutex::new(REQUESTS.map(|_| Histogram::new(&REQUEST_BUCKETS))),
            unanswered: Mutex::default(),
            refused: AtomicUsize::new(0),
            invalid: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            connected_sessions: AtomicUsize::new(0),
        }
    }

    /// Adds the series of a job, at zero.
    pub(super) fn add(&self, job: &JobName) {
        let now = self.clock.monotonic();
        self.lock().entry(job.clone()).or_insert_with(|| JobMetrics::new(now));
    }

    /// Removes the series of a job.
    pub(super) fn remove(&self, job: &JobName) {
        self.lock().remove(job);
    }

    /// Sets the number of registry jobs that this worker may not run.
    pub(super) fn set_refused(&self, jobs: usize) {
        self.refused.store(jobs, Ordering::Relaxed);
    }

    /// Sets the number of jobs whose stored configuration is invalid.
    pub(super) fn set_invalid(&self, jobs: usize) {
        self.invalid.store(jobs, Ordering::Relaxed);
    }

    pub(super) fn record_request(&self, request: Request, is_answered: bool, took: Duration) {
        let index = request as usize;
        if is_answered {
            let mut request_durations =
                self.request_durations.lock().unwrap_or_else(PoisonError::into_inner);
            request_durations[index].add(took.as_secs_f64());
        } else {
            self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)[index] += 1;
        }
    }

    /// Counts a session of the node, and tracks whether it is connected until it is closed.
    pub(super) async fn track_session(self: Arc<Self>, mut states: SessionStates) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        let mut was_connected = false;
        while let Some(state) = states.next().await {
            let is_connected =
                matches!(state, SessionState::Connected(_) | SessionState::Renewed { .. });
            match (was_connected, is_connected) {
                (false, true) => self.connected_sessions.fetch_add(1, Ordering::Relaxed),
                (true, false) => self.connected_sessions.fetch_sub(1, Ordering::Relaxed),
                (true, true) | (false, false) => continue,
            };
            was_connected = is_connected;
        }
        if was_connected {
            self.connected_sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// All metrics in Prometheus's text format.
    pub(super) fn text(&self, is_ready: bool, history: Option<&Recording>) -> String {
        let mut text = Exposition::default();
        self.write_process(is_ready, &mut text);
        self.write_registry(&mut text);
        let jobs = self.lock();
        write_runs(&jobs, &mut text);
        write_timeliness(&jobs, self.clock.monotonic(), &mut text);
        drop(jobs);
        if let Some(history) = history {
            write_history(history, &mut text);
        }
        text.into_text()
    }

    fn write_process(&self, is_ready: bool, text: &mut Exposition) {
        text.gauge("elasticjob_build_info", "Version of the program, as a label.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        let sessions = self.sessions.load(Ordering::Relaxed);
        let is_connected =
            sessions > 0 && self.connected_sessions.load(Ordering::Relaxed) == sessions;
        text.gauge(
            "elasticjob_registry_connected",
            "1 if every session with the registry is connected, else 0.",
        )
        .sample(&[], u8::from(is_connected));
        text.gauge(
            "elasticjob_registry_sessions",
            "Registry sessions of this process: one for some hundred jobs.",
        )
        .sample(&[], sessions);
        text.gauge(
            "elasticjob_ready",
            "1 if every job can run its fires, else 0; the same as /readyz.",
        )
        .sample(&[], u8::from(is_ready));
        text.gauge(
            "elasticjob_jobs_refused",
            "Script and HTTP jobs in the registry that this worker may not run.",
        )
        .sample(&[], self.refused.load(Ordering::Relaxed));
        text.gauge(
            "elasticjob_jobs_invalid",
            "Jobs whose stored configuration cannot be read or exceeds a bound, and jobs of the files that cannot be joined because they belong to another handler or are closed to this worker.",
        )
        .sample(&[], self.invalid.load(Ordering::Relaxed));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            text.gauge("elasticjob_tasks", "Asynchronous tasks of this process.")
                .sample(&[], runtime.metrics().num_alive_tasks());
        }
    }

    /// Requests to the registry.
    fn write_registry(&self, text: &mut Exposition) {
        let mut durations = text.histogram(
            "elasticjob_registry_request_seconds",
            "Duration of answered registry requests: read, write, sync.",
        );
        let request_durations =
            self.request_durations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (request, histogram) in REQUESTS.iter().zip(&request_durations) {
            durations.buckets(("request", request), histogram);
        }
        let mut unanswered = text.counter(
            "elasticjob_registry_unanswered_total",
            "Requests that the registry did not answer.",
        );
        let counts = *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        for (request, count) in REQUESTS.iter().zip(counts) {
            unanswered.sample(&[("request", request)], count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, JobMetrics>> {
        // Code under this lock leaves the map consistent even if it panics.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Listener for Metrics {
    /// Before all other listeners, so that runs are counted even if another listener fails.
    fn order(&self) -> i32 {
        i32::MIN
    }

    async fn before(&self, execution: &Execution) -> Result<(), Failure> {
        let (Some(first), now) = (execution.shards.first(), self.clock.now()) else {
            return Ok(());
        };
        let reason = REASONS.iter().position(|reason| *reason == first.attempt.reason);
        let late = now.duration_since(first.due_at).as_secs_f64().max(0.0);
        if let Some(job_metrics) = self.lock().get_mut(&first.job) {
            if let Some(reason) = reason {
                job_metrics.fires[reason] += 1;
            }
            job_metrics.running += execution.shards.len();
            job_metrics.start_delay.add(late);
        }
        Ok(())
    }

    async fn after(&self, execution: &Execution, ran: &[ShardResult]) -> Result<(), Failure> {
        let (Some(first), now) = (execution.shards.first(), self.clock.monotonic()) else {
            return Ok(());
        };
        if let Some(job_metrics) = self.lock().get_mut(&first.job) {
            job_metrics.running = job_metrics.running.saturating_sub(execution.shards.len());
            for ShardResult { outcome, .. } in ran {
                if let Some(index) = OUTCOMES.iter().position(|known| known == outcome) {
                    job_metrics.outcomes[index] += 1;
                }
                if outcome.is_success() {
                    job_metrics.last_success = now;
                }
            }
        }
        Ok(())
    }

    fn missed(&self, job: &JobName, fires: usize) {
        if let Some(job_metrics) = self.lock().get_mut(job) {
            job_metrics.missed += fires;
        }
    }

    fn coalesced(&self, job: &JobName, fires: usize) {
        if let Some(job_metrics) = self.lock().get_mut(job) {
            job_metrics.coalesced += fires;
        }
    }

    fn alerted(&self, job: &JobName, outcome: AlertOutcome) {
        let index = AlertOutcome::ALL.iter().position(|known| *known == outcome);
        if let (Some(job_metrics), Some(index)) = (self.lock().get_mut(job), index) {
            job_metrics.alerts[index] += 1;
        }
    }
}

impl JobMetrics {
    fn new(now: Monotonic) -> Self {
        Self {
            fires: [0; REASONS.len()],
            missed: 0,
            coalesced: 0,
            outcomes: [0; OUTCOMES.len()],
            running: 0,
            alerts: [0; AlertOutcome::ALL.len()],
            start_delay: Histogram::new(&DELAY_BUCKETS),
            last_success: now,
        }
    }
}

/// Fires and shards of each job.
fn write_runs(jobs: &BTreeMap<JobName, JobMetrics>, text: &mut Exposition) {
    let mut fires = text.counter(
        "elasticjob_fires_total",
        "Fires of which this instance ran shards, by reason: schedule, trigger, misfire, failover, catch_up.",
    );
    for (job, job_metrics) in jobs {
        for (reason, count) in REASONS.iter().zip(job_metrics.fires) {
            fires.sample(&[("job_name", job.as_str()), ("reason", reason.as_str())], count);
        }
    }
    let mut missed = text.counter(
        "elasticjob_missed_fires_total",
        "Fires that were due and will not run: no instance was up; the previous run was still going, or shards could not be claimed in time, and misfire is off; or the ledger page of a shard cannot be read.",
    );
    for (job, job_metrics) in jobs {
        missed.sample(&[("job_name", job.as_str())], job_metrics.missed);
    }
    let mut coalesced = text.counter(
        "elasticjob_coalesced_fires_total",
        "Fires that got no run of their own on this instance, because the run of a later fire answers them.",
    );
    for (job, job_metrics) in jobs {
        coalesced.sample(&[("job_name", job.as_str())], job_metrics.coalesced);
    }
    let mut shards = text.counter(
        "elasticjob_shards_total",
        "Shards that ended, by outcome: done, failed, timed_out, cancelled, fenced (lease lost).",
    );
    for (job, job_metrics) in jobs {
        for (outcome, count) in OUTCOMES.iter().zip(job_metrics.outcomes) {
            shards.sample(&[("job_name", job.as_str()), ("outcome", outcome.as_str())], count);
        }
    }
    let mut alerts = text.counter(
        "elasticjob_alerts_total",
        "Alerts by mail, to chat robots and to webhooks, by outcome: sent, failed, refused (target not allowed), dropped (too many wait).",
    );
    for (job, job_metrics) in jobs {
        for (outcome, count) in AlertOutcome::ALL.iter().zip(job_metrics.alerts) {
            alerts.sample(&[("job_name", job.as_str()), ("outcome", outcome.as_str())], count);
        }
    }
    let mut running = text.gauge("elasticjob_shards_running", "Shards running now.");
    for (job, job_metrics) in jobs {
        running.sample(&[("job_name", job.as_str())], job_metrics.running);
    }
}

/// How late the fires of each job start, and how long ago one succeeded.
fn write_timeliness(jobs: &BTreeMap<JobName, JobMetrics>, now: Monotonic, text: &mut Exposition) {
    let mut start_delays = text.histogram(
        "elasticjob_lateness_seconds",
        "Start delay: time from when a fire was due to when it started.",
    );
    for (job, job_metrics) in jobs {
        start_delays.buckets(("job_name", job.as_str()), &job_metrics.start_delay);
    }
    let mut since_success = text.gauge(
        "elasticjob_seconds_since_last_success",
        "Time since a shard last succeeded; before the first success, since the worker joined the job.",
    );
    for (job, job_metrics) in jobs {
        let seconds = now.saturating_since(job_metrics.last_success).as_secs_f64();
        since_success.sample(&[("job_name", job.as_str())], seconds);
    }
}

/// Metrics of the history recorder, by sink.
fn write_history(history: &Recording, text: &mut Exposition) {
    let counts = history.counts();
    let by_sink = |mut family: Family, count: fn(&Counts) -> u64| {
        for (sink, counts) in &counts {
            family.sample(&[("sink", sink)], count(counts));
        }
    };
    by_sink(text.counter("elasticjob_history_recorded_total", "Events recorded."), |it| {
        it.recorded
    });
    by_sink(
        text.counter(
            "elasticjob_history_spilled_total",
            "Events spilled to a file until the database is available.",
        ),
        |it| it.spilled,
    );
    by_sink(
        text.counter("elasticjob_history_failures_total", "Failed writes to the database."),
        |it| it.failures,
    );
    by_sink(text.gauge("elasticjob_history_queued", "Events queued in memory."), |it| it.queued);
    by_sink(text.gauge("elasticjob_history_spill_bytes", "Bytes in the spill file."), |it| {
        it.spill_bytes
    });
    let mut dropped = text.counter(
        "elasticjob_history_dropped_total",
        "Events dropped for lack of space: output first, failures last.",
    );
    for (sink, counts) in &counts {
        for worth in Importance::ALL {
            let labels = [("sink", *sink), ("worth", worth.as_str())];
            dropped.sample(&labels, counts.dropped(worth));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elasticjob::{
        job::{Attempt, FencingToken, Fire, Job, Shard, TaskId},
        runtime::SystemClock,
    };

    use super::*;

    fn execution(reason: RunReason, late: Duration, shards: u32) -> Execution {
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

    fn ran(execution: &Execution, outcomes: &[Outcome]) -> Vec<ShardResult> {
        let pairs = execution.shards.iter().zip(outcomes);
        pairs
            .map(|(shard, outcome)| ShardResult {
                shard: shard.clone(),
                outcome: *outcome,
                message: None,
                attempts: 1,
            })
            .collect()
    }

    #[tokio::test]
    async fn runs_are_counted_by_reason_and_outcome() {
        let late = execution(RunReason::Misfire, Duration::from_secs(7), 3);
        let metrics = Metrics::new(Arc::new(SystemClock));
        metrics.add(&late.shards[0].job);
        let assert_line = |line: &str| {
            let text = metrics.text(true, None);
            let line = line.replace("JOB", r#"job_name="settle \"all\"""#);
            assert!(text.lines().any(|other| other == line), "no {line} in\n{text}");
        };

        assert_line("elasticjob_fires_total{JOB,reason=\"misfire\"} 0");
        metrics.before(&late).await.unwrap();
        assert_line("elasticjob_shards_running{JOB} 3");
        let outcomes = [Outcome::Succeeded, Outcome::Fenced, Outcome::Cancelled];
        metrics.after(&late, &ran(&late, &outcomes)).await.unwrap();
        let taken = execution(RunReason::Failover, Duration::from_hours(2), 1);
        metrics.before(&taken).await.unwrap();

        assert_line("elasticjob_fires_total{JOB,reason=\"misfire\"} 1");
        assert_line("elasticjob_fires_total{JOB,reason=\"failover\"} 1");
        assert_line("elasticjob_shards_running{JOB} 1");
        assert_line("elasticjob_shards_total{JOB,outcome=\"done\"} 1");
        assert_line("elasticjob_shards_total{JOB,outcome=\"fenced\"} 1");
        assert_line("elasticjob_shards_total{JOB,outcome=\"cancelled\"} 1");
        assert_line("elasticjob_alerts_total{JOB,outcome=\"dropped\"} 0");
        metrics.alerted(&late.shards[0].job, AlertOutcome::Dropped);
        metrics.alerted(&"another".parse().unwrap(), AlertOutcome::Dropped);
        assert_line("elasticjob_alerts_total{JOB,outcome=\"dropped\"} 1");
        assert_line("elasticjob_alerts_total{JOB,outcome=\"sent\"} 0");
        assert_line("elasticjob_lateness_seconds_bucket{JOB,le=\"5\"} 0");
        assert_line("elasticjob_lateness_seconds_bucket{JOB,le=\"15\"} 1");
        assert_line("elasticjob_lateness_seconds_bucket{JOB,le=\"3600\"} 1");
        assert_line("elasticjob_lateness_seconds_bucket{JOB,le=\"+Inf\"} 2");
        assert_line("elasticjob_lateness_seconds_count{JOB} 2");
        assert_line("elasticjob_ready 1");
        assert_line("elasticjob_registry_connected 0");
        assert_line("elasticjob_registry_sessions 0");
        metrics.missed(&late.shards[0].job, 3);
        assert_line("elasticjob_missed_fires_total{JOB} 3");
        metrics.coalesced(&late.shards[0].job, 9);
        assert_line("elasticjob_coalesced_fires_total{JOB} 9");
        metrics.record_request(Request::Write, true, Duration::from_millis(3));
        metrics.record_request(Request::Write, false, Duration::from_secs(9));
        assert_line(
            "elasticjob_registry_request_seconds_bucket{request=\"write\",le=\"0.0025\"} 0",
        );
        assert_line("elasticjob_registry_request_seconds_bucket{request=\"write\",le=\"0.005\"} 1");
        assert_line("elasticjob_registry_request_seconds_count{request=\"write\"} 1");
        assert_line("elasticjob_registry_unanswered_total{request=\"write\"} 1");
        metrics.remove(&late.shards[0].job);
        assert!(!metrics.text(true, None).contains("job_name"), "series of a removed job are gone");
    }
}
