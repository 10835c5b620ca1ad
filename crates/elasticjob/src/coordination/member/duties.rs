//! What there is to do, from what is seen. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    time::Duration,
};

use jiff::Timestamp;

use super::{blink::Blinks, handle::Lost};
use crate::{
    coordination::{
        sharding::available_instances,
        trigger::InstanceRequest,
        view::{CachedNode, View},
    },
    job::{InstanceId, Job, Resharding},
    registry::Zxid,
    runtime::{Monotonic, Randomness},
};

/// How often everything is looked at once more, about.
const TICK: Duration = Duration::from_mins(1);
/// The same while somebody who holds shards is absent and yet not dead.
const SOON: Duration = Duration::from_secs(5);

/// How long one who does not lead any more may take to end a dealing it has begun.
const DEALER: Duration = Duration::from_secs(10);

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
    /// We were dealing when the answer was lost, and everybody waits for us.
    Unblock,
    /// Somebody who held shards may be dead.
    Bury,
    /// It is time for a second look at everything.
    Tidy,
}

/// What is remembered between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The instances and the number of shards that were dealt for, when we dealt.
    pub(super) dealt_for: Option<(BTreeSet<String>, u32)>,
    /// Shards that were to move and ran.
    pub(super) later: BTreeSet<u32>,
    /// For which instances and how many shards it was last thought through what will move, and whether something of ours will.
    pub(super) planned: Option<((BTreeSet<String>, u32), bool)>,
    /// An election is going on.
    pub(super) electing: bool,
    /// We have begun to deal and do not know that it is over.
    pub(super) dealing: bool,
    /// When our patience ends with somebody else's dealing, while we lead.
    pub(super) unblocks_at: Option<Monotonic>,
    /// Somebody who held shards may be dead: who holds what has to be looked at.
    pub(super) is_suspicious: bool,
    /// Shards that somebody absent runs, by the ledger: if they are dead it has to be told.
    pub(super) bereft: BTreeMap<u32, Lost>,
    /// Ids that hold shards and are absent, and yet not dead: they may be leaving, or die while they do.
    pub(super) undecided: BTreeSet<String>,
    /// How often the view had changed at the last second look.
    pub(super) tidied_at: Option<u64>,
    /// Ids that hold shards and are absent, each with when it counts as dead.
    pub(super) doubts: BTreeMap<String, Monotonic>,
    /// What a trigger said that was taken away without an answer, and which one it was.
    pub(super) trigger: Option<(Zxid, InstanceRequest)>,
    /// Shards that were seen running since they were flagged: what was lost has been made up for.
    pub(super) ran_since_flagged: BTreeSet<u32>,
    /// Java instances that went for a moment, and what was flagged because of it.
    pub(super) blinks: Blinks,
    /// From when to when we last ran each shard, by our clock, with a claim that everybody could see and nobody took away.
    pub(super) ran: BTreeMap<u32, RangeInclusive<Timestamp>>,
    /// Marks that were there before anybody was: nobody waits for what they stand for.
    pub(super) leftover_marks: BTreeSet<u32>,
    /// Shards that were ours when the owner was last told that it may run them.
    pub(super) told_dealt: BTreeSet<u32>,
    /// Shards with a missed run that the owner has been told of.
    pub(super) told_missed: BTreeSet<u32>,
    /// Orphaned shards that the owner has been told of.
    pub(super) told_orphans: BTreeSet<u32>,
    /// When everything is looked at once more, whatever was heard.
    pub(super) next_tick: Option<Monotonic>,
    /// Servers without an instance, each with since when.
    pub(super) deserted: BTreeMap<String, Monotonic>,
    /// Since when we have no shard although there are enough for us.
    pub(super) idle_since: Option<Monotonic>,
    /// When the whole picture was last taken anew.
    pub(super) reconciled_at: Option<Monotonic>,
}

impl Memory {
    /// Sets the next second look. Not all instances at once.
    pub(super) fn look_again_at(&mut self, now: Monotonic, randomness: &dyn Randomness) {
        let tick = if self.undecided.is_empty() { TICK } else { SOON };
        self.next_tick = Some(now + tick.mul_f64(0.8 + 0.4 * randomness.fraction()));
        self.reconciled_at.get_or_insert(now);
    }

    /// Only the leader deals. A dealing of somebody else is one they began when they led; that it ends cannot be relied on: a Java
    /// leader whose job is shut down in the middle of it leaves the mark behind for as long as its process lives. Without the mark
    /// what they may still write is refused.
    pub(super) fn note_dealing(&mut self, view: &View, me: &InstanceId, now: Monotonic) {
        let is_others = view.processing && !self.dealing && leads(view, me) == Some(true);
        self.unblocks_at = is_others.then(|| self.unblocks_at.unwrap_or(now + DEALER));
    }

    /// Whether we ran this shard at that instant, and so nobody else did.
    pub(super) fn ran_at(&self, shard: u32, when: Timestamp) -> bool {
        self.ran.get(&shard).is_some_and(|span| span.contains(&when))
    }

    /// When the first of those in doubt counts as dead.
    pub(super) fn next_doubt(&self) -> Option<Monotonic> {
        self.doubts.values().min().copied()
    }

    /// Whoever is alone when it enters finds marks nobody waits for.
    pub(super) fn note_leftovers(&mut self, view: &View, me: &InstanceId) {
        if view.instances.keys().all(|id| id == me.as_str()) {
            let marked = view.shards.iter().filter(|(_, shard)| shard.misfire);
            self.leftover_marks = marked.map(|(shard, _)| *shard).collect();
        }
    }
}

/// Whether our server takes part; `None` while unread.
pub(super) fn is_enabled(view: &View, me: &InstanceId, job: &Job) -> Option<bool> {
    match view.servers.get(me.server()) {
        Some(CachedNode::Dirty) => None,
        Some(status) => Some(status.text() == Some("ENABLED") && !job.disabled),
        None => Some(false),
    }
}

/// Whether we lead; `None` while unread.
pub(super) fn leads(view: &View, me: &InstanceId) -> Option<bool> {
    match &view.leader {
        None => Some(false),
        Some(CachedNode::Dirty) => None,
        Some(leader) => Some(leader.text() == Some(me.as_str())),
    }
}

/// Everything there is to do now, most urgent first. Nothing while the picture is not whole.
pub(super) fn duties(
    view: &View,
    me: &InstanceId,
    job: &Job,
    memory: &Memory,
    now: Monotonic,
) -> Vec<Duty> {
    let mut duties = Vec::new();
    if !view.is_current() {
        return duties;
    }
    if !view.instances.contains_key(me.as_str()) {
        return vec![Duty::ShutDown];
    }
    if view.triggers.contains(me.as_str()) || memory.trigger.is_some() {
        duties.push(Duty::TakeTrigger);
    }
    if view.processing && (memory.dealing || memory.unblocks_at.is_some_and(|when| now >= when)) {
        duties.push(Duty::Unblock);
    }
    if memory.is_suspicious || memory.next_doubt().is_some_and(|when| now >= when) {
        duties.push(Duty::Bury);
    }
    if memory.next_tick.is_some_and(|when| now >= when) {
        duties.push(Duty::Tidy);
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
    let Some(candidates) = available_instances(view) else { return false };
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
    let has_too_many = view.shards.range(total..).any(|(_, shard)| shard.running.is_none());
    view.necessary
        || !is_for_these
        || !is_dealt
        || can_move
        || has_ghosts(view, job)
        || has_too_many
}

/// Whether shards that could be dealt belong to somebody who is not there.
pub(super) fn has_ghosts(view: &View, job: &Job) -> bool {
    if job.resharding == Resharding::Static
        || available_instances(view).is_none_or(|candidates| candidates.is_empty())
    {
        return false;
    }
    // One that runs keeps its owner, dead or alive, until it is known what becomes of it.
    view.shards.range(..job.shards.get()).any(|(_, shard)| {
        let owner = shard.owner.as_ref().and_then(CachedNode::text);
        shard.running.is_none() && owner.is_some_and(|id| !view.instances.contains_key(id))
    })
}
