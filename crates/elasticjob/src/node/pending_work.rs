//! What a job loop starts when it is idle.

use std::collections::VecDeque;

use crate::{coordination::trigger::TriggeredRun, job::Fire};

/// More pending triggers than this are not kept: the member announces them again.
const MAX_TRIGGERS: usize = 1_000;

/// What a job loop starts when it is idle. Apart from the fire and the triggers, these are flags: each says that the registry may hold work of one
/// kind. The run looks up whether it does, so the flags need not be exact.
#[derive(Debug, Default)]
pub(super) struct PendingWork {
    due_fire: Option<Fire>,
    triggers: VecDeque<TriggeredRun>,
    /// A trigger could not start. Others come first: one that waits for a shard which another instance runs may wait for hours.
    is_trigger_postponed: bool,
    pub(super) needs_catch_up: bool,
    pub(super) may_have_misfires: bool,
    /// The newest misfire that is to run after the present run.
    promised: Option<Fire>,
    /// A promised misfire of a schedule that does not apply any more, so that no run would look it up.
    of_old_schedule: Option<Fire>,
}

/// One thing to start.
#[derive(Debug, Clone)]
pub(super) enum WorkItem {
    Fire(Fire),
    Trigger(TriggeredRun),
    CatchUp,
    /// The newest misfire, if there is one. Carries what was promised, so that it can be put back.
    Misfire(Option<Fire>),
    /// A misfire of a schedule that does not apply any more.
    OldMisfire(Fire),
}

impl PendingWork {
    /// Sets the fire that is due. It replaces an earlier one that has not started.
    pub(super) fn set_due(&mut self, fire: Fire) {
        self.due_fire = Some(fire);
    }

    /// A fire is due during a run and is to run after it. It replaces an earlier one.
    pub(super) fn promise_misfire(&mut self, fire: Fire) {
        self.may_have_misfires = true;
        self.promised = Some(fire);
    }

    /// The schedule has changed: what was promised is kept.
    pub(super) fn change_schedule(&mut self) {
        if let Some(fire) = self.promised.take() {
            self.of_old_schedule = Some(fire);
        }
    }

    /// Puts back an item that could not start. A fire is dropped if a later one is due by now, because that one replaces it.
    pub(super) fn put_back(&mut self, item: WorkItem) {
        match item {
            WorkItem::Fire(fire) => drop(self.due_fire.get_or_insert(fire)),
            WorkItem::Trigger(trigger) => {
                self.is_trigger_postponed = true;
                if self.triggers.iter().all(|known| known.run != trigger.run) {
                    self.triggers.push_back(trigger);
                }
            }
            WorkItem::CatchUp => self.needs_catch_up = true,
            WorkItem::Misfire(promised) => {
                self.may_have_misfires = true;
                self.promised = self.promised.take().or(promised);
            }
            WorkItem::OldMisfire(fire) => drop(self.of_old_schedule.get_or_insert(fire)),
        }
    }

    /// Adds a triggered run, unless it is pending already.
    pub(super) fn push_trigger(&mut self, trigger: TriggeredRun) {
        if let Some(known) = self.triggers.iter_mut().find(|known| known.run == trigger.run) {
            *known = trigger;
        } else if self.triggers.len() < MAX_TRIGGERS {
            self.triggers.push_back(trigger);
        }
    }

    /// Forgets the triggers: they are stored, and the member of the next session announces those that have shards for it.
    pub(super) fn clear_triggers(&mut self) {
        self.triggers.clear();
    }

    pub(super) fn has_triggers(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// Takes the fire that is due.
    pub(super) fn next_fire(&mut self) -> Option<WorkItem> {
        self.due_fire.take().map(WorkItem::Fire)
    }

    /// Takes the next item.
    pub(super) fn next(&mut self) -> Option<WorkItem> {
        if let Some(fire) = self.next_fire() {
            return Some(fire);
        }
        if std::mem::take(&mut self.is_trigger_postponed) {
            return self.next_compensation().or_else(|| self.next_trigger());
        }
        self.next_trigger().or_else(|| self.next_compensation())
    }

    fn next_trigger(&mut self) -> Option<WorkItem> {
        self.triggers.pop_front().map(WorkItem::Trigger)
    }

    fn next_compensation(&mut self) -> Option<WorkItem> {
        if std::mem::take(&mut self.needs_catch_up) {
            return Some(WorkItem::CatchUp);
        }
        if let Some(fire) = self.of_old_schedule.take() {
            return Some(WorkItem::OldMisfire(fire));
        }
        let has_misfires = std::mem::take(&mut self.may_have_misfires);
        has_misfires.then(|| WorkItem::Misfire(self.promised.take()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{RunId, ShardSelection};

    #[test]
    fn due_fire_comes_first_and_a_postponed_trigger_lets_others_go_first() {
        let fire = Fire::scheduled("j".parse().unwrap(), jiff::Timestamp::UNIX_EPOCH);
        let triggered = |number| TriggeredRun {
            run: RunId::triggered(number),
            at: jiff::Timestamp::UNIX_EPOCH,
            shards: ShardSelection::All,
            is_whole: true,
            parameter: None,
            by: None,
        };
        let mut pending = PendingWork { may_have_misfires: true, ..PendingWork::default() };
        for number in [1, 2, 1] {
            pending.push_trigger(triggered(number));
        }
        let postponed = pending.next().unwrap();
        pending.put_back(postponed);
        pending.set_due(fire);

        let order: Vec<String> = std::iter::from_fn(|| pending.next())
            .map(|item| format!("{item:?}").split(['(', ' ']).next().unwrap().to_owned())
            .collect();

        assert_eq!(order, ["Fire", "Misfire", "Trigger", "Trigger"], "one trigger was put back");
    }
}
