//! Sample events.

use std::sync::Arc;

use elasticjob::{
    Job, Shard,
    history::{
        AttemptEnded, AttemptStarted, Event, Line, OutputCut, OutputPrinted, Status, StatusState,
    },
    job::{Attempt, ExpectedShards, FencingToken, Fire, Outcome, RunId, RunReason, TaskId},
};
use jiff::{SignedDuration, Timestamp};

/// The start of all samples.
pub(crate) fn noon() -> Timestamp {
    "2026-03-29T12:00:00Z".parse().unwrap()
}

pub(crate) fn after(millis: i64) -> Timestamp {
    noon() + SignedDuration::from_millis(millis)
}

/// Builds the events of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct SampleAttempt {
    pub(crate) job: String,
    pub(crate) due: Timestamp,
    pub(crate) shards: u32,
    pub(crate) item: u32,
    pub(crate) attempt: Attempt,
    pub(crate) token: i64,
    pub(crate) instance: String,
    /// Start delay in milliseconds.
    pub(crate) late: i64,
    pub(crate) trigger: Option<(RunId, Option<String>)>,
    pub(crate) expected: Option<ExpectedShards>,
}

impl SampleAttempt {
    /// The first attempt of the first of two shards of a run that is due `due` milliseconds after noon, with a start delay of seven milliseconds.
    pub(crate) fn of(job: &str, due: i64) -> Self {
        Self {
            job: job.to_owned(),
            due: after(due),
            shards: 2,
            item: 0,
            attempt: Attempt::FIRST,
            token: 100,
            instance: "10.0.0.7@-@4711-00000001".to_owned(),
            late: 7,
            trigger: None,
            expected: None,
        }
    }

    /// The run should have this many shards, and as many of Java ElasticJob.
    pub(crate) fn expecting(&self, tracked: u32, untracked: u32) -> Self {
        Self { expected: Some(ExpectedShards { tracked, untracked }), ..self.clone() }
    }

    pub(crate) fn item(&self, item: u32) -> Self {
        Self { item, ..self.clone() }
    }

    pub(crate) fn on(&self, instance: &str) -> Self {
        Self { instance: instance.to_owned(), ..self.clone() }
    }

    pub(crate) fn late(&self, late: i64) -> Self {
        Self { late, ..self.clone() }
    }

    pub(crate) fn again(&self, reason: RunReason, token: i64) -> Self {
        Self { attempt: self.attempt.next(reason), token, ..self.clone() }
    }

    pub(crate) fn triggered(&self, run: u128, by: Option<&str>) -> Self {
        let run = RunId::triggered(run);
        Self { trigger: Some((run, by.map(ToOwned::to_owned))), ..self.clone() }
    }

    pub(crate) fn run(&self) -> RunId {
        self.shard().run
    }

    pub(crate) fn task(&self) -> TaskId {
        format!("{}@-@{}@-@READY@-@{}", self.job, self.item, self.instance).parse().unwrap()
    }

    pub(crate) fn shard(&self) -> Shard {
        let job = Job::named(&self.job).unwrap().shards(self.shards);
        let fire = match &self.trigger {
            Some((run, by)) => {
                Fire::triggered(job.name.clone(), self.due, run.clone()).by(by.clone())
            }
            None => Fire::scheduled(job.name.clone(), self.due),
        };
        let token = FencingToken::new(self.token);
        Shard::of(&job, &fire, self.task(), self.item, token)
            .attempt(self.attempt)
            .expecting(self.expected)
    }

    fn start(&self) -> Arc<AttemptStarted> {
        let at = self.due + SignedDuration::from_millis(self.late);
        Arc::new(AttemptStarted::of(&self.shard(), "machine".into(), at))
    }

    pub(crate) fn started(&self) -> Event {
        Event::Started(self.start())
    }

    /// The end, `took` milliseconds after the start.
    pub(crate) fn ended(&self, took: i64, (outcome, message): (Outcome, Option<&str>)) -> Event {
        let started = self.start();
        let at = started.at + SignedDuration::from_millis(took);
        Event::Ended(AttemptEnded { started, at, outcome, message: message.map(ToOwned::to_owned) })
    }

    pub(crate) fn status(&self, state: StatusState, message: &str) -> Event {
        Event::Status(Status {
            run: self.run(),
            task: self.task(),
            state,
            message: message.to_owned(),
            at: self.due,
        })
    }

    pub(crate) fn printed(&self, part: u32, texts: &[&str]) -> Event {
        let shard = self.shard();
        let at = self.due + SignedDuration::from_secs(i64::from(part));
        let line = |text: &&str| Line { at, stream: "stdout", text: (*text).to_owned() };
        Event::Printed(OutputPrinted {
            id: elasticjob::history::AttemptId::of(&shard),
            run: shard.run,
            item: shard.item,
            part,
            lines: texts.iter().map(line).collect(),
        })
    }

    /// Parts of the output are cut.
    pub(crate) fn cut(&self, from: u32, to: u32) -> Event {
        let shard = self.shard();
        let id = elasticjob::history::AttemptId::of(&shard);
        Event::Cut(OutputCut { id, run: shard.run, item: shard.item, from, to, bytes: 99 })
    }
}

/// A run of two shards that succeed after `took` milliseconds.
pub(crate) fn done(job: &str, due: i64, took: i64) -> Vec<Event> {
    let attempt = SampleAttempt::of(job, due);
    (0..2)
        .flat_map(|item| {
            let shard = attempt.item(item);
            [shard.started(), shard.ended(took, (Outcome::Succeeded, None))]
        })
        .collect()
}

/// A run of one shard that fails.
pub(crate) fn failed(job: &str, due: i64, why: &str) -> Vec<Event> {
    let attempt = SampleAttempt::of(job, due);
    vec![attempt.started(), attempt.ended(10, (Outcome::Failed, Some(why)))]
}
