//! Marks that a fire was missed, so that whoever owns the shard makes up for it.

use std::collections::BTreeSet;

use super::actor::Actor;
use crate::{
    coordination::{tree::ShardNode, view::CachedNode},
    job::{Fire, Misfire},
    registry::{Create, Error, ExpectedVersion, Op},
};

impl Actor {
    /// Whoever takes a shard of ours over keeps us from running it when it is due: we make up for that when they are done.
    pub(super) async fn mark_what_others_took(
        &mut self,
        fire: &Fire,
        shards: &BTreeSet<u32>,
    ) -> Result<(), Error> {
        for shard in shards {
            let is_taken = self.view.shards.get(shard).is_some_and(|view| {
                view.failover.is_some() && !view.misfire && !self.held.contains_key(shard)
            });
            if is_taken && !self.page(*shard).await?.page.has_started(fire) {
                self.mark_missed(*shard, ShardNode::Failover).await?;
            }
        }
        Ok(())
    }

    /// Somebody has it in hand who should be done by now: whoever owns it makes up for this fire when that is over. Says whether they still
    /// have.
    pub(super) async fn mark_missed(
        &mut self,
        shard: u32,
        while_there: ShardNode,
    ) -> Result<bool, Error> {
        if self.job.misfire == Misfire::Skip {
            return Ok(true);
        }
        let ops = vec![
            Op::Check { path: self.tree.shard(shard, while_there), expected: ExpectedVersion::Any },
            Op::Create(Create::persistent(&self.tree.shard(shard, ShardNode::Misfire), "")),
        ];
        match self.registry.multi(ops).await {
            Ok(_) => Ok(true),
            Err(Error::Operation { index, .. }) => {
                let is_marked = index > 0;
                Ok(is_marked)
            }
            Err(error) => Err(error),
        }
    }

    /// Owners that came after this fire do not know that it was missed; we, who were there, tell them.
    pub(super) async fn mark_for_newcomers(&mut self, fire: &Fire) -> Result<(), Error> {
        if self.job.misfire == Misfire::Skip || !fire.run.is_scheduled() || self.has_java() {
            return Ok(());
        }
        let due_ms = fire.due_at.as_millisecond();
        let me = self.view.instances.get(self.me.as_str()).and_then(CachedNode::document);
        let was_there = me.is_some_and(|document| document.written_at_ms < due_ms);
        let owned_by_newcomer = |shard: &u32| {
            let view = &self.view.shards[shard];
            let owner =
                view.owner.as_ref().and_then(CachedNode::text).filter(|id| *id != self.me.as_str());
            let instance =
                owner.and_then(|id| self.view.instances.get(id)).and_then(CachedNode::document);
            instance.is_some_and(|document| document.written_at_ms > due_ms)
                && view.running.is_none()
                && !view.misfire
                && !view.disabled
        };
        let shards: Vec<u32> = self
            .view
            .shards
            .range(..self.job.shards.get())
            .map(|(shard, _)| *shard)
            .filter(|shard| self.presence.was_to_run(*shard, fire.due_at))
            .filter(owned_by_newcomer)
            .collect();
        for shard in shards {
            self.pages.remove(&shard);
            let seen = self.page(shard).await?;
            // What never ran may be older than all of us.
            if seen.page.has_started(fire) || (seen.version.is_none() && !was_there) {
                continue;
            }
            let (page, expected) =
                (self.tree.ledger_page(shard), seen.version.map(ExpectedVersion::Version));
            let mut ops = match expected {
                Some(expected) => vec![Op::Check { path: page, expected }],
                // It never ran: that nobody wrote the page meanwhile can only be tried.
                None => vec![
                    Op::Create(Create::persistent(&page, "")),
                    Op::Delete { path: page, expected: ExpectedVersion::Any },
                ],
            };
            ops.push(Op::Create(Create::persistent(
                &self.tree.shard(shard, ShardNode::Misfire),
                "",
            )));
            match self.registry.multi(ops).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }
}
