//! The events that a worker prints about what it does, one JSON line each.
//!
//! The lines go through a pipe, so the parent still reads those that were printed before a `kill -9`.

use std::io::{self, Write};

use elasticjob::{
    job::Shard,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

/// An event of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// Nanoseconds on the clock of the machine.
    pub at: i64,
    /// Number of the worker in its [`Cluster`](crate::Cluster).
    pub worker: usize,
    /// Changes when the worker is restarted.
    pub pid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The worker has joined all jobs.
    Joined,
    /// The worker saw that this instance's node was deleted.
    InstanceGone(String),
    /// The handler of a shard was called.
    Started(ExecutionKey, StartReason),
    /// The handler made a write; whether the database accepted it.
    Stepped(ExecutionKey, bool),
    /// The handler returned without an error.
    Returned(ExecutionKey),
    /// The outcome that the worker recorded.
    Outcome(ExecutionKey, String),
}

/// Identifies one execution of one shard: every claim has its own token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutionKey {
    pub job: String,
    pub item: u32,
    /// The fencing token.
    pub token: i64,
    /// The run, identified by its due time in milliseconds.
    pub run: i64,
    pub instance: String,
}

/// Why an execution started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartReason {
    /// `Due`, `Misfire`, `Failover`.
    pub name: String,
    /// Attempt number within the run, counted from one.
    pub attempt: u32,
}

impl ExecutionKey {
    pub(crate) fn of(shard: &Shard) -> Self {
        Self {
            job: shard.job.to_string(),
            item: shard.item,
            token: shard.token.get(),
            run: shard.due_at.as_millisecond(),
            instance: shard.task.instance.to_string(),
        }
    }
}

impl EventKind {
    /// The execution that the event belongs to.
    pub fn key(&self) -> Option<&ExecutionKey> {
        match self {
            Self::Joined | Self::InstanceGone(_) => None,
            Self::Started(key, _)
            | Self::Stepped(key, _)
            | Self::Returned(key)
            | Self::Outcome(key, _) => Some(key),
        }
    }

    /// Prints the event with the current time.
    pub(crate) fn print(&self) -> io::Result<()> {
        self.print_at(now())
    }

    /// Prints the event with the time at which it happened.
    pub(crate) fn print_at(&self, at: i64) -> io::Result<()> {
        let mut line = match self {
            Self::Joined => json!({"event": "joined"}),
            Self::InstanceGone(instance) => json!({"event": "instanceGone", "instance": instance}),
            Self::Started(_, reason) => {
                json!({"event": "started", "reason": reason.name, "attempt": reason.attempt})
            }
            Self::Stepped(_, accepted) => json!({"event": "stepped", "accepted": accepted}),
            Self::Returned(_) => json!({"event": "returned"}),
            Self::Outcome(_, outcome) => json!({"event": "outcome", "outcome": outcome}),
        };
        if let Some(key) = self.key() {
            line["job"] = key.job.as_str().into();
            line["item"] = key.item.into();
            line["token"] = key.token.into();
            line["run"] = key.run.into();
            line["instance"] = key.instance.as_str().into();
        }
        line["at"] = at.into();
        // In one write, because shards print at the same time.
        io::stdout().lock().write_all(format!("{line}\n").as_bytes())
    }

    /// Parses a printed line into the event and its time.
    pub(crate) fn parse(line: &str) -> Option<(Self, i64)> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        let number = |key: &str| line[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let key = || {
            Some(ExecutionKey {
                job: text("job")?,
                item: number("item")?,
                token: line["token"].as_i64()?,
                run: line["run"].as_i64()?,
                instance: text("instance")?,
            })
        };
        let kind = match line["event"].as_str()? {
            "joined" => Self::Joined,
            "instanceGone" => Self::InstanceGone(text("instance")?),
            "started" => {
                let reason = StartReason { name: text("reason")?, attempt: number("attempt")? };
                Self::Started(key()?, reason)
            }
            "stepped" => Self::Stepped(key()?, line["accepted"].as_bool()?),
            "returned" => Self::Returned(key()?),
            "outcome" => Self::Outcome(key()?, text("outcome")?),
            _ => return None,
        };
        Some((kind, line["at"].as_i64()?))
    }
}

/// The current time in nanoseconds. All workers run on one machine and read the same clock.
pub(crate) fn now() -> i64 {
    SystemClock.now().as_nanosecond() as i64
}
