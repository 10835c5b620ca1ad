//! What there is to do, from what is seen. Pure.

use std::collections::BTreeSet;

use crate::{
    coordination::{
        sharding::available,
        view::{Known, View},
    },
    job::{InstanceId, Job, Resharding},
};

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Somebody took our instance node away.
    ShutDown,
    /// Nobody leads.
    Elect,
    /// We lead and should not.
    Abdicate,
    /// We lead and shards have to be dealt.
    Deal,
    /// Somebody wants us to run now.
    TakeTrigger,
}

/// What is remembered between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The instances and the number of shards that were dealt for, when we dealt.
    pub(super) dealt_for: Option<(BTreeSet<String>, u32)>,
    /// Shards that were to move and ran.
    pub(super) later: BTreeSet<u32>,
    /// An election is going on.
    pub(super) electing: bool,
}

/// Whether our server takes part; `None` while unread.
pub(super) fn is_enabled(view: &View, me: &InstanceId, job: &Job) -> Option<bool> {
    match view.servers.get(me.server()) {
        Some(Known::Dirty) => None,
        Some(status) => Some(status.text() == Some("ENABLED") && !job.disabled),
        None => Some(false),
    }
}

/// Whether we lead; `None` while unread.
pub(super) fn leads(view: &View, me: &InstanceId) -> Option<bool> {
    match &view.leader {
        None => Some(false),
        Some(Known::Dirty) => None,
        Some(leader) => Some(leader.text() == Some(me.as_str())),
    }
}

/// Everything there is to do now, most urgent first. Nothing while the picture is not whole.
pub(super) fn duties(view: &View, me: &InstanceId, job: &Job, memory: &Memory) -> Vec<Duty> {
    let mut duties = Vec::new();
    if !view.is_current() {
        return duties;
    }
    if !view.instances.contains_key(me.as_str()) {
        return vec![Duty::ShutDown];
    }
    if view.triggers.contains(me.as_str()) {
        duties.push(Duty::TakeTrigger);
    }
    let (Some(enabled), Some(leads)) = (is_enabled(view, me, job), leads(view, me)) else {
        return duties;
    };
    if view.leader.is_none() && enabled && !memory.electing {
        duties.push(Duty::Elect);
    }
    if leads && !enabled {
        duties.push(Duty::Abdicate);
    } else if leads && should_deal(view, job, memory) {
        duties.push(Duty::Deal);
    }
    duties
}

fn should_deal(view: &View, job: &Job, memory: &Memory) -> bool {
    let Some(candidates) = available(view, job) else { return false };
    if candidates.is_empty() {
        return false;
    }
    let total = job.shards.get();
    let is_dealt =
        (0..total).all(|shard| view.shards.get(&shard).is_some_and(|shard| shard.owner.is_some()));
    if job.resharding == Resharding::Static && is_dealt {
        return false;
    }
    let present: BTreeSet<String> = candidates.into_iter().map(|candidate| candidate.id).collect();
    let is_for_these = memory
        .dealt_for
        .as_ref()
        .is_some_and(|(dealt, count)| *dealt == present && *count == total);
    let can_move = memory
        .later
        .iter()
        .any(|shard| view.shards.get(shard).is_some_and(|shard| shard.running.is_none()));
    view.necessary || !is_for_these || !is_dealt || can_move
}
