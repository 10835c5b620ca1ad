//! Freezes the spelling of statuses in Java's console, and the exit codes; `tests/golden/README.md` says why.
//!
//! The enums are iterated with an exhaustive `match`, so that a new variant does not compile until it is frozen, too.

use std::{fmt::Write, iter::successors};

use serde::Serialize;
use testbed::golden;

use super::{AdminError, JobStatus, ServerStatus, ShardStatus};
use crate::registry::Error;

fn spellings<T: Serialize>(values: impl Iterator<Item = T>) -> String {
    let words = values.map(|value| serde_json::to_string(&value).unwrap());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn statuses_keep_the_spelling_of_java() {
    let jobs = successors(Some(JobStatus::Ok), |status| match status {
        JobStatus::Ok => Some(JobStatus::Disabled),
        JobStatus::Disabled => Some(JobStatus::Crashed),
        JobStatus::Crashed => Some(JobStatus::ShardingFlag),
        JobStatus::ShardingFlag => None,
    });
    let shards = successors(Some(ShardStatus::Disabled), |status| match status {
        ShardStatus::Disabled => Some(ShardStatus::Running),
        ShardStatus::Running => Some(ShardStatus::ShardingFlag),
        ShardStatus::ShardingFlag => Some(ShardStatus::Pending),
        ShardStatus::Pending => None,
    });
    let servers = successors(Some(ServerStatus::Enabled), |status| match status {
        ServerStatus::Enabled => Some(ServerStatus::Disabled),
        ServerStatus::Disabled => None,
    });

    let (jobs, shards, servers) = (spellings(jobs), spellings(shards), spellings(servers));
    golden!("statuses.txt", format!("job: {jobs}\nshard: {shards}\nserver: {servers}\n"));

    assert_eq!(ServerStatus::read(b"DISABLED"), ServerStatus::Disabled);
    assert_eq!(ServerStatus::read(b"ENABLED"), ServerStatus::Enabled);
}

#[test]
fn errors_keep_their_exit_codes() {
    let (problem, hint) = (String::new(), String::new());
    let errors = [
        AdminError::Internal { hint: hint.clone(), source: Error::Closed },
        AdminError::Invalid { problem: problem.clone(), hint: hint.clone() },
        AdminError::Unreachable {
            problem: problem.clone(),
            hint: hint.clone(),
            source: Error::Closed,
        },
        AdminError::NotAuthorised { path: String::new(), hint: hint.clone() },
        AdminError::NotFound { what: String::new(), hint: hint.clone() },
        AdminError::Conflict { problem: problem.clone(), hint: hint.clone() },
        AdminError::Refused { problem, hint },
    ];
    let mut text = String::new();
    for error in &errors {
        let meaning = match error {
            AdminError::Internal { .. } => "internal",
            AdminError::Invalid { .. } => "bad input",
            AdminError::Unreachable { .. } => "unreachable",
            AdminError::NotAuthorised { .. } => "not authorised",
            AdminError::NotFound { .. } => "not found",
            AdminError::Conflict { .. } => "conflict",
            AdminError::Refused { .. } => "refused",
        };
        let _ = writeln!(text, "{} {meaning}", error.exit_code());
    }

    golden!("exit-codes.txt", text);
}
