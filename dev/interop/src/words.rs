//! What is said to the test.

use std::io::{self, Write};

use elasticjob::{
    job::Shard,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

/// Says it, with the time. In one piece: shards speak at the same time.
pub(crate) fn say(mut words: Value) -> io::Result<()> {
    words["at"] = SystemClock.now().as_millisecond().into();
    io::stdout().lock().write_all(format!("{words}\n").as_bytes())
}

/// Says what a shard does.
pub(crate) fn tell(what: &str, shard: &Shard) -> io::Result<()> {
    say(json!({
        "said": what,
        "job": shard.job.as_str(),
        "item": shard.item,
        "task": shard.task.to_string(),
        "parameter": shard.parameter,
        "reason": format!("{:?}", shard.attempt.reason),
    }))
}
