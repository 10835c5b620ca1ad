//! What a script finds in its environment.

use std::os::unix::ffi::OsStrExt;

use crate::job::Shard;

/// Every variable, and what it is set to; what has no value is removed, so that nothing is inherited by accident.
pub(super) fn variables(shard: &Shard) -> [(&'static str, Option<String>); 10] {
    [
        ("ELASTICJOB_JOB_NAME", Some(shard.job.to_string())),
        ("ELASTICJOB_TASK_ID", Some(shard.task.to_string())),
        ("ELASTICJOB_TOTAL", Some(shard.total.to_string())),
        ("ELASTICJOB_ITEM", Some(shard.item.to_string())),
        ("ELASTICJOB_ITEM_PARAMETER", shard.parameter.clone()),
        ("ELASTICJOB_JOB_PARAMETER", Some(shard.job_parameter.clone())),
        ("ELASTICJOB_SCHEDULED_AT", Some(shard.due_at.to_string())),
        ("ELASTICJOB_RUN_ID", Some(shard.run.to_string())),
        ("ELASTICJOB_ATTEMPT", Some(shard.attempt.number.to_string())),
        ("ELASTICJOB_FENCING_TOKEN", Some(shard.token.to_string())),
    ]
}

/// Those that together are no other attempt's.
const TELLING: [&str; 5] = [
    "ELASTICJOB_TASK_ID",
    "ELASTICJOB_ITEM",
    "ELASTICJOB_RUN_ID",
    "ELASTICJOB_ATTEMPT",
    "ELASTICJOB_FENCING_TOKEN",
];

/// What stands in the environment of every process this attempt started, however deep, and of no other.
pub(super) fn marks(shard: &Shard) -> Vec<Vec<u8>> {
    let telling = variables(shard).into_iter().filter(|(name, _)| TELLING.contains(name));
    telling.map(|(name, value)| mark(name, value.unwrap_or_default().as_bytes())).collect()
}

/// The same for the attempt this process was started for.
pub(super) fn marks_here() -> Vec<Vec<u8>> {
    let held = TELLING.map(|name| (name, std::env::var_os(name).unwrap_or_default()));
    held.into_iter().map(|(name, value)| mark(name, value.as_bytes())).collect()
}

fn mark(name: &str, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", value].concat()
}
