//! Writes events and answers to stdout for the test, one JSON object per line.

use std::io::{self, Write};

use elasticjob::{
    job::Shard,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

/// Prints an event with the current time, in one write, because shards print at the same time.
pub(crate) fn print_event(mut event: Value) -> io::Result<()> {
    event["at"] = SystemClock.now().as_millisecond().into();
    io::stdout().lock().write_all(format!("{event}\n").as_bytes())
}

/// Prints an event of a shard.
pub(crate) fn print_shard_event(kind: &str, shard: &Shard) -> io::Result<()> {
    print_event(json!({
        "event": kind,
        "job": shard.job.as_str(),
        "item": shard.item,
        "task": shard.task.to_string(),
        "parameter": shard.parameter,
        "reason": format!("{:?}", shard.attempt.reason),
    }))
}
