//! Releasing shards: the nodes of the claim are deleted, the ledger page says how the run ended.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::{ShardClaims, held_shards::HeldShard, still_cleared};
use crate::{
    coordination::{
        claim::{ClearedMarks, EntryRelease, Refusal, ShardRelease, ShardTransaction},
        flaw::Flaw,
        ledger::{LedgerPage, LedgerState, VersionedPage},
        member::{handle::Release, mirror::Mirror},
        tree::ShardNode,
        view::CachedNode,
    },
    job::Outcome,
    registry::{Create, Error, ExpectedVersion, Op, Path, Version},
};

/// How often a refused release is tried at once before it has to wait.
const ATTEMPTS: usize = 4;

pub(super) struct PendingRelease {
    shards: Vec<(u32, Release)>,
    reply: Option<oneshot::Sender<Result<(), Error>>>,
    /// The registry refuses to release them, which may last.
    is_refused: bool,
}

/// The transaction that releases shards, and the pages that it writes.
struct ReleaseTransaction {
    pages: BTreeMap<u32, LedgerPage>,
    steps: ShardTransaction,
}

impl ShardClaims {
    /// Queues a release. From now on it is no loss if the nodes of these shards vanish.
    pub(crate) fn release(
        &mut self,
        shards: Vec<(u32, Release)>,
        reply: Option<oneshot::Sender<Result<(), Error>>>,
    ) {
        for (shard, _) in &shards {
            self.held.expect_end(*shard);
        }
        self.releasing.push(PendingRelease { shards, reply, is_refused: false });
    }

    /// Whether shards that did not start are about to be given back. A claim waits for them: its fire is still theirs.
    pub(super) fn is_withdrawing(&self) -> bool {
        self.releasing.iter().any(|pending| {
            let mut ended = pending.shards.iter().map(|(_, ended)| *ended);
            !pending.is_refused && ended.any(|ended| ended == Release::Withdrawn)
        })
    }

    /// Releases everything that is to be released. A release that fails is tried again until the session ends.
    pub(crate) async fn settle_releases(&mut self, mirror: &mut Mirror) {
        for mut pending in std::mem::take(&mut self.releasing) {
            match self.try_release(mirror, &mut pending.shards).await {
                Ok(()) => {
                    if let Some(reply) = pending.reply {
                        let _ = reply.send(Ok(()));
                    }
                }
                Err(error) => {
                    tracing::warn!(job = %mirror.job().name, %error, "release failed, retrying");
                    // A shard may be refused as long as another program's node is below it. The run does not wait for that: only this shard stays held.
                    pending.is_refused = matches!(error, Error::Operation { .. });
                    if pending.is_refused
                        && let Some(reply) = pending.reply.take()
                    {
                        let _ = reply.send(Err(error));
                    }
                    self.releasing.push(pending);
                }
            }
        }
    }

    /// Removes what is released from `shards`, so that a retry covers the rest. Of a claim that was lost, or whose lease ran out, only what
    /// is certainly ours is deleted: the nodes that this claim created, and the page if it is unchanged. If those nodes are still there, the
    /// session has survived, and no other instance would ever delete them.
    async fn try_release(
        &mut self,
        mirror: &mut Mirror,
        shards: &mut Vec<(u32, Release)>,
    ) -> Result<(), Error> {
        mirror.refresh().await?;
        // After a gap the holders are unread, and until the snapshot is complete not even their nodes are known. An unread node would be
        // left behind.
        let unread: Vec<Path> = if mirror.view().is_current() {
            let unread =
                shards.iter().flat_map(|(shard, _)| mirror.view().dirty_holders_of(*shard));
            unread.collect()
        } else {
            let shards = shards.iter().map(|(shard, _)| *shard);
            shards
                .flat_map(|shard| ShardNode::HOLDERS.map(|part| mirror.tree().shard(shard, part)))
                .collect()
        };
        mirror.read(&unread).await?;
        // A lost claim is released, too: its page refuses if another instance has the shard, and would name us for ever if none has.
        shards.retain(|(shard, _)| self.held.contains(*shard));
        if shards.is_empty() {
            return mirror.refresh().await;
        }
        let limits = mirror.context().registry.limits();
        let mut refused = None;
        let mut rest = std::mem::take(shards);
        while !rest.is_empty() {
            let mut release = self.release_transaction(mirror, &rest);
            let count = release.steps.fitting(limits);
            if count < rest.len() {
                release = self.release_transaction(mirror, &rest[..count]);
            }
            let error = match self.commit_release(mirror, release).await {
                Ok(()) => {
                    rest.drain(..count);
                    continue;
                }
                Err(error) => error,
            };
            if !matches!(error, Error::Operation { .. }) {
                shards.append(&mut rest);
                return Err(error);
            }
            // One of them has changed: each alone, so that it does not delay the others.
            let together: Vec<(u32, Release)> = rest.drain(..count).collect();
            let mut together = together.into_iter();
            while let Some(one) = together.next() {
                match self.release_alone(mirror, one).await {
                    Ok(()) => {}
                    Err(error @ Error::Operation { .. }) => {
                        shards.push(one);
                        refused = Some(error);
                    }
                    Err(error) => {
                        shards.push(one);
                        shards.extend(together.chain(rest));
                        return Err(error);
                    }
                }
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
        name_next_server(mirror).await?;
        mirror.refresh().await
    }

    fn release_transaction(
        &self,
        mirror: &Mirror,
        shards: &[(u32, Release)],
    ) -> ReleaseTransaction {
        // A release does not depend on the configuration: the job may have been removed meanwhile.
        let transactions = mirror.transactions_for(Version::default());
        let held = |(shard, ended): &(u32, Release)| {
            let held = self.held.get(*shard)?;
            Some((*shard, (*ended, held, page_after(held, *ended))))
        };
        let held: BTreeMap<u32, (Release, &HeldShard, LedgerPage)> =
            shards.iter().filter_map(held).collect();
        let parts = shards.iter().filter_map(|(shard, _)| {
            let (ended, HeldShard { version, claim_zxid, candidate, .. }, page) =
                held.get(shard)?;
            let restore = match ended {
                Release::Withdrawn => still_cleared(mirror, candidate),
                Release::Ended(_) => ClearedMarks::default(),
            };
            let entry = match (ended, &candidate.entry) {
                (_, None) => EntryRelease::Keep,
                (Release::Ended(outcome), Some(entry)) => EntryRelease::End(entry, *outcome),
                (Release::Withdrawn, Some(_)) if mirror.context().flaws.has(Flaw::KeepEntries) => {
                    EntryRelease::Keep
                }
                (Release::Withdrawn, Some(entry)) => EntryRelease::Restore(entry),
            };
            let (version, claim_zxid) = (*version, *claim_zxid);
            let view = mirror.shard(*shard);
            Some(ShardRelease { shard: *shard, page, version, view, claim_zxid, restore, entry })
        });
        let is_fenced = shards.iter().any(|(_, ended)| *ended == Release::Ended(Outcome::Fenced));
        let steps = transactions.release(parts, is_fenced);
        let pages = held.into_iter().map(|(shard, (.., page))| (shard, page)).collect();
        ReleaseTransaction { pages, steps }
    }

    async fn commit_release(
        &mut self,
        mirror: &mut Mirror,
        release: ReleaseTransaction,
    ) -> Result<(), Error> {
        let ReleaseTransaction { mut pages, steps } = release;
        let committed = mirror.commit(steps.ops()).await?;
        for (shard, version) in steps.page_versions(&committed) {
            if let Some(held) = self.held.remove(shard)
                && held.is_monitored
                && !held.status.is_lost()
            {
                self.missed.note_run(shard, held.since..=mirror.context().clock.now());
            }
            let page = pages.remove(&shard).unwrap_or_default();
            let written = VersionedPage { page, version: Some(version), written_at: None };
            mirror.pages().remember(shard, written);
        }
        Ok(())
    }

    /// Releases one shard that was refused. The claim is forgotten only when its page has changed: a page that names a live instance would
    /// keep every other instance from the shard.
    async fn release_alone(
        &mut self,
        mirror: &mut Mirror,
        (shard, ended): (u32, Release),
    ) -> Result<(), Error> {
        let mut refusal = None;
        for _ in 0..ATTEMPTS {
            mirror.refresh().await?;
            let unread = mirror.view().dirty_holders_of(shard);
            mirror.read(&unread).await?;
            let release = self.release_transaction(mirror, &[(shard, ended)]);
            let steps = release.steps.clone();
            let error = match self.commit_release(mirror, release).await {
                Ok(()) => return Ok(()),
                Err(error @ Error::Operation { .. }) => error,
                Err(error) => return Err(error),
            };
            if steps.refusal(&error) == Some(Refusal::Entry(shard))
                && let Some(held) = self.held.get_mut(shard)
            {
                // The trigger was removed meanwhile.
                held.candidate.entry = None;
            }
            let seen = mirror.reread_page(shard).await?;
            // The first operation of a fenced release checks our process: without it, the shard is for others to take over.
            let is_dead = ended == Release::Ended(Outcome::Fenced)
                && matches!(error, Error::Operation { index: 0, .. });
            let Some(held) = self.held.get_mut(shard) else { return Ok(()) };
            if let Some(seen) = &seen
                && let Some(version) = seen.version
                && seen.page == held.page
                && !is_dead
            {
                // The claim is ours: an own write whose answer was lost has changed the version, or a node has vanished.
                held.version = version;
                refusal = Some(error);
                mirror.sync().await?;
                continue;
            }
            if seen.is_none_or(|seen| seen.page != page_after(held, ended)) {
                let is_removed = mirror.view().is_current() && mirror.view().config.is_none();
                if !is_removed {
                    tracing::warn!(job = %mirror.job().name, shard, %error, "claim lost before it was released");
                }
            } else if let Some(CachedNode::Read(running)) =
                mirror.shard(shard).and_then(|view| view.running.clone())
                && held.claim_zxid == running.created
            {
                // An earlier try wrote the page and its answer was lost, so the nodes are gone, too: wait until we see that.
                mirror.sync().await?;
            }
            self.held.remove(shard);
            return Ok(());
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// After a run of a rotating shard: names the server whose turn is next.
async fn name_next_server(mirror: &Mirror) -> Result<(), Error> {
    let Some(server) = mirror.assignment().next_server() else { return Ok(()) };
    let path = mirror.tree().next_instance_ip();
    let mut ops = Vec::new();
    if mirror.view().next_server.is_some() {
        ops.push(Op::Delete { path: path.clone(), expected: ExpectedVersion::Any });
    }
    let session = mirror.context().session.id();
    ops.push(Op::Create(Create::ephemeral(&path, server, session)));
    match mirror.write(ops).await {
        // Refused if another instance named one at the same time.
        Ok(_) | Err(Error::Operation { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The ledger page of a held shard once its run has ended.
fn page_after(held: &HeldShard, ended: Release) -> LedgerPage {
    match ended {
        Release::Ended(Outcome::Succeeded) => {
            LedgerPage { state: LedgerState::Done, ..held.page.clone() }
        }
        Release::Ended(_) => LedgerPage { state: LedgerState::Failed, ..held.page.clone() },
        Release::Withdrawn => held.candidate.page.page.clone(),
    }
}
