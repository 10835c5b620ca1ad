//! One event for every word that history stores. What becomes of them is frozen by [`recorder`](super::recorder) and `store`.
//!
//! Values are written out field by field and enums are walked variant by variant, so that an addition does not compile until it is frozen, too.

use std::{iter::successors, num::NonZeroU32, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Ending, Event, FiresMissed, Line,
    MissedReason, OutputCut, OutputPrinted, Source, Status, StatusState,
};
use crate::job::{Attempt, FencingToken, InstanceId, RunId, RunReason, TaskId};

/// Fixed messages, so that rewording the library's own messages does not change the golden files.
pub(super) const FAILED: &str = "order 4711 not found";
pub(super) const TIMED_OUT: &str = "took longer than 5s";
pub(super) const CANCELLED: &str = "cancelled by ann";
pub(super) const STATUS: &str = "{0=no}";

const STREAMS: [&str; 7] = ["stdout", "stderr", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

fn instance() -> InstanceId {
    InstanceId::new([10, 0, 0, 7].into(), 4711, 0x9f86_d081)
}

fn task() -> TaskId {
    TaskId { job: "settle".parse().unwrap(), items: vec![0, 1], instance: instance() }
}

fn due(number: i64) -> Timestamp {
    Timestamp::from_second(1_773_828_000 + number).unwrap()
}

fn later(number: i64, millis: i64) -> Timestamp {
    due(number) + SignedDuration::from_millis(millis)
}

/// The beginning of a run, by its number.
fn started(number: i64, reason: RunReason, source: Source) -> Arc<AttemptStarted> {
    let run = match source {
        Source::Schedule => RunId::scheduled("settle".parse().unwrap(), due(number)),
        Source::Trigger { .. } => RunId::triggered(number.try_into().unwrap()),
    };
    let attempt = Attempt { number: NonZeroU32::new(2).unwrap(), reason };
    let token = FencingToken::new(100 + number);
    Arc::new(AttemptStarted {
        id: AttemptId::new(&run, 1, attempt, token),
        job: "settle".parse().unwrap(),
        run,
        due_at: due(number),
        source,
        item: 1,
        total: 2.try_into().unwrap(),
        attempt,
        token,
        task: task(),
        host: "host-7".into(),
        at: later(number, 7),
        trace: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
    })
}

fn ended(started: Arc<AttemptStarted>, number: i64, ending: Ending) -> Event {
    Event::Ended(AttemptEnded { started, at: later(number, 57), ending })
}

/// A run for every reason, source and outcome, one that is still running, and events of every other kind.
pub(super) fn events() -> Vec<Event> {
    let reasons = successors(Some(RunReason::Due), |reason| match reason {
        RunReason::Due => Some(RunReason::Misfire),
        RunReason::Misfire => Some(RunReason::Failover),
        RunReason::Failover => Some(RunReason::Retry),
        RunReason::Retry => Some(RunReason::CatchUp),
        RunReason::CatchUp => None,
    });
    let endings = successors(Some(Ending::Done), |ending| match ending {
        Ending::Done => Some(Ending::Failed(FAILED.to_owned())),
        Ending::Failed(_) => Some(Ending::TimedOut(TIMED_OUT.to_owned())),
        Ending::TimedOut(_) => Some(Ending::Cancelled(CANCELLED.to_owned())),
        Ending::Cancelled(_) => Some(Ending::Fenced),
        Ending::Fenced => None,
    });
    let sources = successors(Some(Source::Schedule), |source| match source {
        Source::Schedule => Some(Source::Trigger { by: Some("ann".to_owned()) }),
        Source::Trigger { by: Some(_) } => Some(Source::Trigger { by: None }),
        Source::Trigger { by: None } => None,
    });
    let mut events = Vec::new();
    for (number, reason) in (10..).zip(reasons) {
        let started = started(number, reason, Source::Schedule);
        events.push(Event::Started(Arc::clone(&started)));
        events.push(ended(started, number, Ending::Done));
    }
    for (number, ending) in (20..).zip(endings) {
        events.push(ended(started(number, RunReason::Due, Source::Schedule), number, ending));
    }
    for (number, source) in (30..).zip(sources) {
        events.push(Event::Started(started(number, RunReason::Due, source)));
    }
    let gone = started(40, RunReason::Due, Source::Schedule);
    events.push(Event::Started(Arc::clone(&gone)));
    events.push(Event::Lost(AttemptLost {
        run: gone.run.clone(),
        item: gone.item,
        instance: instance(),
        token: FencingToken::new(gone.token.get() + 1),
        at: later(40, 500),
    }));
    events.extend(statuses(&gone.run));
    events.extend(missed());
    events.extend(output(&gone));
    events
}

fn statuses(run: &RunId) -> impl Iterator<Item = Event> {
    let states = successors(Some(StatusState::Staging), |state| match state {
        StatusState::Staging => Some(StatusState::Running),
        StatusState::Running => Some(StatusState::Finished),
        StatusState::Finished => Some(StatusState::Error),
        StatusState::Error => Some(StatusState::Killed),
        StatusState::Killed => Some(StatusState::Lost),
        StatusState::Lost => None,
    });
    states.map(|state| {
        let (run, message) = (run.clone(), STATUS.to_owned());
        Event::Status(Status { run, task: task(), state, message, at: due(40) })
    })
}

fn missed() -> impl Iterator<Item = Event> {
    let reasons = successors(Some(MissedReason::Skipped), |why| match why {
        MissedReason::Skipped => Some(MissedReason::NobodyThere),
        MissedReason::NobodyThere => None,
    });
    reasons.map(|why| {
        let job = "settle".parse().unwrap();
        Event::Missed(FiresMissed {
            job,
            first: due(50),
            last: due(55),
            count: 2,
            why,
            at: due(59),
        })
    })
}

fn output(started: &AttemptStarted) -> [Event; 2] {
    let lines = STREAMS.into_iter().map(|stream| Line {
        at: started.at,
        stream,
        text: "settling".to_owned(),
    });
    let (id, run, item) = (started.id, started.run.clone(), started.item);
    [
        Event::Printed(OutputPrinted {
            id,
            run: run.clone(),
            item,
            part: 0,
            lines: lines.collect(),
        }),
        Event::Cut(OutputCut { id, run, item, from: 1, to: 4, bytes: 99 }),
    ]
}
