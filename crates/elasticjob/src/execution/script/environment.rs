//! The environment variables of a script.

use std::{ffi::OsString, os::unix::ffi::OsStrExt};

use crate::job::Shard;

/// Every variable and its value; a variable without a value is removed, so that a script never inherits it by accident.
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

/// The variables of this process that a script does not inherit: our own, since URLs with passwords are among them, and the one by which systemd
/// shows where credentials are.
pub(super) fn withheld() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| {
        name.as_bytes().starts_with(b"ELASTICJOB_") || name == "CREDENTIALS_DIRECTORY"
    })
}

/// The variables that together identify an attempt.
const IDENTIFYING: [&str; 5] = [
    "ELASTICJOB_TASK_ID",
    "ELASTICJOB_ITEM",
    "ELASTICJOB_RUN_ID",
    "ELASTICJOB_ATTEMPT",
    "ELASTICJOB_FENCING_TOKEN",
];

/// The `NAME=value` pairs that are in the environment of every process this attempt started, directly or not, and of no other process.
pub(super) fn marks(shard: &Shard) -> Vec<Vec<u8>> {
    let identifying = variables(shard).into_iter().filter(|(name, _)| IDENTIFYING.contains(name));
    identifying.map(|(name, value)| mark(name, value.unwrap_or_default().as_bytes())).collect()
}

/// The marks of the attempt that this process was started for.
pub(super) fn own_marks() -> Vec<Vec<u8>> {
    let values = IDENTIFYING.map(|name| (name, std::env::var_os(name).unwrap_or_default()));
    values.into_iter().map(|(name, value)| mark(name, value.as_bytes())).collect()
}

fn mark(name: &str, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", value].concat()
}
