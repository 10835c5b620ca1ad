//! The shards we hold: what makes them ours, and how the loss of a claim is noticed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::claiming::CommittedClaim;
use crate::{
    coordination::{
        claim::{ClaimCandidate, ClearedMarks, EntryRelease, ShardRelease},
        flaw::Flaw,
        ledger::{LedgerPage, VersionedPage},
        member::{
            claim_status::ClaimStatus,
            handle::{ClaimedShard, ShardClaim},
            mirror::Mirror,
        },
        tree::ShardNode,
        trigger::Cancellation,
        view::{CachedNode, Document},
    },
    job::{FencingToken, Monitor},
    registry::{Error, Path, Version, Zxid},
    runtime::{CancelReason, CancelToken},
};

/// The shards we hold.
#[derive(Default)]
pub(super) struct HeldShards {
    /// Boxed: a map node reserves space for eleven values.
    shards: BTreeMap<u32, Box<HeldShard>>,
}

pub(super) struct HeldShard {
    /// The transaction of the claim.
    pub(super) claim_zxid: Zxid,
    /// When it was claimed, by our clock.
    pub(super) since: Timestamp,
    /// The page that the claim wrote, and its version.
    pub(super) page: LedgerPage,
    pub(super) version: Version,
    /// The shard as it was before the claim.
    pub(super) candidate: ClaimCandidate,
    /// Whether the claim created `running`.
    pub(super) is_monitored: bool,
    /// The shard is being released: that its nodes vanish is no loss.
    pub(super) is_ending: bool,
    pub(super) status: Arc<ClaimStatus>,
}

impl HeldShards {
    pub(super) fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    pub(super) fn contains(&self, shard: u32) -> bool {
        self.shards.contains_key(&shard)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.shards.keys().copied()
    }

    pub(super) fn get(&self, shard: u32) -> Option<&HeldShard> {
        self.shards.get(&shard).map(|held| &**held)
    }

    pub(super) fn get_mut(&mut self, shard: u32) -> Option<&mut HeldShard> {
        self.shards.get_mut(&shard).map(|held| &mut **held)
    }

    pub(super) fn remove(&mut self, shard: u32) -> Option<Box<HeldShard>> {
        self.shards.remove(&shard)
    }

    /// The shard is being released: from now on it is no loss if its nodes vanish.
    pub(super) fn expect_end(&mut self, shard: u32) {
        if let Some(held) = self.shards.get_mut(&shard) {
            held.is_ending = true;
        }
    }

    /// Cancels the shards of a run that are held.
    pub(super) fn cancel(&self, cancellation: &Cancellation) {
        let is_meant = |shard: &u32, held: &HeldShard| {
            held.page.run.as_ref() == Some(&cancellation.run)
                && cancellation.shards.contains(*shard)
        };
        for (_, held) in self.shards.iter().filter(|(shard, held)| is_meant(shard, held)) {
            held.status.cancel().cancel(CancelReason::Requested);
        }
    }

    /// Holds the shards of a committed claim. To be called before the mirror is refreshed, so that our own nodes need not be read.
    pub(super) fn adopt(
        &mut self,
        mirror: &mut Mirror,
        claim: CommittedClaim,
        cancel: CancelToken,
    ) -> ShardClaim {
        let CommittedClaim { fire, candidates, steps, committed } = claim;
        let versions = steps.page_versions(&committed);
        let now = mirror.context().clock.now();
        let created: BTreeSet<Path> = steps.created_paths().cloned().collect();
        let mut shards = Vec::new();
        for candidate in candidates {
            let shard = candidate.shard;
            let version = *versions.get(&shard).expect("a claim writes the page of every shard");
            let page = candidate.page.page.after_claim(&fire, mirror.own_id());
            let written =
                VersionedPage { page: page.clone(), version: Some(version), written_at: None };
            mirror.pages().remember(shard, written);
            for part in ShardNode::HOLDERS {
                let document = Document {
                    data: mirror.own_id().to_string().into(),
                    version: Version(0),
                    created: committed.zxid,
                    written_at_ms: now.as_millisecond(),
                };
                let path = mirror.tree().shard(shard, part);
                if created.contains(&path) {
                    mirror.expect_echo(path, document);
                }
            }
            let status = Arc::new(ClaimStatus::new(cancel.child()));
            shards.push(ClaimedShard {
                item: shard,
                attempt: page.attempt,
                token: FencingToken::new(committed.zxid.0),
                status: Arc::clone(&status),
                answers_since: None,
            });
            let held = HeldShard {
                claim_zxid: committed.zxid,
                since: now,
                page,
                version,
                candidate,
                is_monitored: mirror.job().monitor == Monitor::Executions,
                is_ending: false,
                status,
            };
            self.shards.insert(shard, Box::new(held));
        }
        ShardClaim {
            fire,
            remaining: BTreeSet::new(),
            expected: None,
            cancel,
            session: mirror.context().session.clone(),
            busy: mirror.occupy(shards.iter().map(|shard| shard.item)),
            shards,
        }
    }

    /// Checks the claims: one whose `running` is gone, or belongs to another instance, is lost.
    pub(super) async fn check(&self, mirror: &mut Mirror) -> Result<(), Error> {
        if !mirror.view().is_current()
            || mirror.view().config.is_none()
            || mirror.job().monitor == Monitor::Nothing
            || mirror.context().flaws.has(Flaw::IgnoreClaimLoss)
        {
            return Ok(());
        }
        let unread: Vec<Path> = self
            .shards
            .keys()
            .filter(|shard| {
                mirror.shard(**shard).is_some_and(|view| view.running == Some(CachedNode::Dirty))
            })
            .map(|shard| mirror.tree().shard(*shard, ShardNode::Running))
            .collect();
        if !unread.is_empty() {
            mirror.read(&unread).await?;
        }
        let policy = mirror.job().props.policies().on_lease_loss;
        for (shard, held) in &self.shards {
            // A job that shrinks loses the nodes of its upper shards; what runs there may finish.
            let is_removed = *shard >= mirror.job().shards.get() && mirror.shard(*shard).is_none();
            if held.is_ending
                || !held.is_monitored
                || is_removed
                || is_own_claim(mirror, *shard, held)
            {
                continue;
            }
            if held.status.lose(policy) {
                tracing::error!(job = %mirror.job().name, %shard, run_id = ?held.page.run, "claim lost while running");
            }
        }
        Ok(())
    }

    /// Once executions are no longer monitored, deletes the `running` nodes of our claims; the runs go on.
    pub(super) async fn stop_monitoring(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if mirror.job().monitor == Monitor::Executions || !mirror.view().is_current() {
            return Ok(());
        }
        let monitored: Vec<u32> = self
            .shards
            .iter()
            .filter(|(shard, held)| held.is_monitored && is_own_claim(mirror, **shard, held))
            .map(|(shard, _)| *shard)
            .collect();
        for shard in monitored {
            let (Some(transactions), Some(held)) =
                (mirror.transactions(), self.shards.get_mut(&shard))
            else {
                continue;
            };
            let view = mirror.shard(shard);
            let restore = ClearedMarks::default();
            let HeldShard { page, version, claim_zxid, .. } = &**held;
            let (version, claim_zxid) = (*version, *claim_zxid);
            let entry = EntryRelease::Keep;
            let unmonitored =
                ShardRelease { shard, page, version, view, claim_zxid, restore, entry };
            let steps = transactions.release([unmonitored], false);
            match mirror.commit(steps.ops()).await {
                Ok(committed) => {
                    if let Some((_, version)) = steps.page_versions(&committed).first_key_value() {
                        held.is_monitored = false;
                        held.version = *version;
                    }
                    mirror.pages().forget(shard);
                }
                Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        mirror.refresh().await
    }
}

/// Whether `running` is still the node that our claim created.
fn is_own_claim(mirror: &Mirror, shard: u32, held: &HeldShard) -> bool {
    let running = mirror.shard(shard).and_then(|shard| shard.running.as_ref());
    running.and_then(CachedNode::document).is_some_and(|running| {
        running.created == held.claim_zxid && running.data == mirror.own_id().as_str()
    })
}
