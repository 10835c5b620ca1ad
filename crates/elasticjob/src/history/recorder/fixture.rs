//! Sample events for tests.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    history::{
        AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Event, FiresMissed, Line,
        MissedReason, OutputCut, OutputPrinted, Status, StatusState,
    },
    job::{Attempt, ExpectedShards, FencingToken, Fire, Job, Outcome, RunReason, Shard},
};

/// The shard of the run with this number, of a job with one shard.
pub(super) fn shard(number: i64) -> Shard {
    let job = Job::named("settle").unwrap();
    let due_at = Timestamp::from_second(1_773_828_000 + number).unwrap();
    let fire = Fire::scheduled(job.name.clone(), due_at);
    let task = "settle@-@0@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
    Shard::of(&job, &fire, task, 0, FencingToken::new(100 + number))
}

pub(super) fn start_of(number: i64) -> Arc<AttemptStarted> {
    let shard = shard(number);
    Arc::new(AttemptStarted::of(&shard, "host".into(), shard.due_at))
}

pub(super) fn started(number: i64) -> Event {
    Event::Started(start_of(number))
}

pub(super) fn done(number: i64) -> Event {
    ended(&start_of(number), Outcome::Succeeded, None)
}

pub(super) fn failed(number: i64) -> Event {
    ended(&start_of(number), Outcome::Failed, Some("no"))
}

fn ended(started: &Arc<AttemptStarted>, outcome: Outcome, message: Option<&str>) -> Event {
    let (started, message) = (Arc::clone(started), message.map(ToOwned::to_owned));
    Event::Ended(AttemptEnded { at: started.at, started, outcome, message })
}

pub(super) fn printed(number: i64, part: u32, text: &str) -> Event {
    let shard = shard(number);
    Event::Printed(OutputPrinted {
        id: AttemptId::of(&shard),
        run: shard.run.clone(),
        item: 0,
        part,
        lines: vec![Line { at: shard.due_at, stream: "stdout", text: text.into() }],
    })
}

pub(super) fn one_of_each() -> Vec<Event> {
    let plain = shard(3);
    let retry = plain.clone().attempt(Attempt::FIRST.next(RunReason::Retry));
    let started = AttemptStarted {
        triggered_by: Some("ann \"the\" admin\n".into()),
        trace: Some("0af7651916cd43dd8448eb211c80319c".into()),
        expected: Some(ExpectedShards { tracked: 2, untracked: 1 }),
        ..AttemptStarted::of(&retry, "主机".into(), plain.due_at)
    };
    let started = Arc::new(started);
    let at = plain.due_at;
    let mut events = vec![Event::Started(Arc::clone(&started))];
    let results = [
        (Outcome::Succeeded, None),
        (Outcome::Failed, Some("two\nlines")),
        (Outcome::TimedOut, Some("took longer than 1s")),
        (Outcome::Cancelled, Some("cancelled")),
        (Outcome::Fenced, Some("lease lost")),
    ];
    events.extend(results.map(|(outcome, message)| ended(&started, outcome, message)));
    events.push(Event::Lost(AttemptLost {
        run: plain.run.clone(),
        item: 2,
        instance: plain.task.instance.clone(),
        token: FencingToken::new(7),
        at,
    }));
    events.push(Event::Status(Status {
        run: plain.run.clone(),
        task: plain.task.clone(),
        state: StatusState::Error,
        message: "{0=no}".into(),
        at,
    }));
    let job = plain.job.clone();
    events.push(Event::Missed(FiresMissed {
        job,
        first: at,
        last: at,
        count: 1,
        reason: MissedReason::NoInstance,
        at,
    }));
    events.push(printed(3, 0, "tab\there"));
    let id = AttemptId::of(&plain);
    events.push(Event::Cut(OutputCut {
        id,
        run: plain.run.clone(),
        item: 0,
        from: 1,
        to: 4,
        bytes: 99,
    }));
    events
}
