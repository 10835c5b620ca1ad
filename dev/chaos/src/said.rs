//! What a worker says, line by line, about what it does.
//!
//! Lines go through a pipe: what was said before a `kill -9` is heard after it.

use std::io::{self, Write};

use elasticjob::{
    job::Shard,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

/// Something a worker did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What.
    pub what: What,
    /// When, on the clock of the machine, in nanoseconds.
    pub at: i64,
    /// Which worker, as its parent counts.
    pub worker: usize,
    /// Which process of it.
    pub pid: u32,
}

/// What a worker can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It takes part in all jobs.
    Joined,
    /// Somebody's instance node is gone.
    Noticed(String),
    /// A shard began.
    Started(Key, Reason),
    /// A shard has made a step; whether the database took what it wrote.
    Stepped(Key, bool),
    /// A shard returned.
    Returned(Key),
    /// How that counts.
    Outcome(Key, String),
}

/// One execution of one shard: a claim has one token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The job.
    pub job: String,
    /// The shard.
    pub item: u32,
    /// The fencing token.
    pub token: i64,
    /// The run, by when it was due in milliseconds.
    pub run: i64,
    /// The instance.
    pub instance: String,
}

/// Why, and the how manieth try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// `Due`, `Misfire`, `Failover`.
    pub word: String,
    /// From one.
    pub attempt: u32,
}

impl Key {
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

impl What {
    /// The execution this is about.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Joined | Self::Noticed(_) => None,
            Self::Started(key, _)
            | Self::Stepped(key, _)
            | Self::Returned(key)
            | Self::Outcome(key, _) => Some(key),
        }
    }

    /// Says it now.
    pub(crate) fn say(&self) -> io::Result<()> {
        self.say_at(now())
    }

    /// Says that it happened then.
    pub(crate) fn say_at(&self, at: i64) -> io::Result<()> {
        let mut line = match self {
            Self::Joined => json!({"said": "joined"}),
            Self::Noticed(instance) => json!({"said": "noticed", "instance": instance}),
            Self::Started(_, reason) => {
                json!({"said": "started", "reason": reason.word, "attempt": reason.attempt})
            }
            Self::Stepped(_, accepted) => json!({"said": "stepped", "accepted": accepted}),
            Self::Returned(_) => json!({"said": "returned"}),
            Self::Outcome(_, outcome) => json!({"said": "outcome", "outcome": outcome}),
        };
        if let Some(key) = self.key() {
            line["job"] = key.job.as_str().into();
            line["item"] = key.item.into();
            line["token"] = key.token.into();
            line["run"] = key.run.into();
            line["instance"] = key.instance.as_str().into();
        }
        line["at"] = at.into();
        // In one piece: shards speak at the same time.
        io::stdout().lock().write_all(format!("{line}\n").as_bytes())
    }

    /// Understands a line, and when it happened.
    pub(crate) fn hear(line: &str) -> Option<(Self, i64)> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        let number = |key: &str| line[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let key = || {
            Some(Key {
                job: text("job")?,
                item: number("item")?,
                token: line["token"].as_i64()?,
                run: line["run"].as_i64()?,
                instance: text("instance")?,
            })
        };
        let what = match line["said"].as_str()? {
            "joined" => Self::Joined,
            "noticed" => Self::Noticed(text("instance")?),
            "started" => {
                let reason = Reason { word: text("reason")?, attempt: number("attempt")? };
                Self::Started(key()?, reason)
            }
            "stepped" => Self::Stepped(key()?, line["accepted"].as_bool()?),
            "returned" => Self::Returned(key()?),
            "outcome" => Self::Outcome(key()?, text("outcome")?),
            _ => return None,
        };
        Some((what, line["at"].as_i64()?))
    }
}

/// Now, in nanoseconds: workers of one machine look at one clock.
pub(crate) fn now() -> i64 {
    SystemClock.now().as_nanosecond() as i64
}
