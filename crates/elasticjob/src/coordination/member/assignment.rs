//! Which shards are ours and whether that is certain, derived from the view. Pure.

use std::collections::BTreeSet;

use crate::{
    coordination::{
        server_status::StoredStatus,
        sharding::available_instances,
        view::{CachedNode, View},
    },
    job::{ExpectedShards, InstanceId, Job, Resharding, Strategy, server_of},
};

/// The assignment of shards to instances, as this instance sees it.
#[derive(Clone, Copy)]
pub(super) struct Assignment<'a> {
    pub(super) view: &'a View,
    pub(super) job: &'a Job,
    pub(super) own_id: &'a InstanceId,
}

impl<'a> Assignment<'a> {
    /// The instance that a shard is assigned to; `None` while unread.
    pub(super) fn owner(&self, shard: u32) -> Option<&'a str> {
        self.view.shards.get(&shard)?.owner.as_ref()?.text()
    }

    /// Whether our server takes part; `None` while unread.
    pub(super) fn is_enabled(&self) -> Option<bool> {
        match self.view.servers.get(self.own_id.server()) {
            Some(CachedNode::Dirty) => None,
            Some(status) => {
                Some(StoredStatus::of(status) == Some(StoredStatus::Enabled) && !self.job.disabled)
            }
            None => Some(false),
        }
    }

    /// Whether we are the leader; `None` while unread.
    pub(super) fn is_leader(&self) -> Option<bool> {
        match &self.view.leader {
            None => Some(false),
            Some(CachedNode::Dirty) => None,
            Some(leader) => Some(leader.text() == Some(self.own_id.as_str())),
        }
    }

    pub(super) fn is_member(&self) -> bool {
        self.view.instances.contains_key(self.own_id.as_str())
    }

    pub(super) fn has_java_members(&self) -> bool {
        has_java_members(self.view)
    }

    /// Whether the owners are certain: no assignment is going on or requested, and every shard has an owner.
    pub(super) fn is_settled(&self) -> bool {
        let view = self.view;
        view.is_current()
            && !view.necessary
            && !view.processing
            && (0..self.job.shards.get()).all(|shard| {
                view.shards.get(&shard).is_some_and(|shard| {
                    shard.owner.as_ref().is_some_and(|owner| *owner != CachedNode::Dirty)
                })
            })
    }

    /// Whether every shard has an owner, read or not.
    pub(super) fn is_complete(&self) -> bool {
        let shards = &self.view.shards;
        (0..self.job.shards.get())
            .all(|shard| shards.get(&shard).is_some_and(|shard| shard.owner.is_some()))
    }

    /// Whether shards that could be reassigned belong to an instance that is gone.
    pub(super) fn has_absent_owners(&self) -> bool {
        if self.job.resharding == Resharding::Static
            || available_instances(self.view).is_none_or(|candidates| candidates.is_empty())
        {
            return false;
        }
        // A running shard keeps its owner, dead or alive, until it is known whether the run was lost.
        self.view.shards.range(..self.job.shards.get()).any(|(_, shard)| {
            let owner = shard.owner.as_ref().and_then(CachedNode::text);
            shard.running.is_none() && owner.is_some_and(|id| !self.view.instances.contains_key(id))
        })
    }

    /// Shards assigned to us, or whose turn it is with us, whether they may run or not.
    pub(super) fn assigned(&self) -> BTreeSet<u32> {
        if let Some(instance) = self.rotating_owner() {
            return (instance == self.own_id.as_str()).then_some(0).into_iter().collect();
        }
        let shards = self.view.shards.range(..self.job.shards.get());
        let ours = shards.filter(|(_, shard)| {
            shard.owner.as_ref().and_then(CachedNode::text) == Some(self.own_id.as_str())
        });
        ours.map(|(shard, _)| *shard).collect()
    }

    /// Shards that are ours to run: assigned to us, enabled, and not taken over by another instance.
    pub(super) fn runnable(&self) -> BTreeSet<u32> {
        if self.is_enabled() != Some(true) {
            return BTreeSet::new();
        }
        let rotating_owner = self.rotating_owner();
        let shards = self.view.shards.range(..self.job.shards.get());
        shards
            .filter(|(_, shard)| {
                let owner =
                    rotating_owner.as_deref().or(shard.owner.as_ref().and_then(CachedNode::text));
                !shard.disabled && shard.failover.is_none() && owner == Some(self.own_id.as_str())
            })
            .map(|(shard, _)| *shard)
            .collect()
    }

    /// How many of the selected shards are to run, over all instances. Pure.
    pub(super) fn expected_shards(&self, selects: impl Fn(u32) -> bool) -> ExpectedShards {
        let mut expected = ExpectedShards { tracked: 0, untracked: 0 };
        for shard in self.job.shards.items().filter(|shard| selects(*shard)) {
            let view = self.view.shards.get(&shard);
            let owner = view.and_then(|view| view.owner.as_ref()).and_then(CachedNode::text);
            let owner = owner.and_then(|id| id.parse::<InstanceId>().ok());
            if view.is_some_and(|view| view.disabled) {
                continue;
            }
            if owner.is_some_and(|id| id.is_java()) {
                expected.untracked += 1;
            } else {
                expected.tracked += 1;
            }
        }
        expected
    }

    /// The instance whose turn it is to run a rotating shard, which overrides the shard's owner: the first instance of the server that
    /// was named last. No instance, if that server has none.
    fn rotating_owner(&self) -> Option<String> {
        if !self.rotates() {
            return None;
        }
        let server = self.view.next_server.as_ref().and_then(CachedNode::text)?;
        let candidates = available_instances(self.view)?;
        let mut there: Vec<String> = candidates
            .into_iter()
            .map(|candidate| candidate.id)
            .filter(|id| server_of(id) == server)
            .collect();
        there.sort_unstable();
        there.into_iter().next()
    }

    fn rotates(&self) -> bool {
        self.job.shards.get() == 1 && Strategy::of(self.job) == Strategy::SingleShardingBalance
    }

    /// The server whose turn it is after a run of ours, for a rotating shard, in the order that Java uses.
    pub(super) fn next_server(&self) -> Option<String> {
        let candidates = available_instances(self.view).filter(|_| self.rotates())?;
        let mut ids: Vec<String> = candidates.into_iter().map(|candidate| candidate.id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let own = ids.iter().position(|id| server_of(id) == self.own_id.server())?;
        Some(server_of(&ids[(own + 1) % ids.len()]).to_owned())
    }
}

/// Whether a Java instance is a member of the job.
pub(super) fn has_java_members(view: &View) -> bool {
    let mut ids = view.instances.keys().filter_map(|id| id.parse::<InstanceId>().ok());
    ids.any(|id| id.is_java())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{OTHER, TestView, US},
        tree::{JobTree, ShardNode},
    };

    #[test]
    fn assignment_is_settled_once_every_shard_has_an_owner_and_no_one_assigns() {
        let settled = || TestView::new(2, &[US]).owners(&[US, US]);
        assert!(settled().assignment().is_settled());

        assert!(!TestView::new(2, &[US]).owners(&[US]).assignment().is_settled());
        assert!(!settled().with(JobTree::necessary, "").assignment().is_settled());
        assert!(!settled().with(JobTree::processing, "").assignment().is_settled());
    }

    #[test]
    fn disabled_and_taken_over_shards_are_assigned_but_not_runnable() {
        let test = TestView::new(4, &[US, OTHER])
            .owners(&[US, US, US, OTHER])
            .part(0, ShardNode::Disabled, "")
            .part(1, ShardNode::Failover, OTHER);

        assert_eq!(test.assignment().assigned(), BTreeSet::from([0, 1, 2]));
        assert_eq!(test.assignment().runnable(), BTreeSet::from([2]));
    }

    #[test]
    fn shards_of_java_are_not_tracked_and_disabled_ones_not_expected() {
        let test = TestView::new(4, &[US, OTHER, "10.0.0.9@-@4711"])
            .owners(&[US, OTHER, "10.0.0.9@-@4711", US])
            .part(3, ShardNode::Disabled, "");
        let expected = |selects: fn(u32) -> bool| test.assignment().expected_shards(selects);

        assert_eq!(expected(|_| true), ExpectedShards { tracked: 2, untracked: 1 });
        assert_eq!(expected(|shard| shard == 1), ExpectedShards { tracked: 1, untracked: 0 });
    }

    #[test]
    fn disabled_server_runs_nothing() {
        let test =
            TestView::new(1, &[US]).owners(&[US]).with(|tree| tree.server("10.0.0.1"), "DISABLED");

        assert_eq!(test.assignment().is_enabled(), Some(false));
        assert!(test.assignment().runnable().is_empty());
    }

    #[test]
    fn running_shard_of_an_absent_owner_is_not_reassigned_yet() {
        let idle = TestView::new(1, &[US]).owners(&[OTHER]);
        assert!(idle.assignment().has_absent_owners());

        let running = idle.part(0, ShardNode::Running, OTHER);
        assert!(!running.assignment().has_absent_owners());
    }

    #[test]
    fn rotating_shard_follows_the_server_named_last() {
        let test = TestView::new(1, &[US, OTHER])
            .owners(&[US])
            .job(|job| job.strategy(&Strategy::SingleShardingBalance));
        assert_eq!(test.assignment().assigned(), BTreeSet::from([0]), "no server is named yet");
        assert_eq!(test.assignment().next_server().as_deref(), Some("10.0.0.2"));

        let test = test.with(JobTree::next_instance_ip, "10.0.0.2");
        assert!(test.assignment().assigned().is_empty());
        assert!(test.assignment().runnable().is_empty());
    }
}
