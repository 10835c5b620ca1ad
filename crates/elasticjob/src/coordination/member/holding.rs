//! The claims we hold: what makes them ours, and how it is noticed that they are not any more.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{actor::Actor, handle::ClaimedShard, hold::Hold};
use crate::{
    coordination::{
        claim::{ClaimCandidate, ClearedMarks, ShardRelease, ShardTransaction},
        flaw::Flaw,
        ledger::{LedgerPage, VersionedPage},
        tree::ShardNode,
        view::{CachedNode, Document},
    },
    job::{Fire, Monitor},
    registry::{Committed, Error, Path, Version, Zxid},
    runtime::CancelToken,
};

/// A shard we hold.
pub(super) struct Held {
    /// The transaction of the claim.
    pub(super) claim_zxid: Zxid,
    /// When it was claimed, by our clock.
    pub(super) since: Timestamp,
    /// The page the claim wrote, and in which version.
    pub(super) page: LedgerPage,
    pub(super) version: Version,
    /// What it was claimed from.
    pub(super) stake: ClaimCandidate,
    /// Whether the claim wrote `running`.
    pub(super) is_monitored: bool,
    /// It is being given back: that its nodes go is what is meant to happen.
    pub(super) is_ending: bool,
    pub(super) hold: Arc<Hold>,
}

impl Actor {
    /// What a claim that was committed makes ours.
    pub(super) fn hold(
        &mut self,
        fire: &Fire,
        stakes: &[ClaimCandidate],
        steps: &ShardTransaction,
        committed: &Committed,
        cancel: &CancelToken,
    ) -> Vec<ClaimedShard> {
        let versions = steps.page_versions(committed);
        let now = self.clock.now();
        let created: BTreeSet<Path> = steps.created_paths().cloned().collect();
        let mut shards = Vec::new();
        for stake in stakes {
            let shard = stake.shard;
            let version =
                versions.iter().find(|(written, _)| *written == shard).map(|(_, version)| *version);
            let version = version.expect("a claim writes the page of every shard");
            let page = stake.page.page.after_claim(fire, &self.me);
            let seen = VersionedPage { page: page.clone(), version: Some(version) };
            self.pages.insert(shard, Box::new(seen));
            self.memory.leftover_marks.remove(&shard);
            // What we created we need not read.
            for part in ShardNode::HOLDERS {
                let document = Document {
                    data: self.me.to_string().into(),
                    version: Version(0),
                    created: committed.zxid,
                    written_at_ms: now.as_millisecond(),
                };
                let path = self.tree.shard(shard, part);
                if created.contains(&path) {
                    self.view.expect_echo(path, document);
                }
            }
            let hold = Arc::new(Hold::new(cancel.child()));
            shards.push(ClaimedShard {
                item: shard,
                attempt: page.attempt,
                hold: Arc::clone(&hold),
            });
            let claim = Held {
                claim_zxid: committed.zxid,
                since: now,
                page,
                version,
                stake: stake.clone(),
                is_monitored: self.job.monitor == Monitor::Executions,
                is_ending: false,
                hold,
            };
            self.held.insert(shard, Box::new(claim));
        }
        shards
    }

    /// Its own claims are watched: one that is gone, or somebody else's, is not ours any more.
    pub(super) async fn watch_claims(&mut self) -> Result<(), Error> {
        if !self.view.is_current()
            || self.view.config.is_none()
            || self.job.monitor == Monitor::Nothing
            || self.flaws.has(Flaw::IgnoreClaimLoss)
        {
            return Ok(());
        }
        let unread: Vec<Path> = self
            .held
            .keys()
            .filter(|shard| {
                self.view
                    .shards
                    .get(shard)
                    .is_some_and(|view| view.running == Some(CachedNode::Dirty))
            })
            .map(|shard| self.tree.shard(*shard, ShardNode::Running))
            .collect();
        if !unread.is_empty() {
            self.read(&unread).await?;
        }
        let policy = self.job.props.policies().on_lease_loss;
        for (shard, held) in &self.held {
            // A job that shrinks takes the nodes of what runs above; it may finish.
            let is_above = *shard >= self.job.shards.get() && !self.view.shards.contains_key(shard);
            if held.is_ending || !held.is_monitored || is_above || self.is_my_claim(*shard, held) {
                continue;
            }
            if held.hold.lose(policy) {
                tracing::error!(job = %self.job.name, %shard, run = ?held.page.run, "the claim was taken away while it ran: it counts no more");
            }
        }
        Ok(())
    }

    /// Executions are not monitored any more: what says that ours run goes, and the runs go on.
    pub(super) async fn unmonitor(&mut self) -> Result<(), Error> {
        if self.job.monitor == Monitor::Executions || !self.view.is_current() {
            return Ok(());
        }
        let shown: Vec<u32> = self
            .held
            .iter()
            .filter(|(shard, held)| held.is_monitored && self.is_my_claim(**shard, held))
            .map(|(shard, _)| *shard)
            .collect();
        for shard in shown {
            let (Some(claimant), Some(held)) = (self.claimant(), self.held.get(&shard)) else {
                continue;
            };
            let view = self.view.shards.get(&shard);
            let restore = ClearedMarks::default();
            let Held { page, version, claim_zxid, .. } = &**held;
            let (version, claim_zxid) = (*version, *claim_zxid);
            let still = ShardRelease { shard, page, version, view, claim_zxid, restore };
            let steps = claimant.release([still], false);
            match self.registry.multi(steps.ops()).await {
                Ok(committed) => {
                    let version =
                        steps.page_versions(&committed).first().map(|(_, version)| *version);
                    if let (Some(held), Some(version)) = (self.held.get_mut(&shard), version) {
                        held.is_monitored = false;
                        held.version = version;
                    }
                    self.pages.remove(&shard);
                }
                Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    /// Whether `running` is still what our claim created.
    fn is_my_claim(&self, shard: u32, held: &Held) -> bool {
        let running = self.view.shards.get(&shard).and_then(|shard| shard.running.as_ref());
        running.and_then(CachedNode::document).is_some_and(|running| {
            running.created == held.claim_zxid && running.data == self.me.as_str()
        })
    }
}
