//! Which shards are ours: by the dealing, or because it is our turn.

use std::collections::BTreeSet;

use super::{actor::Actor, duties::is_enabled};
use crate::{
    coordination::{sharding::available_instances, view::CachedNode},
    job::{Misfire, Strategy, server_of},
    registry::{Create, Error, ExpectedVersion, Op},
};

impl Actor {
    /// Whether who owns what is certain: nobody deals, nobody is about to, every shard has an owner.
    pub(super) fn is_settled(&self) -> bool {
        let view = &self.view;
        view.is_current()
            && !view.necessary
            && !view.processing
            && (0..self.job.shards.get()).all(|shard| {
                view.shards.get(&shard).is_some_and(|shard| {
                    shard.owner.as_ref().and_then(CachedNode::document).is_some()
                })
            })
    }

    /// Shards that are ours and may run.
    pub(super) fn mine(&self) -> Vec<u32> {
        self.owned().into_iter().filter(|shard| !self.held.contains_key(shard)).collect()
    }

    /// Shards of ours with a mark that a run was missed, and that nobody runs.
    pub(super) fn missed(&self) -> BTreeSet<u32> {
        self.mine().into_iter().filter(|shard| self.is_missed(*shard)).collect()
    }

    pub(super) fn is_missed(&self, shard: u32) -> bool {
        let view = self.view.shards.get(&shard);
        self.job.misfire == Misfire::RunOnce
            && view.is_some_and(|view| view.misfire && view.running.is_none())
            && !self.memory.leftover_marks.contains(&shard)
    }

    /// Shards that were dealt to us, or whose turn it is with us, whether they may run or not.
    pub(super) fn dealt_to_me(&self) -> BTreeSet<u32> {
        if let Some(whose_turn) = self.whose_turn() {
            return (whose_turn == self.me.as_str()).then_some(0).into_iter().collect();
        }
        let shards = self.view.shards.range(..self.job.shards.get());
        let mine = shards.filter(|(_, shard)| {
            shard.owner.as_ref().and_then(CachedNode::text) == Some(self.me.as_str())
        });
        mine.map(|(shard, _)| *shard).collect()
    }

    pub(super) fn owned(&self) -> BTreeSet<u32> {
        if is_enabled(&self.view, &self.me, &self.job) != Some(true) {
            return BTreeSet::new();
        }
        let whose_turn = self.whose_turn();
        let shards = self.view.shards.range(..self.job.shards.get());
        shards
            .filter(|(_, shard)| {
                let owner =
                    whose_turn.as_deref().or(shard.owner.as_ref().and_then(CachedNode::text));
                !shard.disabled && shard.failover.is_none() && owner == Some(self.me.as_str())
            })
            .map(|(shard, _)| *shard)
            .collect()
    }

    /// A wandering shard belongs to the instance whose server was named last, not to its owner: to the first of them, if the server has
    /// several. An address nobody has is nobody's turn.
    fn whose_turn(&self) -> Option<String> {
        if !self.wanders() {
            return None;
        }
        let server = self.view.next_server.as_ref().and_then(CachedNode::text)?;
        let candidates = available_instances(&self.view)?;
        let mut there: Vec<String> = candidates
            .into_iter()
            .map(|candidate| candidate.id)
            .filter(|id| serves(id, server))
            .collect();
        there.sort_unstable();
        there.into_iter().next()
    }

    fn wanders(&self) -> bool {
        self.job.shards.get() == 1 && Strategy::of(&self.job) == Strategy::SingleShardingBalance
    }

    /// After a run of a wandering shard: the next server is named, in the order the ancestor goes by.
    pub(super) async fn pass_on(&mut self) -> Result<(), Error> {
        let Some(candidates) = available_instances(&self.view).filter(|_| self.wanders()) else {
            return Ok(());
        };
        let mut ids: Vec<String> = candidates.into_iter().map(|candidate| candidate.id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let Some(place) = ids.iter().position(|id| serves(id, self.me.server())) else {
            return Ok(());
        };
        let next = &ids[(place + 1) % ids.len()];
        let server = server_of(next).to_owned();
        let path = self.tree.next_instance_ip();
        let mut ops = Vec::new();
        if self.view.next_server.is_some() {
            ops.push(Op::Delete { path: path.clone(), expected: ExpectedVersion::Any });
        }
        ops.push(Op::Create(Create::ephemeral(&path, server, self.session)));
        match self.registry.multi(ops).await {
            // Somebody else named one at the same time.
            Ok(_) | Err(Error::Operation { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn serves(id: &str, server: &str) -> bool {
    server_of(id) == server
}
