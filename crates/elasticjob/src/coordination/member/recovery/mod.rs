//! What becomes of the shards of dead instances.
//!
//! A shard names its holder. When a holder is dead, its shards are marked as lost: the ledger says so, their nodes are deleted, and, if the
//! job wants failover, they are flagged. Enabled instances take over a fair share of the flagged shards each, one after the other through
//! the latch that Java instances use, and claim them in the same transaction. All of this is derived from the view, so it does not matter
//! which instance saw the death, or whether any did.
//!
//! * A **Rust** holder is dead when its instance node and its process node are gone. The process node outlives a shutdown by an operator:
//!   what still runs there is not lost.
//! * A **Java** holder is dead after it was absent for [`GRACE`]: Java deletes and re-creates its instance node whenever it reconnects
//!   ([`reconnect_flap`]).

mod mark_lost;
mod reconnect_flap;
mod set_aside;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::takeover::TakeoverResult;
use self::{
    reconnect_flap::{GRACE, ReconnectFlaps},
    set_aside::SetAside,
    takeover::Takeovers,
};
use super::{
    assignment::Assignment,
    handle::{LostShard, MemberEvent},
    mirror::{Mirror, Observation},
    refusals::Refusals,
};
use crate::{
    coordination::view::{CachedNode, ShardView},
    job::{Failover, InstanceId},
    registry::Error,
    runtime::Monotonic,
};

#[derive(Default)]
pub(super) struct Recovery {
    /// A holder of shards may be dead: the holders have to be checked.
    is_suspicious: bool,
    /// Absent Java holders, each with the time from which it counts as dead.
    dead_at: BTreeMap<String, Monotonic>,
    /// When the holders were last checked.
    checked_at: Option<Monotonic>,
    /// Shards that could not be marked as lost.
    refused: BTreeMap<u32, Refusals>,
    /// Absent holders that are not dead: they may be leaving, or die while they do.
    undecided: BTreeSet<String>,
    /// Runs whose instance was absent, not yet known to be dead, and that only the ledger knows of.
    possibly_lost: BTreeMap<u32, LostShard>,
    /// Shards that were seen running since they were flagged: the lost run has been repeated.
    ran_since_flagged: BTreeSet<u32>,
    flaps: ReconnectFlaps,
    takeovers: Takeovers,
    /// A takeover waits for its turn in the latch.
    is_taking_over: bool,
    postponed_until: Option<Monotonic>,
    set_aside: SetAside,
}

impl Recovery {
    pub(super) fn observe(&mut self, mirror: &mut Mirror) {
        for observation in mirror.take_observations() {
            match observation {
                Observation::SnapshotBegan => {
                    self.is_suspicious = true;
                    self.flaps.forget();
                }
                // The holder of a flagged shard repeats the lost run. If the holder is dead itself, the shard is flagged again.
                Observation::SnapshotComplete { running } => self.ran_since_flagged.extend(running),
                Observation::InstanceGone { id, java_ran, at } => {
                    self.is_suspicious = true;
                    if let Some(ran) = java_ran {
                        self.flaps.instance_gone(&id, ran, at);
                    }
                }
                Observation::InstanceSeen { id, at } => self.flaps.instance_seen(&id, at),
                Observation::RanWhileFlagged(shard) => drop(self.ran_since_flagged.insert(shard)),
                Observation::Flagged { shard, at } => {
                    self.ran_since_flagged.remove(&shard);
                    self.set_aside.forget(shard);
                    self.flaps.flagged(shard, at);
                }
                Observation::Unflagged(shard) => {
                    self.ran_since_flagged.remove(&shard);
                    self.flaps.unflagged(shard);
                }
            }
        }
    }

    /// Whether the holders of shards have to be checked. Pure.
    pub(super) fn is_due(&self, now: Monotonic) -> bool {
        let is_new = |at: &&Monotonic| self.checked_at.is_none_or(|checked| **at > checked);
        self.is_suspicious
            || self.dead_at.values().filter(is_new).any(|at| now >= *at)
            || self.refused.values().any(|refusals| refusals.is_due(now))
    }

    /// When the first absent Java holder counts as dead, the first flag of a reconnect is decided, a takeover is tried again, or a shard that could not be
    /// marked as lost is.
    pub(super) fn next_duty_at(&self, now: Monotonic) -> Option<Monotonic> {
        let dead_at = self.dead_at.values().filter(|at| **at > now).min().copied();
        let resumes_at = self.postponed_until.filter(|until| *until > now);
        let retry_at = self.refused.values().filter_map(|refusals| refusals.retry_at(now)).min();
        let aside_until = self.set_aside.next(now);
        [dead_at, self.flaps.next_decision(now), resumes_at, aside_until, retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// The holders of shards have to be checked, whatever was observed.
    pub(super) fn suspect(&mut self) {
        self.is_suspicious = true;
    }

    /// Whether a holder is absent and not dead, so that time alone may change something.
    pub(super) fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Flagged shards that we could take over. Pure.
    pub(super) fn orphans(
        &self,
        assignment: &Assignment<'_>,
        in_hand: &BTreeSet<u32>,
        now: Monotonic,
    ) -> BTreeSet<u32> {
        let Assignment { view, job, .. } = assignment;
        let may_take_over = view.is_current()
            && job.failover == Failover::TakeOver
            && assignment.is_enabled() == Some(true)
            && assignment.is_member();
        if !may_take_over {
            return BTreeSet::new();
        }
        let is_free = |shard: &u32| {
            *shard < job.shards.get()
                && !self.flaps.is_undecided(*shard, now)
                && !self.set_aside.contains(*shard, now)
                && !in_hand.contains(shard)
                && view.shards.get(shard).is_some_and(|view| {
                    view.running.is_none() && view.failover.is_none() && !view.disabled
                })
        };
        view.failover_items.iter().copied().filter(is_free).collect()
    }

    /// Reports runs that ended with their instance and that no instance takes over.
    pub(super) async fn report_lost(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        self.possibly_lost.append(&mut mirror.pages().take_possibly_lost());
        while let Some((shard, lost)) = self.possibly_lost.pop_first() {
            match mirror.is_alive(&lost.instance).await {
                Ok(true) => {}
                Ok(false) => mirror.context().send(MemberEvent::ShardLost(Box::new(lost))),
                Err(error) => {
                    self.possibly_lost.insert(shard, lost);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// The instances that a shard's nodes name as its holders.
fn holders(view: &ShardView) -> BTreeSet<InstanceId> {
    let known = [&view.running, &view.failovering].into_iter().flatten();
    known.filter_map(CachedNode::text).filter_map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{JAVA, OTHER, TestView, US, at},
        tree::ShardNode,
    };

    /// Two flagged shards that no instance runs.
    fn orphaned() -> TestView {
        let test = TestView::new(2, &[US, OTHER])
            .owners(&[US, OTHER])
            .job(|job| job.failover(Failover::TakeOver));
        test.with(|tree| tree.failover_item(0), "").with(|tree| tree.failover_item(1), "")
    }

    fn orphans(test: &TestView, in_hand: &[u32]) -> Vec<u32> {
        let in_hand = in_hand.iter().copied().collect();
        Recovery::default().orphans(&test.assignment(), &in_hand, at(0)).into_iter().collect()
    }

    #[test]
    fn flagged_shards_are_orphans_unless_held_running_disabled_or_taken_over() {
        assert_eq!(orphans(&orphaned(), &[]), [0, 1]);

        assert_eq!(orphans(&orphaned(), &[0]), [1]);
        for part in [ShardNode::Running, ShardNode::Failover, ShardNode::Disabled] {
            assert_eq!(orphans(&orphaned().part(1, part, OTHER), &[]), [0], "{part:?}");
        }
        assert_eq!(orphans(&orphaned().job(|job| job.shards(1)), &[]), [0]);
    }

    #[test]
    fn instance_that_may_not_run_takes_over_nothing() {
        let none: [u32; 0] = [];
        let disabled = orphaned().with(|tree| tree.server("10.0.0.1"), "DISABLED");
        assert_eq!(orphans(&disabled, &[]), none);
        assert_eq!(orphans(&orphaned().without(|tree| tree.instance(US)), &[]), none);
        assert_eq!(orphans(&orphaned().job(|job| job.failover(Failover::Wait)), &[]), none);
    }

    #[test]
    fn holders_are_checked_when_suspected_and_when_a_java_holder_counts_as_dead() {
        let mut recovery = Recovery::default();
        assert!(!recovery.is_due(at(0)));

        recovery.suspect();
        assert!(recovery.is_due(at(0)));
        recovery.is_suspicious = false;
        recovery.dead_at.insert(JAVA.to_owned(), at(7));
        assert_eq!(recovery.next_duty_at(at(0)), Some(at(7)));
        assert!(!recovery.is_due(at(6)));
        assert!(recovery.is_due(at(7)));
    }
}
