//! Waits for a run to end.
//!
//! Rust instances write the state of a shard's run to its ledger page. The ledger is watched from before the trigger, and its pages are read whenever
//! one of them changes. Java has no ledger, so its shards are not waited for.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use elasticjob::{
    admin::{Language, LastRun, LedgerChanges, LedgerState, Shard, TriggerResponse},
    job::{Failover, JobName, ShardSelection},
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

use crate::{
    cli::connection::{Connection, or_dash, status_text, to_json},
    error::{Code, Error},
    output,
};
use elasticjob::problem::Problem;

pub(super) struct RunWaiter<'s> {
    job: &'s JobName,
    shards: &'s ShardSelection,
    /// Whether the job has failover, so that a lost shard runs again.
    has_failover: bool,
    ledger: LedgerChanges,
}

/// A shard that was waited for.
pub(super) struct AwaitedShard {
    item: u32,
    end: ShardState,
}

/// State of an awaited shard, from its ledger page.
enum ShardState {
    Pending,
    Started(LastRun),
    Ended(LastRun),
    /// It was started, but its page now describes another run.
    Overwritten,
}

impl<'s> RunWaiter<'s> {
    /// Starts watching the ledger.
    pub(super) async fn start(
        connection: &Connection,
        job: &'s JobName,
        shards: &'s ShardSelection,
    ) -> Result<Self, Error> {
        let details = connection.or_suggest(job, connection.admin.job(job).await).await?;
        let has_failover =
            details.configuration.job.is_some_and(|job| matches!(job.failover, Failover::TakeOver));
        let ledger = connection.admin.ledger_changes(job).await?;
        Ok(Self { job, shards, has_failover, ledger })
    }

    /// Waits until every shard has ended, or the timeout.
    pub(super) async fn wait(
        mut self,
        connection: &Connection,
        triggered: &TriggerResponse,
        timeout: Duration,
    ) -> Result<Vec<AwaitedShard>, Error> {
        let mut deadline = pin!(SystemClock.sleep_until(SystemClock.monotonic() + timeout));
        let run = triggered.run.to_string();
        let shards = connection.admin.shards(self.job).await?;
        let mut awaited = self.waitable_shards(&shards, triggered)?;
        update(&mut awaited, &shards, &run, self.has_failover);
        while awaited
            .values()
            .any(|end| matches!(end, ShardState::Pending | ShardState::Started(_)))
        {
            tokio::select! {
                () = &mut deadline => break,
                change = self.ledger.next() => change?,
            }
            update(
                &mut awaited,
                &connection.admin.shards(self.job).await?,
                &run,
                self.has_failover,
            );
        }
        Ok(awaited.into_iter().map(|(item, end)| AwaitedShard { item, end }).collect())
    }

    /// The shards that can be waited for; prints a note for each of the others.
    fn waitable_shards(
        &self,
        shards: &[Shard],
        triggered: &TriggerResponse,
    ) -> Result<BTreeMap<u32, ShardState>, Error> {
        let mut waitable = BTreeMap::new();
        for shard in shards {
            let item = shard.item;
            if !self.shards.contains(item) {
                continue;
            }
            let owner = shard.owner.as_deref().unwrap_or_default();
            let reason = if shard.is_disabled {
                "it is disabled".to_owned()
            } else if shard.language == Some(Language::Java) {
                format!("{owner} is a Java instance, which has no ledger")
            } else if triggered.already_pending.iter().any(|id| id == owner) {
                format!("{owner} runs it under an earlier trigger")
            } else {
                waitable.insert(item, ShardState::Pending);
                continue;
            };
            output::print_message(&format!("note: shard {item} is not waited for: {reason}"));
        }
        if waitable.is_empty() {
            return Err(Error::new(
                Code::Refused,
                format!(
                    "job {} was triggered, but it has no shard that can be waited for",
                    self.job
                ),
            )
            .with_hint("trigger it without --wait"));
        }
        Ok(waitable)
    }
}

/// Updates the states from the ledger pages.
fn update(
    awaited: &mut BTreeMap<u32, ShardState>,
    shards: &[Shard],
    run: &str,
    has_failover: bool,
) {
    for (item, end) in awaited {
        let page = shards.iter().find(|shard| shard.item == *item);
        let page = page.and_then(|shard| shard.last_run.as_ref());
        let ours = page.filter(|page| page.run_id.as_deref() == Some(run));
        match (&end, ours) {
            (ShardState::Pending | ShardState::Started(_), Some(page)) => {
                let is_over = match page.state {
                    LedgerState::Done | LedgerState::Failed => true,
                    LedgerState::Lost => !has_failover,
                    LedgerState::Fresh | LedgerState::Running => false,
                };
                *end = if is_over {
                    ShardState::Ended(page.clone())
                } else {
                    ShardState::Started(page.clone())
                };
            }
            (ShardState::Started(_), None) => *end = ShardState::Overwritten,
            _ => {}
        }
    }
}

impl AwaitedShard {
    fn page(&self) -> Option<&LastRun> {
        match &self.end {
            ShardState::Started(page) | ShardState::Ended(page) => Some(page),
            ShardState::Pending | ShardState::Overwritten => None,
        }
    }

    fn state(&self) -> String {
        match &self.end {
            ShardState::Started(page) | ShardState::Ended(page) => status_text(&page.state),
            ShardState::Pending => "PENDING".to_owned(),
            ShardState::Overwritten => "UNKNOWN".to_owned(),
        }
    }

    /// The cells of a table row.
    pub(super) fn cells(&self) -> [String; 4] {
        let page = self.page();
        [
            self.item.to_string(),
            self.state(),
            page.map_or("-".to_owned(), |page| page.attempt.to_string()),
            or_dash(page.and_then(|page| page.instance.as_deref())),
        ]
    }

    pub(super) fn to_json(&self) -> Value {
        let mut value =
            self.page().and_then(|page| to_json(page).ok()).unwrap_or_else(|| json!({}));
        value["item"] = self.item.into();
        value["state"] = self.state().into();
        value
    }

    /// An error for every shard that did not succeed.
    pub(super) fn check_all(job: &JobName, ended: &[Self], timeout: Duration) -> Result<(), Error> {
        let mut problems = Vec::new();
        for Self { item, end } in ended {
            let shard = format!("shard {item} of job {job}");
            problems.push(match end {
                ShardState::Ended(page) if page.state == LedgerState::Done => continue,
                ShardState::Ended(page) if page.state == LedgerState::Lost => {
                    Problem::new(format!("{shard} is lost: its instance is gone"))
                        .with_hint("with failover another instance takes it over")
                }
                ShardState::Ended(_) => {
                    Problem::new(format!("{shard} failed")).with_hint("see the logs of its handler")
                }
                ShardState::Overwritten => Problem::new(format!(
                    "the outcome of {shard} is unknown: the next run has already started"
                )),
                ShardState::Pending | ShardState::Started(_) => {
                    Problem::new(format!("{shard} has not ended within {timeout:?}"))
                        .with_hint(format!("elasticjob job explain {job} --shard {item}"))
                }
            });
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error { code: Code::RunFailed, problems })
    }
}

#[cfg(test)]
mod tests {
    use elasticjob::admin::ShardStatus;

    use super::*;

    /// A shard whose ledger page describes this run.
    fn shard(run: &str, state: LedgerState) -> Shard {
        Shard {
            item: 0,
            status: ShardStatus::Pending,
            owner: None,
            server: None,
            is_owner_online: true,
            language: None,
            parameter: None,
            running: None,
            is_taken_over: false,
            taken_over_by: None,
            awaits_failover: false,
            has_misfire_mark: false,
            is_disabled: false,
            last_run: Some(LastRun {
                run_id: Some(run.to_owned()),
                due_at: None,
                attempt: 1,
                instance: None,
                state,
                since: None,
            }),
            problem: None,
        }
    }

    /// The final state of a shard after these pages, and whether it succeeded.
    fn after(pages: &[(&str, LedgerState)], has_failover: bool) -> (String, bool) {
        let mut awaited = BTreeMap::from([(0, ShardState::Pending)]);
        for (run, state) in pages {
            update(&mut awaited, &[shard(run, *state)], "ours", has_failover);
        }
        let ended: Vec<AwaitedShard> =
            awaited.into_iter().map(|(item, end)| AwaitedShard { item, end }).collect();
        let job = "settle".parse().unwrap();
        (ended[0].state(), AwaitedShard::check_all(&job, &ended, Duration::from_secs(1)).is_ok())
    }

    #[test]
    fn shard_has_ended_when_its_page_of_this_run_says_so() {
        use LedgerState::{Done, Failed, Lost, Running};
        for (pages, has_failover, state, succeeded) in [
            (&[("before", Done)][..], false, "PENDING", false),
            (&[("before", Running), ("ours", Running)], false, "RUNNING", false),
            (&[("ours", Running), ("ours", Done)], false, "DONE", true),
            (&[("ours", Done), ("next", Failed)], false, "DONE", true),
            (&[("ours", Failed), ("next", Done)], false, "FAILED", false),
            (&[("ours", Running), ("next", Running)], false, "UNKNOWN", false),
            (&[("ours", Lost), ("ours", Done)], false, "LOST", false),
            (&[("ours", Lost), ("ours", Done)], true, "DONE", true),
        ] {
            assert_eq!(
                after(pages, has_failover),
                (state.to_owned(), succeeded),
                "{pages:?} {has_failover}"
            );
        }
    }
}
