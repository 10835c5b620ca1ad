//! Which fires of which shards should have run, as far as this instance can tell. Pure.
//!
//! A fire that no instance started was missed, unless it was not to run: the job or the shard was disabled, no server was enabled, or the
//! shard did not exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use jiff::Timestamp;

use crate::{
    coordination::{sharding::available_instances, view::View},
    job::Job,
};

#[derive(Debug)]
pub(super) struct MissedFires {
    total: u32,
    disabled: BTreeSet<u32>,
    /// When shards were enabled or added; earlier fires were not to run.
    enabled_since: BTreeMap<u32, Timestamp>,
    is_open: bool,
    /// When the job and at least one server were enabled; earlier fires were not to run.
    open_since: Option<Timestamp>,
    /// The span of our last run of each shard, by our clock, with a claim that every instance could see and that was not lost.
    own_runs: BTreeMap<u32, RangeInclusive<Timestamp>>,
    /// Misfire marks that were there before any instance was: no owner waits for those fires.
    leftover_marks: BTreeSet<u32>,
}

impl MissedFires {
    /// An instance that joins knows nothing of the time before; its owner knows since when it tries to be a member.
    pub(super) fn new(job: &Job, leftover_marks: BTreeSet<u32>) -> Self {
        Self {
            total: job.shards.get(),
            disabled: BTreeSet::new(),
            enabled_since: BTreeMap::new(),
            is_open: true,
            open_since: None,
            own_runs: BTreeMap::new(),
            leftover_marks,
        }
    }

    pub(super) fn observe(&mut self, view: &View, job: &Job, now: Timestamp) {
        if !view.is_current() {
            return;
        }
        // The clock may have been set back since.
        for since in self.enabled_since.values_mut().chain(&mut self.open_since) {
            *since = (*since).min(now);
        }
        let disabled: BTreeSet<u32> = view
            .shards
            .iter()
            .filter(|(_, shard)| shard.disabled)
            .map(|(shard, _)| *shard)
            .collect();
        for shard in self.disabled.difference(&disabled) {
            self.enabled_since.insert(*shard, now);
        }
        self.disabled = disabled;
        let total = job.shards.get();
        self.enabled_since.extend((self.total..total).map(|shard| (shard, now)));
        self.total = total;
        if let Some(candidates) = available_instances(view) {
            let is_open = !job.disabled && !candidates.is_empty();
            if is_open && !self.is_open {
                self.open_since = Some(now);
            }
            self.is_open = is_open;
        }
    }

    pub(super) fn should_have_run(&self, shard: u32, due_at: Timestamp) -> bool {
        self.open_since.is_none_or(|since| due_at > since)
            && self.enabled_since.get(&shard).is_none_or(|since| due_at > *since)
    }

    /// Since when fires of this shard were to run, given the last one that was started.
    pub(super) fn due_since(&self, shard: u32, last: Timestamp) -> Timestamp {
        let enabled = self.enabled_since.get(&shard).copied();
        [self.open_since, enabled].into_iter().flatten().fold(last, Timestamp::max)
    }

    pub(super) fn note_run(&mut self, shard: u32, span: RangeInclusive<Timestamp>) {
        self.own_runs.insert(shard, span);
    }

    /// Whether we ran this shard at that time, and so no other instance did.
    pub(super) fn ran_here(&self, shard: u32, at: Timestamp) -> bool {
        self.own_runs.get(&shard).is_some_and(|span| span.contains(&at))
    }

    pub(super) fn is_leftover(&self, shard: u32) -> bool {
        self.leftover_marks.contains(&shard)
    }

    /// The shard was claimed, which deletes its mark: the next mark is a new one.
    pub(super) fn settle_leftover(&mut self, shard: u32) {
        self.leftover_marks.remove(&shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{TestView, US},
        tree::ShardNode,
    };

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn fire_was_not_to_run_while_its_shard_was_disabled_or_did_not_exist() {
        let test = TestView::new(1, &[US]).owners(&[US]).part(0, ShardNode::Disabled, "");
        let mut missed = MissedFires::new(&test.job, BTreeSet::new());
        missed.observe(&test.view, &test.job, second(10));
        let test = test.without(|tree| tree.shard(0, ShardNode::Disabled)).job(|job| job.shards(2));
        missed.observe(&test.view, &test.job, second(20));

        for shard in [0, 1] {
            assert!(!missed.should_have_run(shard, second(20)));
            assert!(missed.should_have_run(shard, second(21)));
            assert_eq!(missed.due_since(shard, second(5)), second(20));
            assert_eq!(missed.due_since(shard, second(25)), second(25));
        }
    }

    #[test]
    fn fire_was_not_to_run_while_no_server_was_enabled() {
        let server = |tree: &crate::coordination::tree::JobTree| tree.server("10.0.0.1");
        let test = TestView::new(1, &[US]).owners(&[US]).with(server, "DISABLED");
        let mut missed = MissedFires::new(&test.job, BTreeSet::new());
        assert!(missed.should_have_run(0, second(5)), "nothing is known of the time before");
        missed.observe(&test.view, &test.job, second(10));
        let test = test.with(server, "ENABLED");
        missed.observe(&test.view, &test.job, second(20));

        assert!(!missed.should_have_run(0, second(20)));
        assert!(missed.should_have_run(0, second(21)));
    }

    #[test]
    fn leftover_mark_counts_until_the_shard_is_claimed() {
        let test = TestView::new(1, &[US]);
        let mut missed = MissedFires::new(&test.job, BTreeSet::from([0]));
        assert!(missed.is_leftover(0));

        missed.settle_leftover(0);
        assert!(!missed.is_leftover(0));
    }
}
