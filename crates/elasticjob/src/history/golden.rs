//! One event for every word that history stores. What becomes of them is frozen by [`recorder`](super::recorder) and `store`.
//!
//! Values are written out field by field and enums are walked variant by variant, so that an addition does not compile until it is frozen, too.

use std::{iter::successors, num::NonZeroU32, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Event, FiresMissed, Line, MissedReason,
    OutputCut, OutputPrinted, Status, StatusState,
};
use crate::job::{
    Attempt, ExpectedShards, FencingToken, InstanceId, Outcome, RunId, RunReason, TaskId,
};

/// Fixed messages, so that rewording the library's own messages does not change the golden files.
pub(super) const FAILED: &str = "order 4711 not found";
pub(super) const TIMED_OUT: &str = "took longer than 5s";
pub(super) const CANCELLED: &str = "cancelled by ann";
pub(super) const FENCED: &str = "a sentence";
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
fn started(number: i64, reason: RunReason, triggered_by: Option<&str>) -> Arc<AttemptStarted> {
    let run = match reason {
        RunReason::Trigger => RunId::triggered(number.try_into().unwrap()),
        _ => RunId::scheduled("settle".parse().unwrap(), due(number)),
    };
    let attempt = Attempt { number: NonZeroU32::new(2).unwrap(), reason };
    let token = FencingToken::new(100 + number);
    Arc::new(AttemptStarted {
        id: AttemptId::new(&run, 1, attempt, token),
        job: "settle".parse().unwrap(),
        run,
        due_at: due(number),
        triggered_by: triggered_by.map(ToOwned::to_owned),
        item: 1,
        total: 2.try_into().unwrap(),
        // As runs are recorded that began before shards were counted.
        expected: (number >= 30).then_some(ExpectedShards { tracked: 1, untracked: 1 }),
        attempt,
        token,
        task: task(),
        host: "host-7".into(),
        at: later(number, 7),
        trace: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
    })
}

fn ended(started: Arc<AttemptStarted>, number: i64, outcome: Outcome) -> Event {
    let message = match outcome {
        Outcome::Succeeded | Outcome::Lost => None,
        Outcome::Failed => Some(FAILED),
        Outcome::TimedOut => Some(TIMED_OUT),
        Outcome::Cancelled => Some(CANCELLED),
        Outcome::Fenced => Some(FENCED),
    };
    let message = message.map(ToOwned::to_owned);
    Event::Ended(AttemptEnded { started, at: later(number, 57), outcome, message })
}

/// A run for every reason, source and outcome, one that is still running, and events of every other kind.
pub(super) fn events() -> Vec<Event> {
    let reasons = successors(Some(RunReason::Schedule), |reason| match reason {
        RunReason::Schedule => Some(RunReason::Misfire),
        RunReason::Misfire => Some(RunReason::Failover),
        RunReason::Failover => Some(RunReason::Retry),
        RunReason::Retry => Some(RunReason::CatchUp),
        // Triggered runs follow below.
        RunReason::CatchUp | RunReason::Trigger => None,
    });
    let outcomes = successors(Some(Outcome::Succeeded), |outcome| match outcome {
        Outcome::Succeeded => Some(Outcome::Failed),
        Outcome::Failed => Some(Outcome::TimedOut),
        Outcome::TimedOut => Some(Outcome::Cancelled),
        Outcome::Cancelled => Some(Outcome::Fenced),
        // No instance records its own attempts as lost.
        Outcome::Fenced | Outcome::Lost => None,
    });
    let sources = [
        (RunReason::Schedule, None),
        (RunReason::Trigger, Some("ann")),
        (RunReason::Trigger, None),
    ];
    let mut events = Vec::new();
    for (number, reason) in (10..).zip(reasons) {
        let started = started(number, reason, None);
        events.push(Event::Started(Arc::clone(&started)));
        events.push(ended(started, number, Outcome::Succeeded));
    }
    for (number, outcome) in (20..).zip(outcomes) {
        events.push(ended(started(number, RunReason::Schedule, None), number, outcome));
    }
    for (number, (reason, by)) in (30..).zip(sources) {
        events.push(Event::Started(started(number, reason, by)));
    }
    let gone = started(40, RunReason::Schedule, None);
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
    let reasons = successors(Some(MissedReason::Skipped), |reason| match reason {
        MissedReason::Skipped => Some(MissedReason::NoInstance),
        MissedReason::NoInstance => Some(MissedReason::Coalesced),
        MissedReason::Coalesced => Some(MissedReason::Unreadable),
        MissedReason::Unreadable => Some(MissedReason::NotStarted),
        MissedReason::NotStarted => None,
    });
    reasons.map(|reason| {
        let job = "settle".parse().unwrap();
        Event::Missed(FiresMissed {
            job,
            first: due(50),
            last: due(55),
            count: 2,
            reason,
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
