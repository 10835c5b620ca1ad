//! Tells streaming jobs that shards are about to be assigned: a shard can move only when its run has ended.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{claims::ShardClaims, mirror::Mirror};
use crate::coordination::sharding::plan;

pub(super) struct ReshardSignal {
    signal: Arc<AtomicBool>,
    /// The instances and the number of shards for which it was last computed what will move, and whether a held shard will. What the leader
    /// will decide follows from what every instance sees.
    planned: Option<((BTreeSet<String>, u32), bool)>,
}

impl ReshardSignal {
    pub(super) fn new(signal: Arc<AtomicBool>) -> Self {
        Self { signal, planned: None }
    }

    pub(super) fn update(&mut self, mirror: &Mirror, claims: &ShardClaims) {
        let (view, job) = (mirror.view(), mirror.job());
        if claims.is_holding_any() {
            let instances: BTreeSet<String> = view.instances.keys().cloned().collect();
            let basis = (instances, job.shards.get());
            if self.planned.as_ref().is_none_or(|(known, _)| *known != basis) {
                let context = mirror.context();
                let now_ms = context.clock.now().as_millisecond();
                let plan = plan(view, job, &context.strategies, now_ms);
                let later = plan.map(|plan| plan.deferred).unwrap_or_default();
                let moves = later.iter().any(|shard| claims.holds(*shard));
                self.planned = Some((basis, moves));
            }
        } else {
            self.planned = None;
        }
        let moves = self.planned.as_ref().is_some_and(|(_, moves)| *moves);
        self.signal.store(view.necessary || moves, Ordering::Relaxed);
    }
}
