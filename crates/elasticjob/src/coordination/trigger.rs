//! "Run now", and "stop that": what a trigger node says.
//!
//! The ancestor's trigger is an empty node below `trigger`, named after the instance that is to run. Ours can say more, in the data that Java
//! never reads: which run it is, which shards, which logical time — or that something is to be cancelled.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::job::RunId;

/// What somebody wants an instance to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// Run now.
    Run(Ask),
    /// Cancel what runs; only these shards, if there are any.
    Cancel(BTreeSet<u32>),
}

/// How somebody wants it to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ask {
    /// The run this is to be, so that all instances know it by one name.
    pub run: Option<RunId>,
    /// The time it is to work for; now, if not said.
    pub at: Option<Timestamp>,
    /// Only these shards, if there are any.
    pub shards: BTreeSet<u32>,
    /// What the job is given instead of its own parameter.
    pub parameter: Option<String>,
    /// Who wants it, for the history.
    pub by: Option<String>,
}

impl Trigger {
    /// Reads what a trigger node says. The ancestor's say nothing, and what nobody can read is taken for that.
    pub fn read(data: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Map<String, Value>>(data) else {
            return Self::Run(Ask::default());
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let shards = value.get("shards").and_then(Value::as_array).into_iter().flatten();
        let shards = shards.filter_map(|shard| u32::try_from(shard.as_u64()?).ok()).collect();
        if value.get("cancel").and_then(Value::as_bool) == Some(true) {
            return Self::Cancel(shards);
        }
        Self::Run(Ask {
            run: text("run").and_then(|run| run.parse().ok()),
            at: text("at").and_then(|at| at.parse().ok()),
            shards,
            parameter: text("parameter").map(ToOwned::to_owned),
            by: text("by").map(ToOwned::to_owned),
        })
    }

    /// Writes it. One that says nothing is written as the ancestor writes it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = match self {
            Self::Run(ask) if *ask == Ask::default() => return Vec::new(),
            Self::Run(ask) => json!({
                "run": ask.run.as_ref().map(ToString::to_string),
                "at": ask.at.map(|at| at.to_string()),
                "shards": ask.shards,
                "parameter": ask.parameter,
                "by": ask.by,
            }),
            Self::Cancel(shards) => json!({ "cancel": true, "shards": shards }),
        };
        value.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_reads_as_it_was_written_and_the_ancestors_says_nothing() {
        let ask = Ask {
            run: Some(RunId::triggered(7)),
            at: Some("2026-11-15T06:36:07Z".parse().unwrap()),
            shards: BTreeSet::from([0, 2]),
            parameter: Some("2026-11".into()),
            by: Some("ann".into()),
        };
        for trigger in
            [Trigger::Run(ask), Trigger::Run(Ask::default()), Trigger::Cancel(BTreeSet::from([1]))]
        {
            assert_eq!(Trigger::read(&trigger.to_bytes()), trigger);
        }
        assert!(Trigger::Run(Ask::default()).to_bytes().is_empty());
        for strange in ["TRIGGER", "[]", "{}", "{\"run\":7}"] {
            assert_eq!(
                Trigger::read(strange.as_bytes()),
                Trigger::Run(Ask::default()),
                "{strange}"
            );
        }
    }
}
