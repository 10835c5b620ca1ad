//! The data of a trigger node: a request to run now, or to cancel.
//!
//! Java ElasticJob's trigger is an empty node below `trigger`, named after the instance that has to run. A Rust trigger carries more in the node's
//! data, which Java never reads: run id, shards, logical time, parameter and origin, or that running shards have to be cancelled.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::job::{RunId, ShardSelection};

/// A request to one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceRequest {
    Run(TriggerRequest),
    /// Cancel these running shards.
    Cancel(ShardSelection),
}

/// A request to run now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerRequest {
    /// Id of the run, so that all instances use the same one.
    pub run: Option<RunId>,
    /// Logical time of the run; the present time if unset.
    pub at: Option<Timestamp>,
    /// The shards to run.
    pub shards: ShardSelection,
    /// Replaces the job's own parameter.
    pub parameter: Option<String>,
    /// The user or program that made the request, for the history.
    pub by: Option<String>,
}

impl InstanceRequest {
    /// Parses the data of a trigger node. Java's triggers are empty, and data that cannot be parsed counts as empty.
    pub fn read(data: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Map<String, Value>>(data) else {
            return Self::Run(TriggerRequest::default());
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let shards = value.get("shards").and_then(Value::as_array).into_iter().flatten();
        let shards = shards.filter_map(|shard| u32::try_from(shard.as_u64()?).ok()).collect();
        let shards = ShardSelection::all_if_empty(shards);
        if value.get("cancel").and_then(Value::as_bool) == Some(true) {
            return Self::Cancel(shards);
        }
        Self::Run(TriggerRequest {
            run: text("run").and_then(|run| run.parse().ok()),
            at: text("at").and_then(|at| at.parse().ok()),
            shards,
            parameter: text("parameter").map(ToOwned::to_owned),
            by: text("by").map(ToOwned::to_owned),
        })
    }

    /// The data of the trigger node: empty, as Java writes it, for a request without details.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = match self {
            Self::Run(request) if *request == TriggerRequest::default() => return Vec::new(),
            Self::Run(request) => json!({
                "run": request.run.as_ref().map(ToString::to_string),
                "at": request.at.map(|at| at.to_string()),
                "shards": stored(&request.shards),
                "parameter": request.parameter,
                "by": request.by,
            }),
            Self::Cancel(shards) => json!({ "cancel": true, "shards": stored(shards) }),
        };
        value.to_string().into_bytes()
    }
}

/// The stored form of a selection: a list of items, empty for all shards.
fn stored(shards: &ShardSelection) -> BTreeSet<u32> {
    shards.items().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigger_survives_a_round_trip_and_other_data_means_run_now() {
        let request = TriggerRequest {
            run: Some(RunId::triggered(7)),
            at: Some("2026-11-15T06:36:07Z".parse().unwrap()),
            shards: ShardSelection::only([0, 2]).unwrap(),
            parameter: Some("2026-11".into()),
            by: Some("ann".into()),
        };
        for trigger in [
            InstanceRequest::Run(request),
            InstanceRequest::Run(TriggerRequest::default()),
            InstanceRequest::Cancel(ShardSelection::only([1]).unwrap()),
        ] {
            assert_eq!(InstanceRequest::read(&trigger.to_bytes()), trigger);
        }
        assert!(InstanceRequest::Run(TriggerRequest::default()).to_bytes().is_empty());
        for other in ["TRIGGER", "[]", "{}", "{\"run\":7}"] {
            assert_eq!(
                InstanceRequest::read(other.as_bytes()),
                InstanceRequest::Run(TriggerRequest::default()),
                "{other}"
            );
        }
    }
}
