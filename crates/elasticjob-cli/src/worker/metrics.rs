//! What a worker counts, in Prometheus's text format.
//!
//! It listens to every execution as any [`Listener`] does; the library knows nothing of it. Every job has all of its series from when it is joined, at
//! zero, so that the first failure is a change that an alert can see; they go when the worker leaves it, so that nothing is missed of what it
//! no longer does.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
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

/// The upper bounds of what is counted as how slow a registry is, in seconds.
const ANSWERS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
/// What a registry is asked, by the word it is counted under.
const REQUESTS: [&str; 3] = ["read", "write", "sync"];

/// What a registry is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    Read = 0,
    Write = 1,
    Sync = 2,
}

/// What is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    clock: Arc<dyn Clock>,
    jobs: Mutex<BTreeMap<JobName, Tally>>,
    answers: Mutex<[Histogram; REQUESTS.len()]>,
    unanswered: Mutex<[u64; REQUESTS.len()]>,
    /// Jobs of the registry that this worker has no right to run.
    refused: AtomicUsize,
    is_connected: AtomicBool,
}

/// What is counted of one job.
#[derive(Debug)]
struct Tally {
    fires: [u64; REASONS.len()],
    missed: usize,
    outcomes: [u64; OUTCOMES.len()],
    running: usize,
    lateness: Histogram,
    /// When a shard was last done; before the first, when counting began. Then a job that never succeeds is noticed, too.
    succeeded: Monotonic,
}

/// How often something took how long.
#[derive(Debug, Clone, Copy)]
struct Histogram {
    bounds: &'static [f64; 10],
    /// How many took at most as long as the bound of the same place, and longer than the one before.
    counts: [u64; 10],
    sum: f64,
    /// All of them, those longer than every bound among them.
    count: u64,
}

impl Metrics {
    /// Counts nothing yet.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            jobs: Mutex::default(),
            answers: Mutex::new([Histogram::new(&ANSWERS); REQUESTS.len()]),
            unanswered: Mutex::default(),
            refused: AtomicUsize::new(0),
            is_connected: AtomicBool::new(false),
        }
    }

    /// Counts this job from now on.
    pub(super) fn add(&self, job: &JobName) {
        let now = self.clock.monotonic();
        self.lock().entry(job.clone()).or_insert_with(|| Tally::new(now));
    }

    /// Counts it no longer.
    pub(super) fn remove(&self, job: &JobName) {
        self.lock().remove(job);
    }

    /// So many jobs of the registry are not run here.
    pub(super) fn refuses(&self, jobs: usize) {
        self.refused.store(jobs, Ordering::Relaxed);
    }

    /// The registry was asked, and took so long.
    pub(super) fn answered(&self, request: Request, is_answered: bool, took: Duration) {
        let place = request as usize;
        if is_answered {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers[place].add(took.as_secs_f64());
        } else {
            self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)[place] += 1;
        }
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
        self.registry(&mut page);

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
            "elasticjob_missed_fires_total",
            "counter",
            "Fires that were due and are left out: nobody was there, or the one before was not over and the job does not make up for it.",
        );
        for (job, tally) in &*jobs {
            let labels = [("job_name", job.as_str())];
            page.line("elasticjob_missed_fires_total", &labels, tally.missed);
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
            let labels = [("job_name", job.as_str())];
            tally.lateness.print("elasticjob_lateness_seconds", labels, &mut page);
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

    fn registry(&self, page: &mut Page) {
        page.head(
            "elasticjob_jobs_refused",
            "gauge",
            "Scripts and requests in the registry that this worker has no right to run.",
        );
        page.line("elasticjob_jobs_refused", &[], self.refused.load(Ordering::Relaxed));
        page.head(
            "elasticjob_registry_request_seconds",
            "histogram",
            "How long the registry took to answer: read, write, sync.",
        );
        let answers = *self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for (request, answers) in REQUESTS.iter().zip(answers) {
            let labels = [("request", *request)];
            answers.print("elasticjob_registry_request_seconds", labels, page);
        }
        page.head(
            "elasticjob_registry_unanswered_total",
            "counter",
            "Requests that the registry did not answer.",
        );
        let unanswered = *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        for (request, unanswered) in REQUESTS.iter().zip(unanswered) {
            let labels = [("request", *request)];
            page.line("elasticjob_registry_unanswered_total", &labels, unanswered);
        }
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
            tally.lateness.add(late);
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

    fn missed(&self, job: &JobName, fires: usize) {
        if let Some(tally) = self.lock().get_mut(job) {
            tally.missed += fires;
        }
    }
}

impl Tally {
    fn new(now: Monotonic) -> Self {
        Self {
            fires: [0; REASONS.len()],
            missed: 0,
            outcomes: [0; OUTCOMES.len()],
            running: 0,
            lateness: Histogram::new(&BUCKETS),
            succeeded: now,
        }
    }
}

impl Histogram {
    fn new(bounds: &'static [f64; 10]) -> Self {
        Self { bounds, counts: [0; 10], sum: 0.0, count: 0 }
    }

    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if let Some(place) = self.bounds.iter().position(|bound| value <= *bound) {
            self.counts[place] += 1;
        }
    }

    fn print(&self, name: &str, [label]: [(&str, &str); 1], page: &mut Page) {
        let (bucket, mut so_far) = (format!("{name}_bucket"), 0);
        for (bound, count) in self.bounds.iter().zip(self.counts) {
            so_far += count;
            page.line(&bucket, &[label, ("le", &*bound.to_string())], so_far);
        }
        page.line(&bucket, &[label, ("le", "+Inf")], self.count);
        page.line(&format!("{name}_sum"), &[label], self.sum);
        page.line(&format!("{name}_count"), &[label], self.count);
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
        let metrics = Metrics::new(Arc::new(SystemClock));
        metrics.add(&late.shards[0].job);
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
        metrics.missed(&late.shards[0].job, 3);
        says("elasticjob_missed_fires_total{JOB} 3");
        metrics.answered(Request::Write, true, Duration::from_millis(3));
        metrics.answered(Request::Write, false, Duration::from_secs(9));
        says("elasticjob_registry_request_seconds_bucket{request=\"write\",le=\"0.0025\"} 0");
        says("elasticjob_registry_request_seconds_bucket{request=\"write\",le=\"0.005\"} 1");
        says("elasticjob_registry_request_seconds_count{request=\"write\"} 1");
        says("elasticjob_registry_unanswered_total{request=\"write\"} 1");
        metrics.remove(&late.shards[0].job);
        assert!(
            !metrics.text(true, None).contains("job_name"),
            "what is left is counted no longer"
        );
    }
}
