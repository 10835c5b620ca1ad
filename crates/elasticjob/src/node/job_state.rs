//! State of a job loop that outlives registry sessions: runs in progress and pending work.

use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};
use tokio::task::{self, JoinSet};

use super::{
    pending_work::{PendingWork, WorkItem},
    reported_fires::ReportedFires,
    run::RunResult,
};
use crate::{
    coordination::{member::BusyShards, trigger::TriggeredRun},
    job::ShardSelection,
    runtime::CancelToken,
    schedule::{Missed, Schedule},
};

/// State of a job loop that outlives registry sessions.
pub(super) struct JobState {
    /// Fires due after this instant are compensated if they did not run.
    pub(super) since: Timestamp,
    /// When this instance joined first. Fires that no instance has started until then are caught up.
    pub(super) joined_at: Timestamp,
    /// When the first of the present instances joined: this one, or one that was there before. Fires due until then
    /// are reported as missed while no instance was up.
    pub(super) first_joined_at: Timestamp,
    /// The fire that the timer reported last.
    pub(super) last_alarm: Timestamp,
    pub(super) reported: ReportedFires,
    /// The catch-up of fires that came due while no instance was up is done.
    pub(super) is_caught_up: bool,
    pub(super) busy: BusyShards,
    pub(super) pending: PendingWork,
    /// Runs in progress, including those of earlier sessions.
    pub(super) runs: JoinSet<RunResult>,
    /// Cancels all runs.
    pub(super) cancel: CancelToken,
    /// The work items of this session's runs, so that an item that never started can be put back.
    items: Vec<(task::Id, WorkItem)>,
    /// The own run of this session.
    active: Option<task::Id>,
}

/// What was postponed, so that the loop pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Postponed {
    /// The registry or the lease lets no fire start now.
    Fire,
    /// It may have waited for another instance. A fire that is due does not wait for it.
    Other,
}

impl JobState {
    pub(super) fn new(now: Timestamp, first_joined_at: Timestamp, busy: BusyShards) -> Self {
        Self {
            since: first_joined_at,
            joined_at: now,
            first_joined_at,
            last_alarm: now,
            reported: ReportedFires::since(first_joined_at),
            is_caught_up: false,
            busy,
            pending: PendingWork::default(),
            runs: JoinSet::new(),
            cancel: CancelToken::new(),
            items: Vec::new(),
            active: None,
        }
    }

    /// The timer reports this fire, or only the newest of several that passed while the process did not run: the fires since it last did.
    pub(super) fn alarm(&mut self, schedule: Option<&Schedule>, due_at: Timestamp) -> Missed {
        let last = std::mem::replace(&mut self.last_alarm, due_at).max(self.since);
        let passed = schedule.and_then(|it| it.missed(last, due_at, SignedDuration::MAX));
        passed.unwrap_or(Missed { first: due_at, last: due_at, count: 1 })
    }

    /// Begins a new session and returns the request that cancels its runs. Runs of the previous session continue and no longer delay new ones.
    pub(super) fn begin_session(&mut self) -> CancelToken {
        self.items.clear();
        self.pending.clear_triggers();
        self.active = None;
        self.cancel.child()
    }

    /// Takes the next item that may start now, while the loop pauses after this postponed item.
    pub(super) fn next_item(&mut self, postponed: Option<Postponed>) -> Option<WorkItem> {
        match postponed {
            _ if self.active.is_some() => None,
            None => self.pending.next(),
            Some(Postponed::Other) => self.pending.next_fire(),
            Some(Postponed::Fire) => None,
        }
    }

    /// An own run started. Failover runs are not noted here: they wait for no run, and no run waits for them.
    pub(super) fn run_started(&mut self, id: task::Id, item: WorkItem) {
        self.active = Some(id);
        self.items.push((id, item));
    }

    /// Whether a fire that comes due has to wait, because an own run has claimed shards. A run that is still waiting to claim, or that finds out
    /// whether there is work, delays nothing.
    pub(super) fn is_running(&self) -> bool {
        self.active.is_some() && !self.busy.shards().is_empty()
    }

    /// Updates the pending work after a run. Breaks if the loop should pause before it starts the next item.
    pub(super) fn run_ended(&mut self, id: task::Id, result: RunResult) -> ControlFlow<Postponed> {
        self.active.take_if(|active| *active == id);
        let index = self.items.iter().position(|(known, _)| *known == id);
        let item = index.map(|index| self.items.swap_remove(index).1);
        let needs_catch_up = matches!(result, RunResult::NoShardsYet | RunResult::Postponed);
        if matches!(item, Some(WorkItem::CatchUp)) && !needs_catch_up {
            self.is_caught_up = true;
            self.pending.needs_catch_up = false;
        }
        match (result, item) {
            // A fire that came due during the run is a misfire now.
            (RunResult::Ran { unclaimed }, item) => {
                self.pending.may_have_misfires = true;
                match (item, ShardSelection::only(unclaimed)) {
                    (Some(WorkItem::Trigger(trigger)), Ok(shards)) => {
                        let rest = TriggeredRun { shards, ..trigger };
                        self.pending.put_back(WorkItem::Trigger(rest));
                    }
                    // The ledger knows which shards have started it.
                    (Some(item @ (WorkItem::Fire(_) | WorkItem::OldMisfire(_))), Ok(_)) => {
                        self.pending.put_back(item);
                    }
                    _ => {}
                }
            }
            (RunResult::Postponed, item) => {
                let is_fire = matches!(item, Some(WorkItem::Fire(_)));
                if let Some(item) = item {
                    self.pending.put_back(item);
                }
                return ControlFlow::Break(if is_fire {
                    Postponed::Fire
                } else {
                    Postponed::Other
                });
            }
            // If the registry still shows the owners from before: the member reports again once shards are assigned.
            (RunResult::NothingToRun | RunResult::NoShardsYet, _) => {}
        }
        ControlFlow::Continue(())
    }
}
