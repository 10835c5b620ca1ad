//! Records what happens on this node in its history.
//!
//! * **Attempts**: the runner reports the start and the end of each attempt, retries included ([`Observer`]).
//! * **Output**: lines that scripts print ([`Output`]) and, if the program installs the tracing layer for it, the log records of handlers.
//! * **Status traces**: Java ElasticJob's, with its states and texts and at the same moments: an instance's part of a run is staged, runs, and is
//!   finished.
//! * **Missed fires**: the code that decides not to run a fire reports it.
//!
//! A node without a history does none of this: it builds, looks up and copies nothing for it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tracing::Instrument;

use crate::{
    coordination::member,
    execution::{AttemptResult, Failure, Handler, Observer, Output, ShardResult, Stream},
    history::{
        self, AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Event, FiresMissed,
        MissedReason, OutputBuffer, OutputBuffers, Recording, Status, StatusState,
    },
    job::{JobName, Outcome, RunId, RunReason, Shard, TaskId},
    runtime::Clock,
    schedule::Missed,
};

/// Records what happens on this node in its history, if it has one. Clones record to the same history.
#[derive(Clone, Default)]
pub(super) struct HistoryTap(Option<Arc<ActiveTap>>);

struct ActiveTap {
    recording: Recording,
    clock: Arc<dyn Clock>,
    host: Arc<str>,
    is_traced: bool,
    buffers: Arc<OutputBuffers>,
    /// Attempts that have started and not ended.
    open_attempts: Mutex<HashMap<AttemptId, OpenAttempt>>,
    /// Jobs whose last fire had no shard for this instance.
    idle_jobs: Mutex<HashSet<JobName>>,
}

#[derive(Clone)]
struct OpenAttempt {
    started: Arc<AttemptStarted>,
    buffer: Arc<OutputBuffer>,
}

impl HistoryTap {
    /// Records to `recording`, at most `max_output` bytes of each attempt's output. If `is_traced`, attempts carry the id of the trace that a span
    /// exporter exports them in.
    pub(super) fn new(
        recording: Recording,
        max_output: usize,
        is_traced: bool,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let buffers = OutputBuffers::new(recording.clone(), Arc::clone(clock), max_output);
        let host = rustix::system::uname().nodename().to_string_lossy().into();
        let (clock, open_attempts, idle_jobs) =
            (Arc::clone(clock), Mutex::default(), Mutex::default());
        Self(Some(Arc::new(ActiveTap {
            recording,
            clock,
            host,
            is_traced,
            buffers,
            open_attempts,
            idle_jobs,
        })))
    }

    /// Records output periodically while attempts run. With a history, it never returns.
    pub(super) async fn flush_output(self) {
        if let Some(tap) = self.0 {
            Arc::clone(&tap.buffers).flush_periodically().await;
        }
    }

    /// The observer that records attempts.
    pub(super) fn observer(&self) -> Arc<dyn Observer> {
        match &self.0 {
            Some(tap) => Arc::clone(tap) as Arc<dyn Observer>,
            None => Arc::new(()),
        }
    }

    /// An output that passes script lines to the history and to `other`.
    pub(super) fn output(&self, other: Arc<dyn Output>) -> Arc<dyn Output> {
        match &self.0 {
            Some(tap) => Arc::new(TeeOutput { tap: Arc::clone(tap), other }),
            None => other,
        }
    }

    /// Wraps a handler so that its log records become output of its attempt.
    pub(super) fn wrap_handler(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        match &self.0 {
            Some(tap) => Arc::new(CapturingHandler { tap: Arc::clone(tap), handler }),
            None => handler,
        }
    }

    /// Records that this instance runs these shards.
    pub(super) fn record_start(&self, run: &RunId, task: &TaskId, reason: RunReason) {
        // As in Java: a misfire run belongs to the status trace of the run before it.
        if reason != RunReason::Misfire {
            self.record_staging(run, task);
        }
        self.record_status(run, task, StatusState::Running, String::new);
    }

    /// Records that this instance is about to run these shards, and so has shards of the job.
    fn record_staging(&self, run: &RunId, task: &TaskId) {
        if let Some(tap) = &self.0 {
            tap.idle_jobs().remove(&task.job);
        }
        self.record_staged(run, task);
    }

    /// Records Java's status only.
    fn record_staged(&self, run: &RunId, task: &TaskId) {
        self.record_status(run, task, StatusState::Staging, || {
            format!("Job '{}' execute begin.", task.job)
        });
    }

    /// Records how this instance's part of a run ended.
    pub(super) fn record_finished(&self, run: &RunId, task: &TaskId, ran: &[ShardResult]) {
        if self.0.is_some() {
            let (state, message) = java_status(ran);
            self.record_status(run, task, state, || message);
        }
    }

    /// Records that a run has no shard for this instance. Recorded once until the instance has shards again; Java records it for every fire, so
    /// that most of its rows say only this.
    pub(super) fn record_no_shards(&self, run: &RunId, task: &TaskId) {
        let is_recorded =
            self.0.as_ref().is_none_or(|tap| !tap.idle_jobs().insert(task.job.clone()));
        if is_recorded {
            return;
        }
        self.record_staged(run, task);
        self.record_status(run, task, StatusState::Finished, || {
            format!("Sharding item for job '{}' is empty.", task.job)
        });
    }

    /// Records that the instance that ran a shard is gone.
    pub(super) fn record_lost(&self, lost: member::LostShard) {
        if let Some(tap) = &self.0 {
            let member::LostShard { run, item, instance, token } = lost;
            let at = tap.clock.now();
            tap.recording.record(Event::Lost(AttemptLost { run, item, instance, token, at }));
        }
    }

    /// Records a fire that came due while the previous run was still going, and runs right after it.
    pub(super) fn record_misfire(&self, run: &RunId, task: impl FnOnce() -> TaskId) {
        if self.0.is_none() {
            return;
        }
        let task = task();
        self.record_staging(run, &task);
        self.record_status(run, &task, StatusState::Finished, || {
            format!(
                "Previous job '{}' - shardingItems '{:?}' is still running, misfired job will start after previous job completed.",
                task.job, task.items
            )
        });
    }

    /// Records fires that get no run of their own.
    pub(super) fn record_missed(&self, job: &JobName, fires: Missed, reason: MissedReason) {
        if let Some(tap) = &self.0 {
            let Missed { first, last, count } = fires;
            let (job, at, count) = (job.clone(), tap.clock.now(), count as u64);
            tap.recording.record(Event::Missed(FiresMissed {
                job,
                first,
                last,
                count,
                reason,
                at,
            }));
        }
    }

    fn record_status(
        &self,
        run: &RunId,
        task: &TaskId,
        state: StatusState,
        message: impl FnOnce() -> String,
    ) {
        if let Some(tap) = &self.0 {
            let (run, task, at) = (run.clone(), task.clone(), tap.clock.now());
            let message = message();
            tap.recording.record(Event::Status(Status { run, task, state, message, at }));
        }
    }
}

/// Java ElasticJob's state and message for these outcomes. A failure takes precedence; the message has the form of a Java map.
fn java_status(ran: &[ShardResult]) -> (StatusState, String) {
    let any = |is: fn(Outcome) -> bool| ran.iter().any(|ran| is(ran.outcome));
    let state = if any(Outcome::is_failure) {
        StatusState::Error
    } else if any(|outcome| matches!(outcome, Outcome::Fenced | Outcome::Lost)) {
        StatusState::Lost
    } else if any(|outcome| outcome == Outcome::Cancelled) {
        StatusState::Killed
    } else {
        return (StatusState::Finished, String::new());
    };
    let failed = ran.iter().filter(|ran| !ran.outcome.is_success());
    let failed: Vec<String> =
        failed.map(|ran| format!("{}={}", ran.shard.item, ran.text())).collect();
    (state, format!("{{{}}}", failed.join(", ")))
}

impl ActiveTap {
    fn open_attempts(&self) -> MutexGuard<'_, HashMap<AttemptId, OpenAttempt>> {
        // No code panics while it holds this lock, so a poisoned map is consistent.
        self.open_attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_jobs(&self) -> MutexGuard<'_, HashSet<JobName>> {
        // As above.
        self.idle_jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer(&self, shard: &Shard) -> Option<Arc<OutputBuffer>> {
        self.open_attempts().get(&AttemptId::of(shard)).map(|open| Arc::clone(&open.buffer))
    }
}

impl Observer for ActiveTap {
    fn attempt_started(&self, shard: &Shard) {
        let mut started = AttemptStarted::of(shard, Arc::clone(&self.host), self.clock.now());
        started.trace = self.is_traced.then(|| history::trace_id(&shard.run));
        let (id, started) = (started.id, Arc::new(started));
        let open = OpenAttempt { started: Arc::clone(&started), buffer: self.buffers.open(shard) };
        self.open_attempts().insert(id, open);
        self.recording.record(Event::Started(started));
    }

    fn attempt_ended(&self, shard: &Shard, result: &AttemptResult) {
        let Some(OpenAttempt { started, buffer }) =
            self.open_attempts().remove(&AttemptId::of(shard))
        else {
            return;
        };
        buffer.flush();
        let (at, outcome, message) = (self.clock.now(), result.outcome, result.message.clone());
        self.recording.record(Event::Ended(AttemptEnded { started, at, outcome, message }));
    }
}

/// Passes script lines to the history and to another output.
struct TeeOutput {
    tap: Arc<ActiveTap>,
    other: Arc<dyn Output>,
}

impl Output for TeeOutput {
    fn line(&self, shard: &Shard, stream: Stream, line: &str) {
        if let Some(buffer) = self.tap.buffer(shard) {
            buffer.print(stream.as_str(), line);
        }
        self.other.line(shard, stream, line);
    }
}

/// Captures the log records of a handler as output of its attempt.
struct CapturingHandler {
    tap: Arc<ActiveTap>,
    handler: Arc<dyn Handler>,
}

#[async_trait]
impl Handler for CapturingHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        let Some(buffer) = self.tap.buffer(&shard) else {
            return self.handler.run(shard).await;
        };
        let number = shard.attempt.number.get();
        let attempt = async {
            // Created inside the capture, so that the tracing layer can attribute the span to the attempt. It has the highest level, because a filter
            // that hides the span would also lose the attempt of records that the handler logs in its own tasks.
            let span = tracing::error_span!("attempt", number);
            self.handler.run(shard).instrument(span).await
        };
        buffer.capture(attempt).await
    }

    fn ends_when_dropped(&self) -> bool {
        self.handler.ends_when_dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::{FencingToken, Fire, Job},
        runtime::CancelReason,
    };

    #[test]
    fn failure_message_has_the_form_of_a_java_map() {
        let job = Job::named("settle").unwrap().shards(3);
        let fire = Fire::scheduled(job.name.clone(), jiff::Timestamp::UNIX_EPOCH);
        let task: TaskId = "settle@-@0,1,2@-@READY@-@1.2.3.4@-@5".parse().unwrap();
        let ran = |results: &[AttemptResult]| -> Vec<ShardResult> {
            (0..)
                .zip(results)
                .map(|(item, result)| {
                    let shard = Shard::of(&job, &fire, task.clone(), item, FencingToken::new(1));
                    ShardResult::new(shard, result.clone())
                })
                .collect()
        };
        let failed = AttemptResult::failed(&Failure::new("no"));
        let cancelled = AttemptResult::cancelled(CancelReason::Requested);
        let (done, fenced) = (AttemptResult::succeeded(), AttemptResult::fenced());

        let status = |results: &[AttemptResult]| java_status(&ran(results));

        assert_eq!(status(&[done.clone(), done.clone()]), (StatusState::Finished, String::new()));
        assert_eq!(
            status(&[failed.clone(), done.clone(), fenced.clone()]).1,
            "{0=no, 2=ended after its lease was lost; another instance may have run it}"
        );
        assert_eq!(status(&[failed, fenced.clone()]).0, StatusState::Error);
        assert_eq!(status(&[cancelled.clone(), fenced]).0, StatusState::Lost);
        assert_eq!(status(&[cancelled, done]).0, StatusState::Killed);
    }
}
