//! Freezes the spelling of statuses in Java's console; `tests/golden/README.md` says why.
//!
//! The enums are iterated with an exhaustive `match`, so that a new variant does not compile until it is frozen, too.

use std::iter::successors;

use serde::Serialize;
use testbed::golden;

use super::{JobStatus, ServerStatus, ShardStatus};

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
    assert_eq!(ServerStatus::read(b""), ServerStatus::Disabled);
}
