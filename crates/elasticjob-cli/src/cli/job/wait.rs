//! Waits for a triggered run to end.
//!
//! The stored trigger tells how each shard ended, whichever run follows. Shards of Java instances are not part of it, so they are not waited for.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use elasticjob::{
    admin::{
        AdminError, SkipReason, TriggerDetails, TriggerResponse, TriggerShard, TriggerShardState,
    },
    job::JobName,
    problem::Problem,
    runtime::{Clock, SystemClock},
};

use crate::{
    cli::{
        connection::{Connection, join_names},
        trigger::state_text,
    },
    error::{Code, Error},
    output::{self, Format},
};

/// Waits until every shard of a trigger has an outcome or a reason, or the timeout, and prints what becomes of each shard meanwhile.
pub(super) async fn wait(
    connection: &Connection,
    job: &JobName,
    triggered: &TriggerResponse,
    timeout: Duration,
    format: Format,
) -> Result<TriggerDetails, Error> {
    let mut deadline = pin!(SystemClock.sleep_until(SystemClock.monotonic() + timeout));
    if !triggered.delegated.is_empty() {
        let shards: Vec<String> = triggered.delegated.iter().map(ToString::to_string).collect();
        output::print_message(&format!(
            "note: shards of Java instances are not waited for, how they end is unknown: {}",
            join_names(&shards)
        ));
    }
    let mut watch = match connection.admin.watch_trigger(job, &triggered.run).await {
        Err(AdminError::NotFound { .. }) if !triggered.delegated.is_empty() => {
            return Err(nothing_to_wait_for(job));
        }
        watch => watch?,
    };
    let mut progress = Progress::default();
    let mut details = watch.details();
    loop {
        if format == Format::Table {
            progress.report(&details).iter().for_each(|line| output::print_message(line));
        }
        if details.has_ended() {
            return Ok(details);
        }
        tokio::select! {
            () = &mut deadline => return Ok(details),
            changed = watch.changed() => details = changed?,
        }
    }
}

fn nothing_to_wait_for(job: &JobName) -> Error {
    Error::new(
        Code::Refused,
        format!("job {job} was triggered, but it has no shard that can be waited for"),
    )
    .with_hint("trigger it without --wait")
}

/// The shards that were reported.
#[derive(Default)]
struct Progress(BTreeMap<u32, (TriggerShardState, Option<u32>)>);

impl Progress {
    /// A line for every shard that is in another state than before.
    fn report(&mut self, details: &TriggerDetails) -> Vec<String> {
        let mut lines = Vec::new();
        for shard in &details.shards {
            let state = (shard.state, shard.attempt);
            let is_told = match self.0.insert(shard.item, state) {
                Some(before) => before == state,
                None => {
                    matches!(shard.state, TriggerShardState::Pending | TriggerShardState::Delegated)
                }
            };
            if !is_told {
                lines.push(line(shard));
            }
        }
        lines
    }
}

fn line(shard: &TriggerShard) -> String {
    let mut line = format!("shard {}: {}", shard.item, state_text(shard));
    if shard.state == TriggerShardState::Running
        && let Some(instance) = &shard.instance
    {
        line = format!("{line} on {instance}");
    }
    match shard.attempt {
        Some(attempt) if attempt > 1 => format!("{line}, attempt {attempt}"),
        _ => line,
    }
}

/// An error for every shard that did not succeed. Disabled shards do not count, as in every run, unless there is no other one.
pub(super) fn check(job: &JobName, ended: &TriggerDetails, timeout: Duration) -> Result<(), Error> {
    let (mut problems, mut ran) = (Vec::new(), 0);
    for shard in &ended.shards {
        let name = format!("shard {} of job {job}", shard.item);
        let problem = match (shard.state, shard.reason) {
            (TriggerShardState::Delegated, _)
            | (TriggerShardState::Skipped, Some(SkipReason::Disabled)) => continue,
            (TriggerShardState::Succeeded, _) => {
                ran += 1;
                continue;
            }
            (TriggerShardState::Pending | TriggerShardState::Running, _) => {
                Problem::new(format!("{name} has not ended within {timeout:?}"))
                    .with_hint(format!("elasticjob job explain {job} --shard {}", shard.item))
            }
            (TriggerShardState::Failed, _) => {
                Problem::new(format!("{name} failed")).with_hint("see the logs of its handler")
            }
            (TriggerShardState::Lost, _) => {
                Problem::new(format!("{name} is lost: its instance is gone"))
                    .with_hint("with failover another instance takes it over")
            }
            (TriggerShardState::TimedOut, _) => {
                Problem::new(format!("{name} exceeded its timeout"))
            }
            (TriggerShardState::Cancelled, _) => Problem::new(format!("{name} was cancelled")),
            (TriggerShardState::Fenced, _) => {
                Problem::new(format!("{name} ended after its lease was lost, which does not count"))
            }
            (TriggerShardState::Skipped, _) => {
                Problem::new(format!("{name} did not run: {}", state_text(shard)))
            }
            (TriggerShardState::Unreadable, _) => {
                Problem::new(format!("the outcome of {name} is unknown: its entry is unreadable"))
            }
        };
        problems.push(problem);
    }
    if let Some(problem) = &ended.summary.problem {
        problems.push(Problem::new(format!("the trigger of job {job} is unreadable: {problem}")));
    }
    match (problems.is_empty(), ran) {
        (true, 0) => Err(nothing_to_wait_for(job)),
        (true, _) => Ok(()),
        (false, _) => Err(Error { code: Code::RunFailed, problems }),
    }
}

#[cfg(test)]
mod tests {
    use elasticjob::admin::{TriggerState, TriggerSummary};

    use super::*;

    fn shard(item: u32, state: TriggerShardState, reason: Option<SkipReason>) -> TriggerShard {
        TriggerShard { item, state, instance: None, attempt: Some(1), reason, since: None }
    }

    fn trigger(shards: Vec<TriggerShard>) -> TriggerDetails {
        let summary = TriggerSummary {
            run: "46861c8b-90ef-4172-9305-d3e7862768d2".to_owned(),
            state: TriggerState::Ended,
            by: None,
            requested_at: None,
            expires_at: None,
            ended_at: None,
            at: None,
            is_whole: true,
            parameter: None,
            parameter_bytes: 0,
            shard_count: shards.len(),
            counts: None,
            problem: None,
        };
        TriggerDetails { summary, shards }
    }

    fn code(states: &[(TriggerShardState, Option<SkipReason>)]) -> Option<Code> {
        let shards = (0..).zip(states).map(|(item, (state, reason))| shard(item, *state, *reason));
        let ended = trigger(shards.collect());
        let checked = check(&"settle".parse().unwrap(), &ended, Duration::from_secs(1));
        checked.err().map(|error| error.code)
    }

    #[test]
    fn exit_code_tells_whether_every_shard_succeeded() {
        use TriggerShardState::{
            Cancelled, Delegated, Failed, Fenced, Lost, Pending, Running, Skipped, Succeeded,
            TimedOut, Unreadable,
        };
        let disabled = (Skipped, Some(SkipReason::Disabled));

        assert_eq!(code(&[(Succeeded, None), (Succeeded, None)]), None);
        assert_eq!(code(&[(Succeeded, None), (Delegated, None), disabled]), None);
        assert_eq!(code(&[disabled, (Delegated, None)]), Some(Code::Refused));
        for state in [Failed, TimedOut, Cancelled, Fenced, Lost, Pending, Running, Unreadable] {
            assert_eq!(code(&[(Succeeded, None), (state, None)]), Some(Code::RunFailed));
        }
        for reason in [SkipReason::Expired, SkipReason::Cancelled, SkipReason::MovedToJava] {
            assert_eq!(
                code(&[(Succeeded, None), (Skipped, Some(reason))]),
                Some(Code::RunFailed),
                "{reason:?}"
            );
        }
    }

    #[test]
    fn progress_tells_every_change_once() {
        let mut progress = Progress::default();
        let at = |state| {
            trigger(vec![shard(0, state, None), shard(1, TriggerShardState::Pending, None)])
        };

        assert!(progress.report(&at(TriggerShardState::Pending)).is_empty());
        assert_eq!(progress.report(&at(TriggerShardState::Running)), ["shard 0: running"]);
        assert!(progress.report(&at(TriggerShardState::Running)).is_empty());
        assert_eq!(progress.report(&at(TriggerShardState::Succeeded)), ["shard 0: done"]);
    }
}
