//! Runs the fires that came due while no instance was up.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::run::{RunContext, RunResult};
use crate::{
    coordination::member::ClaimScope,
    history::MissedReason,
    job::{CatchUp, Fire},
    schedule::{Missed, Schedule},
};

/// Until when fires are caught up.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatchUpEnd {
    /// When this instance joined. Fires due up to then run if the policy allows it and no instance has started them:
    /// an earlier instance may be dead although its session has not ended.
    pub(super) run_until: Timestamp,
    /// When the first of the present instances joined. Only fires due before are reported as missed while no instance
    /// was up.
    pub(super) report_until: Timestamp,
}

impl RunContext {
    /// Runs the fires due while no instance was up, as far as the catch-up policy allows, and reports the rest as
    /// missed. Later fires are handled as misfires.
    pub(super) async fn catch_up(
        &self,
        schedule: Schedule,
        until: CatchUpEnd,
        max_wait: Duration,
    ) -> RunResult {
        let last_due = self.claims.last_due().await;
        if last_due.is_empty() {
            return RunResult::NoShardsYet;
        }
        let Some(last) = last_due.values().flatten().min().copied() else {
            return RunResult::NothingToRun;
        };
        let CatchUpEnd { run_until: until, report_until } = until;
        if last >= until {
            return RunResult::NothingToRun;
        }
        // The fires after `from` are computed one by one: a window of years has more than fit into memory.
        let just_before = |due: Timestamp| due - SignedDuration::from_nanos(1);
        let from = match self.job.props.policies().catch_up {
            CatchUp::None => until,
            CatchUp::Last => {
                let just_after = until + SignedDuration::from_nanos(1);
                let newest = schedule.prev_before(just_after).filter(|due| *due > last);
                newest.map_or(until, just_before)
            }
            CatchUp::All { window } => {
                until.saturating_sub(window).unwrap_or(Timestamp::MIN).max(last)
            }
        };
        let mut catch_up = schedule.fires_between(from, until).peekable();
        let before = catch_up.peek().map_or(until, |first| just_before(*first));
        let mut missed = schedule.missed(last, before.min(report_until), SignedDuration::MAX);
        let mut result = RunResult::NothingToRun;
        for due_at in catch_up {
            let fire = Fire::scheduled(self.job.name.clone(), due_at);
            match self.run_fire(fire, ClaimScope::CatchUp, max_wait).await {
                RunResult::NothingToRun => {}
                // If the next fire ran, the ledger would show this one as done.
                RunResult::Ran { unclaimed } if !unclaimed.is_empty() => {
                    return RunResult::Postponed;
                }
                postponed @ RunResult::Postponed => return postponed,
                other => result = other,
            }
            // Not before: a catch-up that is postponed starts again from the ledger, and would report them again.
            self.report_missed(missed.take());
            if self.cancel.is_cancelled() {
                break;
            }
        }
        self.report_missed(missed);
        result
    }

    fn report_missed(&self, missed: Option<Missed>) {
        let Some(missed) = missed else { return };
        let Missed { first, last, count } = missed;
        self.listeners.missed(&self.job.name, count);
        self.history.record_missed(&self.job.name, missed, MissedReason::NoInstance);
        self.reported.note(missed);
        tracing::warn!(
            job = %self.job.name, count, %first, %last,
            hint = "elasticjob.catch.up sets which of them run",
            "fires missed while no instance was up"
        );
    }
}
