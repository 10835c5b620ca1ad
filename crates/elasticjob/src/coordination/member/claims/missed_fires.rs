//! Which fires of which shards should have run, as far as this instance can tell.
//!
//! A fire that no instance started was missed, unless it was not to run: the job or the shard was disabled, no server was enabled, or the
//! shard did not exist. While a Java instance is a member, and for that time afterwards, the ledger does not show what ran.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use jiff::Timestamp;

use crate::{
    coordination::{
        floor::Floor,
        member::{assignment::has_java_members, join::is_race, mirror::Mirror},
        server_status::StoredStatus,
        view::View,
    },
    job::{Job, server_of},
    registry::{Error, ExpectedVersion, Op},
    schedule::{Schedule, Zone},
};

#[derive(Debug)]
pub(super) struct MissedFires {
    total: u32,
    disabled: BTreeSet<u32>,
    is_open: bool,
    schedule: Option<Schedule>,
    has_java: bool,
    /// When the job and at least one server were enabled, and when shards were enabled or added; earlier fires were not to run.
    floor: Floor,
    is_floor_stored: bool,
    /// The span of our last run of each shard, by our clock, with a claim that every instance could see and that was not lost.
    own_runs: BTreeMap<u32, RangeInclusive<Timestamp>>,
    /// Misfire marks that were there before any instance was: no owner waits for those fires.
    leftover_marks: BTreeSet<u32>,
}

impl MissedFires {
    /// Of the time before it joined an instance knows only the stored `floor`; its owner knows since when it tries to be a member.
    pub(super) fn new(job: &Job, leftover_marks: BTreeSet<u32>, floor: Floor) -> Self {
        Self {
            total: job.shards.get(),
            disabled: BTreeSet::new(),
            is_open: true,
            schedule: job.schedule(&Zone::utc()),
            has_java: false,
            floor,
            is_floor_stored: true,
            own_runs: BTreeMap::new(),
            leftover_marks,
        }
    }

    pub(super) fn observe(&mut self, view: &View, job: &Job, now: Timestamp) {
        if !view.is_current() {
            return;
        }
        // The clock may have been set back since.
        self.floor.limit(now);
        let mut changed = Floor::default();
        let disabled: BTreeSet<u32> = view
            .shards
            .iter()
            .filter(|(_, shard)| shard.disabled)
            .map(|(shard, _)| *shard)
            .collect();
        changed.shards.extend(self.disabled.difference(&disabled).map(|shard| (*shard, now)));
        self.disabled = disabled;
        let total = job.shards.get();
        changed.shards.extend((self.total..total).map(|shard| (shard, now)));
        self.total = total;
        if let Some(is_closed) = all_servers_disabled(view) {
            let is_open = !job.disabled && !is_closed;
            if is_open && !self.is_open {
                changed.job = Some(now);
            }
            self.is_open = is_open;
        }
        let schedule = job.schedule(&Zone::utc());
        if schedule != self.schedule {
            changed.schedule = Some(now);
            self.schedule = schedule;
        }
        let has_java = has_java_members(view);
        if self.has_java && !has_java {
            changed.java = Some(now);
        }
        self.has_java = has_java;
        if changed != Floor::default() {
            self.floor.merge(&changed);
            self.is_floor_stored = false;
        }
    }

    pub(super) fn should_have_run(&self, shard: u32, due_at: Timestamp) -> bool {
        self.floor.since(shard).is_none_or(|since| due_at > since)
    }

    /// Whether a fire that is in no page was missed: Java writes none, and no Java instance has been there since the fire was due.
    pub(super) fn is_ledger_complete(&self, due_at: Timestamp) -> bool {
        !self.has_java && self.floor.java.is_none_or(|left| due_at > left)
    }

    /// Since when missed fires of this shard are known.
    pub(super) fn since(&self, shard: u32) -> Option<Timestamp> {
        self.floor.since(shard).max(self.floor.java).max(self.floor.schedule)
    }

    /// Stores since when the job and its shards are enabled, so that an instance that starts later knows it.
    pub(super) async fn store_floor(&mut self, mirror: &Mirror) -> Result<(), Error> {
        if self.is_floor_stored || mirror.view().config.is_none() {
            return Ok(());
        }
        match self.try_store_floor(mirror).await {
            Ok(is_stored) => self.is_floor_stored = is_stored,
            Err(error)
                if error.is_outage() || matches!(error, Error::SessionExpired | Error::Closed) =>
            {
                return Err(error);
            }
            // Throttled, or a quota is used up: tried again with the next change.
            Err(error) if error.is_temporary() => {
                tracing::warn!(job = %mirror.job().name, %error, "since when the job is enabled is not stored yet");
            }
            // It would be refused again, and a missing floor prevents no run.
            Err(error) => {
                self.is_floor_stored = true;
                tracing::warn!(job = %mirror.job().name, %error, "since when the job is enabled cannot be stored");
            }
        }
        Ok(())
    }

    /// `false` if another instance was faster.
    async fn try_store_floor(&self, mirror: &Mirror) -> Result<bool, Error> {
        let tree = mirror.tree();
        let stored = mirror.context().registry.get(&tree.floor()).await?;
        let op = match Floor::store(tree, stored.as_ref(), &self.floor) {
            Ok(Some(op)) => op,
            Ok(None) => return Ok(true),
            // A document that cannot be read is never overwritten.
            Err(error) => {
                tracing::warn!(job = %mirror.job().name, %error, "floor is unreadable");
                return Ok(true);
            }
        };
        let config = Op::Check { path: tree.config(), expected: ExpectedVersion::Any };
        match mirror.write(vec![config, op]).await {
            Ok(_) => Ok(true),
            Err(Error::Operation { cause, .. }) if is_race(&cause) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Since when fires of this shard were to run, given the last one that was started.
    pub(super) fn due_since(&self, shard: u32, last: Timestamp) -> Timestamp {
        self.since(shard).map_or(last, |since| last.max(since))
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

/// Whether every server with an instance is disabled, so that no fire is to run; `None` if a status is unread or there is no instance. A server without a
/// node, or with an empty status, is not disabled: it is about to be repaired.
fn all_servers_disabled(view: &View) -> Option<bool> {
    let mut are_disabled = None;
    for id in view.instances.keys() {
        let is_disabled = match view.servers.get(server_of(id)) {
            None => false,
            Some(status) => StoredStatus::of(status)? == StoredStatus::Disabled,
        };
        are_disabled = Some(are_disabled.unwrap_or(true) && is_disabled);
    }
    are_disabled
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
        let mut missed = MissedFires::new(&test.job, BTreeSet::new(), Floor::default());
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
        let mut missed = MissedFires::new(&test.job, BTreeSet::new(), Floor::default());
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
        let mut missed = MissedFires::new(&test.job, BTreeSet::from([0]), Floor::default());
        assert!(missed.is_leftover(0));

        missed.settle_leftover(0);
        assert!(!missed.is_leftover(0));
    }
}
