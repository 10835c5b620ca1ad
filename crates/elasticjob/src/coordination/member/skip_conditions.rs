//! Why a shard of a trigger cannot run.

use jiff::Timestamp;

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::{sharding::available_instances, trigger::SkipReason, view::CachedNode},
    job::InstanceId,
    registry::Zxid,
};

/// What decides whether the shards of a trigger can run, read from the view once for all of them.
pub(super) struct SkipConditions<'a> {
    assignment: Assignment<'a>,
    now: Timestamp,
    /// The transaction that created the job; `None` while nothing is certain.
    job_created: Option<Zxid>,
    is_settled: bool,
    /// The job or all its servers are disabled.
    is_disabled: bool,
}

impl<'a> SkipConditions<'a> {
    pub(super) fn of(mirror: &'a Mirror) -> Self {
        let assignment = mirror.assignment();
        let Assignment { view, job, .. } = assignment;
        let config = view.config.as_ref().and_then(CachedNode::document);
        let job_created = config.filter(|_| view.is_current()).map(|config| config.created);
        let has_none = available_instances(view).is_some_and(|instances| instances.is_empty());
        let is_disabled = has_none || job.disabled;
        let (now, is_settled) = (mirror.context().clock.now(), assignment.is_settled());
        Self { assignment, now, job_created, is_settled, is_disabled }
    }

    /// Why a shard of a trigger cannot run, as far as that is certain. Pure.
    pub(super) fn skip_reason(
        &self,
        accepted: Zxid,
        expires_at: Timestamp,
        shard: u32,
    ) -> Option<SkipReason> {
        let Assignment { view, job, .. } = &self.assignment;
        let job_created = self.job_created?;
        if self.now >= expires_at {
            return Some(SkipReason::Expired);
        }
        // It was accepted for another job of this name, which another program has removed since.
        if shard >= job.shards.get() || accepted < job_created {
            return Some(SkipReason::Vanished);
        }
        let is_shard_disabled = view.shards.get(&shard).is_some_and(|view| view.disabled);
        if self.is_disabled || is_shard_disabled {
            return Some(SkipReason::Disabled);
        }
        let owner = self.assignment.owner(shard).and_then(|id| id.parse::<InstanceId>().ok())?;
        let is_java = owner.is_java() && view.instances.contains_key(owner.as_str());
        (self.is_settled && is_java).then_some(SkipReason::MovedToJava)
    }
}
