//! The fire in question: what the ledger says of it, or why there is nothing.

use jiff::{SignedDuration, Timestamp};

use super::{Story, Topic, Weight, Whole};
use crate::{
    admin::model::{Instance, Language, Shard, ShardStatus},
    coordination::ledger::{Page, State},
    job::{CatchUp, RunId},
};

impl Whole<'_> {
    pub(super) fn tell_fire(&self, shard: &Shard, story: &mut Story) {
        let page = match self.picture.page(shard.item) {
            None => Page::default(),
            Some((Ok(page), _)) => page,
            Some((Err(error), _)) => {
                story.blocks(
                    Topic::Unreadable,
                    error.to_string(),
                    "remove that page if nobody else can read it",
                );
                return;
            }
        };
        let by = page.owner.as_ref().map_or("somebody".to_owned(), ToString::to_string);
        let attempt = page.attempt;
        if let Some(run) = page.run.as_ref().filter(|run| !run.is_scheduled()) {
            story.informs(
                Topic::Started,
                format!(
                    "its newest run {run} was asked for: {}, attempt {attempt}, by {by}",
                    outcome(page.state)
                ),
            );
        }
        let Some(due) = self.due_at.filter(|due| *due <= self.now) else { return };
        match page.due_at {
            Some(known) if known == due && page.run.as_ref().is_some_and(RunId::is_scheduled) => {
                let says = format!(
                    "the fire of {due} was started by {by}: {}, attempt {attempt}",
                    outcome(page.state)
                );
                match page.state {
                    State::Failed => {
                        story.matters(Topic::Started, says, "look at what the handler says");
                    }
                    State::Lost => story.matters(
                        Topic::Started,
                        says,
                        "it runs again by failover, or at its next fire",
                    ),
                    _ => story.informs(Topic::Started, says),
                }
            }
            Some(known) if known == due => {
                story.informs(Topic::Started, format!("the fire of {due} was started"));
            }
            Some(known) if known > due => {
                story.informs(Topic::Limits, format!("a later fire, of {known}, was started: {}; the ledger keeps no earlier ones", outcome(page.state)));
            }
            known => self.tell_missed(shard, due, known, story),
        }
    }

    /// Nobody started it, by the ledger.
    fn tell_missed(
        &self,
        shard: &Shard,
        due: Timestamp,
        last: Option<Timestamp>,
        story: &mut Story,
    ) {
        let owner = shard
            .owner
            .as_ref()
            .and_then(|owner| self.instances.iter().find(|instance| instance.id == *owner));
        if shard.language == Some(Language::Java)
            || self.instances.iter().any(|instance| instance.language == Language::Java)
        {
            story.informs(Topic::Limits, format!("whether the fire of {due} was started is not known: a Java instance may have run it"));
            return;
        }
        let first = self.instances.iter().filter_map(|instance| instance.since).min();
        let since = |instance: &Instance| instance.since.filter(|since| *since > due);
        let why = if let Some(first) = first.filter(|first| *first > due) {
            let policy = self.job.map(|job| job.props.policies().catch_up);
            let after = match policy {
                None | Some(CatchUp::None) => "and catching up is off",
                Some(_) => "and it is caught up with, as the job says",
            };
            format!(
                "nobody of those who are there now was a member: the first entered at {first}, {after}"
            )
        } else if self.instances.is_empty() {
            "nobody is a member".to_owned()
        } else if let Some((owner, since)) = owner.and_then(|owner| Some((owner, since(owner)?))) {
            format!("its owner {} entered at {since}, after it was due", owner.id)
        } else if let Some(running) =
            shard.running.as_ref().filter(|running| running.since.is_some_and(|since| since <= due))
        {
            format!("{} was still running it", running.instance)
        } else if shard.status == ShardStatus::Disabled {
            "the shard is disabled".to_owned()
        } else if story.findings.iter().any(|finding| {
            finding.weight == Weight::Blocks
                && finding.shard.is_none_or(|shard| Some(shard) == story.shard)
        }) {
            "what blocks it is named above".to_owned()
        } else if self.now.duration_since(due) < SignedDuration::from_secs(5) {
            "it is due just now".to_owned()
        } else {
            "nothing in the tree says why".to_owned()
        };
        let last = last.map_or("it never ran by its schedule".to_owned(), |last| {
            format!("the last one started was {last}")
        });
        story.matters(
            Topic::Missed,
            format!("the fire of {due} was not started: {why}; {last}"),
            "what was missed while somebody was a member is made up for right after",
        );
    }
}

fn outcome(state: State) -> &'static str {
    match state {
        State::Fresh => "not run yet",
        State::Running => "it runs",
        State::Done => "done",
        State::Failed => "failed",
        State::Lost => "lost, whoever ran it is gone",
    }
}
