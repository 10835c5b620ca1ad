//! What happens on this node, told to its history.
//!
//! * **Attempts** are told by whoever tries them ([`Observer`]): each begins and ends, retries included.
//! * **What they print** comes from scripts ([`Output`]) and, if the program has the layer for it, from what handlers log.
//! * **Status traces** are the ancestor's, in its words and at its moments: an instance's part of a run is staged, runs, and is over.
//! * **What will not run** is told by whoever decides that.
//!
//! A node without a history has none of this: nothing is built, looked up or copied for it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use jiff::Timestamp;
use tracing::Instrument;

use crate::{
    coordination::member,
    execution::{Failure, Handler, Observer, Outcome, Output, Ran, Stream},
    history::{
        self, AttemptId, Ended, Ending, Event, Lost, Missed, OutputBuffer, OutputBuffers,
        Recording, Source, Started, Status, StatusState, Why,
    },
    job::{JobName, RunId, Shard, TaskId},
    runtime::Clock,
};

/// What happens on this node, told to its history, if it has one.
#[derive(Clone, Default)]
pub(super) struct Chronicle(Option<Arc<Book>>);

struct Book {
    recording: Recording,
    clock: Arc<dyn Clock>,
    host: Arc<str>,
    is_traced: bool,
    notebooks: Arc<OutputBuffers>,
    /// Attempts that have begun and not ended.
    open: Mutex<HashMap<AttemptId, Open>>,
    /// Jobs whose last fire had nothing for this instance.
    idle: Mutex<HashSet<JobName>>,
}

#[derive(Clone)]
struct Open {
    started: Arc<Started>,
    notebook: Arc<OutputBuffer>,
}

impl Chronicle {
    /// Tells this recording, with at most so many bytes of what an attempt prints, and the trace it is in if somebody else knows that, too.
    pub(super) fn new(
        recording: Recording,
        max_output: usize,
        is_traced: bool,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let notebooks = OutputBuffers::new(recording.clone(), Arc::clone(clock), max_output);
        let host = rustix::system::uname().nodename().to_string_lossy().into();
        let (clock, open, idle) = (Arc::clone(clock), Mutex::default(), Mutex::default());
        Self(Some(Arc::new(Book { recording, clock, host, is_traced, notebooks, open, idle })))
    }

    /// Tells what is printed while it is printed. For ever, if there is a history.
    pub(super) async fn tell(self) {
        if let Some(book) = self.0 {
            Arc::clone(&book.notebooks).flush_periodically().await;
        }
    }

    /// Who is told about attempts.
    pub(super) fn observer(&self) -> Arc<dyn Observer> {
        match &self.0 {
            Some(book) => Arc::clone(book) as Arc<dyn Observer>,
            None => Arc::new(()),
        }
    }

    /// Who is told what scripts print: the history, and whoever was told before.
    pub(super) fn output(&self, other: Arc<dyn Output>) -> Arc<dyn Output> {
        match &self.0 {
            Some(book) => Arc::new(Both { book: Arc::clone(book), other }),
            None => other,
        }
    }

    /// The handler, and what it logs is its shard's.
    pub(super) fn over(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        match &self.0 {
            Some(book) => Arc::new(Noted { book: Arc::clone(book), handler }),
            None => handler,
        }
    }

    /// This instance is about to run these shards.
    pub(super) fn staged(&self, run: &RunId, task: &TaskId) {
        if let Some(book) = &self.0 {
            book.idle().remove(&task.job);
        }
        self.begin(run, task);
    }

    fn begin(&self, run: &RunId, task: &TaskId) {
        self.status(run, task, StatusState::Staging, || {
            format!("Job '{}' execute begin.", task.job)
        });
    }

    /// It runs them.
    pub(super) fn runs(&self, run: &RunId, task: &TaskId) {
        self.status(run, task, StatusState::Running, String::new);
    }

    /// They have ended.
    pub(super) fn ran(&self, run: &RunId, task: &TaskId, ran: &[Ran]) {
        if self.0.is_some() {
            let (state, message) = verdict(ran);
            self.status(run, task, state, || message);
        }
    }

    /// Of this run there is nothing for this instance. Told once, until there is something again: the ancestor tells it every time, and most of its rows say that.
    pub(super) fn nothing(&self, run: &RunId, task: &TaskId) {
        let is_told = self.0.as_ref().is_none_or(|book| !book.idle().insert(task.job.clone()));
        if is_told {
            return;
        }
        self.begin(run, task);
        self.status(run, task, StatusState::Finished, || {
            format!("Sharding item for job '{}' is empty.", task.job)
        });
    }

    /// Whoever ran this is gone.
    pub(super) fn lost(&self, lost: member::Lost) {
        if let Some(book) = &self.0 {
            let member::Lost { run, item, instance, token } = lost;
            let at = book.clock.now();
            book.recording.record(Event::Lost(Lost { run, item, instance, token, at }));
        }
    }

    /// It was due while the last run was not over: it runs right after.
    pub(super) fn misfired(&self, run: &RunId, task: impl FnOnce() -> TaskId) {
        if self.0.is_none() {
            return;
        }
        let task = task();
        self.staged(run, &task);
        self.status(run, &task, StatusState::Finished, || {
            format!(
                "Previous job '{}' - shardingItems '{:?}' is still running, misfired job will start after previous job completed.",
                task.job, task.items
            )
        });
    }

    /// It was due while the last run was not over, and is left out.
    pub(super) fn skipped(&self, job: &JobName, due_at: Timestamp) {
        self.missed(job, (due_at, due_at, 1), Why::Skipped);
    }

    /// These were due while nobody was there, and are left out.
    pub(super) fn left_out(&self, job: &JobName, which: (Timestamp, Timestamp, u64)) {
        self.missed(job, which, Why::NobodyThere);
    }

    fn missed(&self, job: &JobName, which: (Timestamp, Timestamp, u64), why: Why) {
        if let Some(book) = &self.0 {
            let (first, last, count) = which;
            let (job, at) = (job.clone(), book.clock.now());
            book.recording.record(Event::Missed(Missed { job, first, last, count, why, at }));
        }
    }

    fn status(
        &self,
        run: &RunId,
        task: &TaskId,
        state: StatusState,
        message: impl FnOnce() -> String,
    ) {
        if let Some(book) = &self.0 {
            let (run, task, at) = (run.clone(), task.clone(), book.clock.now());
            let message = message();
            book.recording.record(Event::Status(Status { run, task, state, message, at }));
        }
    }
}

/// What the ancestor says of it: a failure counts most, and is told as Java tells a map.
fn verdict(ran: &[Ran]) -> (StatusState, String) {
    let some = |is: fn(&Outcome) -> bool| ran.iter().any(|ran| is(&ran.outcome));
    let state = if some(Outcome::is_failure) {
        StatusState::Error
    } else if some(|outcome| matches!(outcome, Outcome::Fenced)) {
        StatusState::Lost
    } else if some(|outcome| matches!(outcome, Outcome::Cancelled { .. })) {
        StatusState::Killed
    } else {
        return (StatusState::Finished, String::new());
    };
    let failed = ran.iter().filter(|ran| !ran.outcome.is_done());
    let failed: Vec<String> =
        failed.map(|ran| format!("{}={}", ran.shard.item, ran.outcome)).collect();
    (state, format!("{{{}}}", failed.join(", ")))
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, HashMap<AttemptId, Open>> {
        // Nothing under this lock panics half way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, HashSet<JobName>> {
        // Nor under this one.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notebook(&self, shard: &Shard) -> Option<Arc<OutputBuffer>> {
        self.lock().get(&AttemptId::of(shard)).map(|open| Arc::clone(&open.notebook))
    }
}

impl Observer for Book {
    fn begins(&self, shard: &Shard) {
        let source = if shard.run.is_scheduled() {
            Source::Schedule
        } else {
            Source::Trigger { by: shard.triggered_by.clone() }
        };
        let mut started = Started::of(shard, source, Arc::clone(&self.host), self.clock.now());
        started.trace = self.is_traced.then(|| history::trace_id(&shard.run));
        let (id, started) = (started.id, Arc::new(started));
        let open = Open { started: Arc::clone(&started), notebook: self.notebooks.open(shard) };
        self.lock().insert(id, open);
        self.recording.record(Event::Started(started));
    }

    fn ended(&self, shard: &Shard, outcome: &Outcome) {
        let Some(Open { started, notebook }) = self.lock().remove(&AttemptId::of(shard)) else {
            return;
        };
        notebook.flush();
        let ending = match outcome {
            Outcome::Done => Ending::Done,
            Outcome::Failed { message, .. } => Ending::Failed(message.clone()),
            Outcome::TimedOut { .. } => Ending::TimedOut(outcome.to_string()),
            Outcome::Cancelled { .. } => Ending::Cancelled(outcome.to_string()),
            Outcome::Fenced => Ending::Fenced,
        };
        let at = self.clock.now();
        self.recording.record(Event::Ended(Ended { started, at, ending }));
    }
}

/// What scripts print goes to two.
struct Both {
    book: Arc<Book>,
    other: Arc<dyn Output>,
}

impl Output for Both {
    fn line(&self, shard: &Shard, stream: Stream, line: &str) {
        if let Some(notebook) = self.book.notebook(shard) {
            notebook.print(stream.as_str(), line);
        }
        self.other.line(shard, stream, line);
    }
}

/// A handler whose log records are its shard's.
struct Noted {
    book: Arc<Book>,
    handler: Arc<dyn Handler>,
}

#[async_trait]
impl Handler for Noted {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        let Some(notebook) = self.book.notebook(&shard) else {
            return self.handler.run(shard).await;
        };
        let number = shard.attempt.number.get();
        let attempt = async {
            // Made in here, so that whoever looks at spans learns whose it is. Of the highest level: a filter that hides it would hide whose what is
            // logged in tasks of its own is.
            let span = tracing::error_span!("attempt", number);
            self.handler.run(shard).instrument(span).await
        };
        notebook.capture(attempt).await
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
    fn a_failure_is_told_as_java_tells_a_map() {
        let job = Job::named("settle").unwrap().shards(3);
        let fire = Fire::scheduled(job.name.clone(), Timestamp::UNIX_EPOCH);
        let task: TaskId = "settle@-@0,1,2@-@READY@-@1.2.3.4@-@5".parse().unwrap();
        let ran = |outcomes: &[Outcome]| -> Vec<Ran> {
            (0..)
                .zip(outcomes)
                .map(|(item, outcome)| Ran {
                    shard: Shard::of(&job, &fire, task.clone(), item, FencingToken::new(1)),
                    outcome: outcome.clone(),
                })
                .collect()
        };
        let failed = Outcome::Failed { message: "no".into(), attempts: 2 };
        let cancelled = Outcome::Cancelled { reason: CancelReason::Requested };

        let told = |outcomes: &[Outcome]| verdict(&ran(outcomes));

        assert_eq!(told(&[Outcome::Done, Outcome::Done]), (StatusState::Finished, String::new()));
        assert_eq!(
            told(&[failed.clone(), Outcome::Done, Outcome::Fenced]).1,
            "{0=no, 2=ended after its lease was lost; another instance may have run it}"
        );
        assert_eq!(told(&[failed, Outcome::Fenced]).0, StatusState::Error);
        assert_eq!(told(&[cancelled.clone(), Outcome::Fenced]).0, StatusState::Lost);
        assert_eq!(told(&[cancelled, Outcome::Done]).0, StatusState::Killed);
    }
}
