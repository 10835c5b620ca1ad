//! Findings about the explained fire of a shard: what the ledger knows of it, or why it was not started.

use jiff::{SignedDuration, Timestamp};

use super::{JobContext, Report, Severity, Topic};
use crate::{
    admin::model::{Instance, Language, Shard, ShardStatus},
    coordination::ledger::{LedgerPage, LedgerState, with_tolerance},
    job::{CatchUp, RunId},
};

impl JobContext<'_> {
    pub(super) fn explain_fire(&self, shard: &Shard, report: &mut Report) {
        let page = match self.snapshot.page(shard.item) {
            None => LedgerPage::default(),
            Some((Ok(page), _)) => page,
            Some((Err(error), _)) => {
                let hint = format!("elasticjob shard reset {} {}", self.snapshot.job, shard.item);
                report.blocking(Topic::Unreadable, error.to_string(), &hint);
                return;
            }
        };
        let by = page.holder.as_ref().map_or("an unknown instance".to_owned(), ToString::to_string);
        let attempt = page.attempt;
        if let Some(run) = page.run.as_ref().filter(|run| !run.is_scheduled()) {
            report.info(
                Topic::Started,
                format!(
                    "its newest run {run} was triggered: {}, attempt {attempt}, by {by}",
                    outcome(page.state)
                ),
            );
        }
        let Some(due) = self.due_at.filter(|due| *due <= self.now) else { return };
        match page.due_at {
            Some(known) if known == due && page.run.as_ref().is_some_and(RunId::is_scheduled) => {
                let message = format!(
                    "the fire of {due} was started by {by}: {}, attempt {attempt}",
                    outcome(page.state)
                );
                match page.state {
                    LedgerState::Failed => {
                        report.warning(Topic::Started, message, "see the log of the handler");
                    }
                    LedgerState::Lost => report.warning(
                        Topic::Started,
                        message,
                        "it runs again by failover, or at its next fire",
                    ),
                    _ => report.info(Topic::Started, message),
                }
            }
            Some(known) if known == due => {
                report.info(Topic::Started, format!("the fire of {due} was started"));
            }
            Some(known) if known > with_tolerance(self.now) => report.warning(
                Topic::Limits,
                format!(
                    "its page names the fire of {known}, which is not due yet: a clock was ahead"
                ),
                "the next fire corrects the page",
            ),
            Some(known) if known > due => {
                report.info(Topic::Limits, format!("a later fire, of {known}, was started: {}; the ledger keeps only the newest", outcome(page.state)));
            }
            known => self.explain_missed(shard, due, known, report),
        }
    }

    /// The ledger has no start of the fire: finds out why.
    fn explain_missed(
        &self,
        shard: &Shard,
        due: Timestamp,
        last: Option<Timestamp>,
        report: &mut Report,
    ) {
        let owner = shard
            .owner
            .as_ref()
            .and_then(|owner| self.instances.iter().find(|instance| instance.id == *owner));
        if shard.language == Some(Language::Java)
            || self.instances.iter().any(|instance| instance.language == Language::Java)
        {
            report.info(Topic::Limits, format!("it is not known whether the fire of {due} was started: a Java instance may have run it"));
            return;
        }
        let first = self.instances.iter().filter_map(|instance| instance.since).min();
        let joined_late = |instance: &Instance| instance.since.filter(|since| *since > due);
        let reason = if let Some(first) = first.filter(|first| *first > due) {
            let policy = self.job.map(|job| job.props.policies().catch_up);
            let catch_up = match policy {
                None | Some(CatchUp::None) => "catch-up is off",
                Some(_) => "the catch-up policy of the job applies",
            };
            format!(
                "none of the current instances had joined yet: the first joined at {first}, and {catch_up}"
            )
        } else if self.instances.is_empty() {
            "the job has no instance".to_owned()
        } else if let Some((owner, since)) =
            owner.and_then(|owner| Some((owner, joined_late(owner)?)))
        {
            format!("its owner {} joined at {since}, after it was due", owner.id)
        } else if let Some(running) =
            shard.running.as_ref().filter(|running| running.since.is_some_and(|since| since <= due))
        {
            format!("{} was still running it", running.instance)
        } else if shard.status == ShardStatus::Disabled {
            "the shard is disabled".to_owned()
        } else if report.findings.iter().any(|finding| {
            finding.severity == Severity::Blocking
                && finding.shard.is_none_or(|shard| Some(shard) == report.shard)
        }) {
            "see the blocking findings above".to_owned()
        } else if self.now.duration_since(due) < SignedDuration::from_secs(5) {
            "it is due just now".to_owned()
        } else {
            "the registry does not show why".to_owned()
        };
        let last = last.map_or("no fire of its schedule was ever started".to_owned(), |last| {
            format!("the last one started was that of {last}")
        });
        report.warning(
            Topic::Missed,
            format!("the fire of {due} was not started: {reason}; {last}"),
            "a fire that was missed while the job had an instance is compensated right after",
        );
    }
}

fn outcome(state: LedgerState) -> &'static str {
    match state {
        LedgerState::Fresh => "not run yet",
        LedgerState::Running => "running",
        LedgerState::Done => "done",
        LedgerState::Failed => "failed",
        LedgerState::Lost => "lost because its instance is gone",
    }
}
