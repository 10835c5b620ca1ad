//! The transaction of the first instance of a job: it joins, leads, and owns every shard at once.
//!
//! Otherwise an election and an assignment follow the join, about ten requests one after the other, and a process with thousands of jobs makes
//! them for each. The election's latch is not needed, because creating the leader is refused if there is one. A Java candidate that holds the
//! latch at this moment replaces the leader, and assigns again because it has joined.

use std::collections::BTreeSet;

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::{
        sharding::plan,
        tree::{ShardNode, TreeNode},
        view::{CachedNode, Document, View},
    },
    job::Resharding,
    registry::{Committed, Create, Node, Op, OpResult, Stat, Version, Zxid},
};

/// The instances and the number of shards of an assignment.
pub(super) type AssignedFor = (BTreeSet<String>, u32);

/// What makes an instance that enters an empty job its leader and the owner of every shard.
#[derive(Debug)]
pub(super) struct SoleEntry {
    pub(super) ops: Vec<Op>,
    pub(super) assigned_for: AssignedFor,
}

/// What to add to the operations that `join`; `None` if the instance is not alone, may not lead, or has more to do than to name owners. Pure.
pub(super) fn sole_entry(mirror: &Mirror, join: &[Op]) -> Option<SoleEntry> {
    let (view, context) = (mirror.view(), mirror.context());
    let is_empty = view.instances.is_empty() && view.leader.is_none();
    if !is_empty || view.necessary || view.processing {
        return None;
    }
    let joined = after(view, join);
    let assignment = Assignment { view: &joined, job: mirror.job(), own_id: mirror.own_id() };
    // Owners of a static assignment stay, even if they are gone.
    let is_fixed = mirror.job().resharding == Resharding::Static && assignment.is_complete();
    if assignment.is_enabled() != Some(true) || is_fixed {
        return None;
    }
    let now_ms = context.clock.now().as_millisecond();
    let planned = plan(&joined, mirror.job(), &context.strategies, now_ms)
        .filter(|plan| plan.deferred.is_empty() && plan.removals.is_empty())?;
    let leader = Create::ephemeral(
        &mirror.tree().leader(),
        mirror.own_id().to_string(),
        context.session.id(),
    );
    let ops: Vec<Op> = std::iter::once(Op::Create(leader)).chain(planned.ops).collect();
    let is_fitting = context.registry.limits().fitting(join, &ops) == ops.len();
    is_fitting
        .then(|| SoleEntry { ops, assigned_for: (planned.instances, mirror.job().shards.get()) })
}

/// The view as it will be once these operations are committed.
fn after(view: &View, ops: &[Op]) -> View {
    let mut view = view.clone();
    for op in ops {
        if let Op::Create(Create { path, data, .. }) | Op::Set { path, data, .. } = op {
            let stat = Stat {
                created: Zxid::default(),
                changed: Zxid::default(),
                changed_at_ms: 0,
                version: Version::default(),
                owner: None,
                children: 0,
            };
            view.record_read(path, Some(Node { data: data.clone(), stat }));
        }
    }
    view
}

/// Spares the mirror from reading what this member has just written. The instance is read nevertheless: when it joined, by the registry's clock,
/// is known only there.
pub(super) fn expect_echoes(mirror: &mut Mirror, ops: &[Op], committed: &Committed) {
    let written_at_ms = mirror.context().clock.now().as_millisecond();
    for (op, result) in ops.iter().zip(&committed.done) {
        let (path, data, version, created) = match (op, result) {
            (Op::Create(Create { path, data, .. }), OpResult::Created(_)) => {
                (path, data, Version::default(), committed.zxid)
            }
            (Op::Set { path, data, .. }, OpResult::Set(version)) => {
                let Some(created) = known_creation(mirror, path) else { continue };
                (path, data, *version, created)
            }
            _ => continue,
        };
        let is_cached = matches!(
            mirror.tree().node_at(path),
            Some(
                TreeNode::Root
                    | TreeNode::Config
                    | TreeNode::Server(_)
                    | TreeNode::Leader
                    | TreeNode::Shard(_, ShardNode::Owner)
            )
        );
        if is_cached {
            let document = Document { data: data.clone(), version, created, written_at_ms };
            mirror.expect_echo(path.clone(), document);
        }
    }
}

/// Creation id of an owner that was read before.
fn known_creation(mirror: &Mirror, path: &crate::registry::Path) -> Option<Zxid> {
    let Some(TreeNode::Shard(shard, ShardNode::Owner)) = mirror.tree().node_at(path) else {
        return None;
    };
    let owner = mirror.shard(shard)?.owner.as_ref();
    owner.and_then(CachedNode::document).map(|document| document.created)
}
