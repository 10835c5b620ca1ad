//! Misfire marks: a fire that could not start is marked in the shard, and the shard's owner compensates it.

use std::collections::BTreeSet;

use super::{held_shards::HeldShards, missed_fires::MissedFires};
use crate::{
    coordination::{
        ledger::with_tolerance,
        member::mirror::Mirror,
        tree::ShardNode,
        view::{CachedNode, ShardView},
    },
    job::{Fire, Misfire},
    registry::{Create, Error, ExpectedVersion, Op},
};

/// An instance that took over one of our shards keeps us from running it when it is due. We compensate that when it is done.
pub(super) async fn mark_taken_over(
    mirror: &mut Mirror,
    fire: &Fire,
    shards: &BTreeSet<u32>,
    held: &HeldShards,
) -> Result<(), Error> {
    for shard in shards {
        let is_taken_over = mirror
            .shard(*shard)
            .is_some_and(|view| view.failover.is_some() && !view.misfire && !held.contains(*shard));
        if !is_taken_over {
            continue;
        }
        let now = mirror.time_for_pages(&[*shard]).await?;
        if mirror.pages().get(*shard).is_some_and(|seen| !seen.has_started(fire, now)) {
            mark_misfire(mirror, *shard, ShardNode::Failover).await?;
        }
    }
    Ok(())
}

/// Marks shards that another instance still runs. Returns those that it does.
pub(super) async fn mark_misfires(
    mirror: &Mirror,
    mut shards: BTreeSet<u32>,
) -> Result<BTreeSet<u32>, Error> {
    let is_marked = |view: &ShardView| view.misfire && view.running.is_some();
    let is_unmarked = |shard: &&u32| !mirror.shard(**shard).is_some_and(is_marked);
    let unmarked: Vec<u32> = shards.iter().filter(is_unmarked).copied().collect();
    let limits = mirror.context().registry.limits();
    if mirror.job().misfire == Misfire::RunOnce && unmarked.len() > 1 {
        let marks = |shard: &u32| mark(mirror, *shard, ShardNode::Running);
        let ops: Vec<Op> = unmarked.iter().flat_map(marks).collect();
        // A mark may be in another request than the check before it: then the shard is marked although its run has ended, which does no harm.
        let mut is_refused = false;
        for batch in limits.batches(&[], &ops) {
            match mirror.commit(batch.to_vec()).await {
                Ok(_) => {}
                Err(Error::Operation { .. }) => is_refused = true,
                Err(error) => return Err(error),
            }
        }
        if !is_refused {
            return Ok(shards);
        }
    }
    for shard in unmarked {
        if !mark_misfire(mirror, shard, ShardNode::Running).await? {
            shards.remove(&shard);
        }
    }
    Ok(shards)
}

/// Marks a shard that another instance still holds, as long as the node `while_there` shows that. `false` if it no longer does.
async fn mark_misfire(mirror: &Mirror, shard: u32, while_there: ShardNode) -> Result<bool, Error> {
    if mirror.job().misfire == Misfire::Skip {
        return Ok(true);
    }
    match mirror.commit(mark(mirror, shard, while_there).into()).await {
        Ok(_) => Ok(true),
        // Another user's node: it is there, and stays.
        Err(error) if error.is_denial() => Ok(true),
        Err(error) if error.is_temporary() => Err(error),
        Err(Error::Operation { index, .. }) => {
            let is_already_marked = index > 0;
            Ok(is_already_marked)
        }
        Err(error) => Err(error),
    }
}

/// Marks a shard, provided that the node `while_there` exists.
fn mark(mirror: &Mirror, shard: u32, while_there: ShardNode) -> [Op; 2] {
    let tree = mirror.tree();
    [
        Op::Check { path: tree.shard(shard, while_there), expected: ExpectedVersion::Any },
        Op::Create(Create::persistent(&tree.shard(shard, ShardNode::Misfire), "")),
    ]
}

/// Marks the shards of owners that joined after this fire and so do not know that it was missed. We were there, and do.
pub(super) async fn mark_for_newcomers(
    mirror: &mut Mirror,
    fire: &Fire,
    missed: &MissedFires,
) -> Result<(), Error> {
    if mirror.job().misfire == Misfire::Skip
        || !fire.run.is_scheduled()
        || mirror.assignment().has_java_members()
    {
        return Ok(());
    }
    let due_ms = fire.due_at.as_millisecond();
    let own = mirror.view().instances.get(mirror.own_id().as_str()).and_then(CachedNode::document);
    let was_there = own.is_some_and(|document| document.written_at_ms < due_ms);
    for shard in shards_of_newcomers(mirror, fire, missed) {
        mirror.pages().forget(shard);
        let now = mirror.time_for_pages(&[shard]).await?;
        let Some(seen) = mirror.pages().get(shard) else { continue };
        // A shard that never ran may be new itself: only an instance that was there when the fire was due can tell.
        if seen.has_started(fire, now) || (seen.version.is_none() && !was_there) {
            continue;
        }
        let (page, expected) =
            (mirror.tree().ledger_page(shard), seen.version.map(ExpectedVersion::Version));
        let mut ops = match expected {
            Some(expected) => vec![Op::Check { path: page, expected }],
            // There is no check for absence: creating and deleting the page fails if it exists by now.
            None => vec![
                Op::Create(Create::persistent(&page, "")),
                Op::Delete { path: page, expected: ExpectedVersion::Any },
            ],
        };
        let mark = mirror.tree().shard(shard, ShardNode::Misfire);
        ops.push(Op::Create(Create::persistent(&mark, "")));
        match mirror.commit(ops).await {
            Err(error) if error.is_temporary() => return Err(error),
            Ok(_) | Err(Error::Operation { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    mirror.refresh().await
}

fn shards_of_newcomers(mirror: &Mirror, fire: &Fire, missed: &MissedFires) -> Vec<u32> {
    let view = mirror.view();
    let due_ms = fire.due_at.as_millisecond();
    // One that joined in the future did so when the registry's clock was ahead.
    let latest = with_tolerance(mirror.context().clock.now()).as_millisecond();
    let joined = due_ms + 1..=latest;
    let shards = view.shards.range(..mirror.job().shards.get());
    let of_newcomers = shards.filter(|(shard, shard_view)| {
        let owner = shard_view.owner.as_ref().and_then(CachedNode::text);
        let other = owner.filter(|id| *id != mirror.own_id().as_str());
        let instance = other.and_then(|id| view.instances.get(id)).and_then(CachedNode::document);
        instance.is_some_and(|document| joined.contains(&document.written_at_ms))
            && missed.should_have_run(**shard, fire.due_at)
            && shard_view.running.is_none()
            && !shard_view.misfire
            && !shard_view.disabled
    });
    of_newcomers.map(|(shard, _)| *shard).collect()
}
