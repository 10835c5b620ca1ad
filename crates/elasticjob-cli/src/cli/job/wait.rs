//! Waiting for a run to end.
//!
//! Rust instances write what becomes of a shard on its page of the ledger. The ledger is watched from before anybody is asked, and its pages are read
//! whenever one of them changes. Java keeps no ledger, so its shards are not waited for.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use elasticjob::{
    admin::{Asked, Language, LastRun, LedgerChanges, RunState, Shard},
    job::{Failover, JobName},
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};

use crate::{
    cli::connection::{Connection, or_dash, status_text, to_json},
    error::{Code, Error},
    output,
};

/// Somebody waits for the end of a run.
pub(super) struct RunWaiter<'s> {
    job: &'s JobName,
    /// All, if there are none.
    shards: &'s BTreeSet<u32>,
    /// Whether what a dead instance leaves is run again.
    goes_on: bool,
    ledger: LedgerChanges,
}

/// A shard that was waited for.
pub(super) struct AwaitedShard {
    item: u32,
    end: ShardState,
}

/// What was seen of it.
enum ShardState {
    /// Nobody has started it.
    Pending,
    /// It was started.
    Started(LastRun),
    /// It came to an end.
    Ended(LastRun),
    /// It was started, and its page speaks of another run now.
    Overwritten,
}

impl<'s> RunWaiter<'s> {
    /// Begins to watch.
    pub(super) async fn begin(
        connection: &Connection,
        job: &'s JobName,
        shards: &'s BTreeSet<u32>,
    ) -> Result<Self, Error> {
        let details = connection.or_suggest(job, connection.admin.job(job).await).await?;
        let goes_on =
            details.configuration.job.is_some_and(|job| matches!(job.failover, Failover::TakeOver));
        let ledger = connection.admin.ledger_changes(job).await?;
        Ok(Self { job, shards, goes_on, ledger })
    }

    /// Waits until every shard has ended, but not for ever.
    pub(super) async fn keep(
        mut self,
        connection: &Connection,
        asked: &Asked,
        patience: Duration,
    ) -> Result<Vec<AwaitedShard>, Error> {
        let mut patience = pin!(SystemClock.sleep_until(SystemClock.monotonic() + patience));
        let run = asked.run.to_string();
        let shards = connection.admin.shards(self.job).await?;
        let mut awaited = self.meant(&shards, asked)?;
        note(&mut awaited, &shards, &run, self.goes_on);
        while awaited
            .values()
            .any(|end| matches!(end, ShardState::Pending | ShardState::Started(_)))
        {
            tokio::select! {
                () = &mut patience => break,
                change = self.ledger.next() => change?,
            }
            note(&mut awaited, &connection.admin.shards(self.job).await?, &run, self.goes_on);
        }
        Ok(awaited.into_iter().map(|(item, end)| AwaitedShard { item, end }).collect())
    }

    /// The shards that can be waited for; why not for the others is said.
    fn meant(&self, shards: &[Shard], asked: &Asked) -> Result<BTreeMap<u32, ShardState>, Error> {
        let mut meant = BTreeMap::new();
        for shard in shards {
            let item = shard.item;
            if !self.shards.is_empty() && !self.shards.contains(&item) {
                continue;
            }
            let owner = shard.owner.as_deref().unwrap_or_default();
            let why = if shard.is_disabled {
                "it is disabled".to_owned()
            } else if shard.language == Some(Language::Java) {
                format!("{owner} is a Java instance, which keeps no ledger")
            } else if asked.waiting.iter().any(|id| id == owner) {
                format!("{owner} runs it by another name")
            } else {
                meant.insert(item, ShardState::Pending);
                continue;
            };
            output::say(&format!("note: shard {item} is not waited for: {why}"));
        }
        if meant.is_empty() {
            return Err(Error::new(
                Code::Refused,
                format!(
                    "job {} was asked to run, but there is no shard that can be waited for; hint: trigger it without --wait",
                    self.job
                ),
            ));
        }
        Ok(meant)
    }
}

/// Takes note of what the pages say.
fn note(awaited: &mut BTreeMap<u32, ShardState>, shards: &[Shard], run: &str, goes_on: bool) {
    for (item, end) in awaited {
        let page = shards.iter().find(|shard| shard.item == *item);
        let page = page.and_then(|shard| shard.last_run.as_ref());
        let ours = page.filter(|page| page.run_id.as_deref() == Some(run));
        match (&end, ours) {
            (ShardState::Pending | ShardState::Started(_), Some(page)) => {
                let is_over = match page.state {
                    RunState::Done | RunState::Failed => true,
                    RunState::Lost => !goes_on,
                    RunState::Fresh | RunState::Running => false,
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

    /// A row for people.
    pub(super) fn cells(&self) -> [String; 4] {
        let page = self.page();
        [
            self.item.to_string(),
            self.state(),
            page.map_or("-".to_owned(), |page| page.attempt.to_string()),
            or_dash(page.and_then(|page| page.instance.as_deref())),
        ]
    }

    /// The same for programs.
    pub(super) fn to_json(&self) -> Value {
        let mut told = self.page().and_then(|page| to_json(page).ok()).unwrap_or_else(|| json!({}));
        told["item"] = self.item.into();
        told["state"] = self.state().into();
        told
    }

    /// Whether all is well.
    pub(super) fn verdict(job: &JobName, ended: &[Self], patience: Duration) -> Result<(), Error> {
        let mut texts = Vec::new();
        for Self { item, end } in ended {
            texts.push(match end {
                ShardState::Ended(page) if page.state == RunState::Done => continue,
                ShardState::Ended(page) if page.state == RunState::Lost => format!(
                    "shard {item} of job {job} is lost: whoever ran it is gone; hint: with failover another instance takes it over"
                ),
                ShardState::Ended(_) => format!(
                    "shard {item} of job {job} failed; hint: look at what the handler says"
                ),
                ShardState::Overwritten => format!(
                    "how shard {item} of job {job} ended is not known: the next run has begun already"
                ),
                ShardState::Pending | ShardState::Started(_) => format!(
                    "shard {item} of job {job} has not ended within {patience:?}; hint: elasticjob job explain {job} --shard {item}"
                ),
            });
        }
        if texts.is_empty() {
            return Ok(());
        }
        let problems = texts.iter().map(elasticjob::problem::Problem::new).collect();
        Err(Error { code: Code::RunFailed, problems })
    }
}

#[cfg(test)]
mod tests {
    use elasticjob::admin::ShardStatus;

    use super::*;

    /// A shard whose page speaks of this run.
    fn shard(run: &str, state: RunState) -> Shard {
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
            waits_for_failover: false,
            is_misfired: false,
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

    /// What is known of a shard whose page said these things, one after the other.
    fn after(pages: &[(&str, RunState)], goes_on: bool) -> (String, bool) {
        let mut awaited = BTreeMap::from([(0, ShardState::Pending)]);
        for (run, state) in pages {
            note(&mut awaited, &[shard(run, *state)], "ours", goes_on);
        }
        let ended: Vec<AwaitedShard> =
            awaited.into_iter().map(|(item, end)| AwaitedShard { item, end }).collect();
        let job = "settle".parse().unwrap();
        (ended[0].state(), AwaitedShard::verdict(&job, &ended, Duration::from_secs(1)).is_ok())
    }

    #[test]
    fn a_shard_has_ended_when_its_page_says_so_of_this_run() {
        use RunState::{Done, Failed, Lost, Running};
        for (pages, goes_on, state, is_well) in [
            (&[("before", Done)][..], false, "PENDING", false),
            (&[("before", Running), ("ours", Running)], false, "RUNNING", false),
            (&[("ours", Running), ("ours", Done)], false, "DONE", true),
            (&[("ours", Done), ("next", Failed)], false, "DONE", true),
            (&[("ours", Failed), ("next", Done)], false, "FAILED", false),
            (&[("ours", Running), ("next", Running)], false, "UNKNOWN", false),
            (&[("ours", Lost), ("ours", Done)], false, "LOST", false),
            (&[("ours", Lost), ("ours", Done)], true, "DONE", true),
        ] {
            assert_eq!(after(pages, goes_on), (state.to_owned(), is_well), "{pages:?} {goes_on}");
        }
    }
}
