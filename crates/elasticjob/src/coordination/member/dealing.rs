//! Leading: being elected, dealing the shards, stepping down.

use std::{sync::Arc, time::Duration};

use super::{
    actor::{Actor, Beside},
    duties::leads,
};
use crate::{
    coordination::{latch, sharding::plan, tree::JobTree},
    job::InstanceId,
    registry::{Create, Error, ExpectedVersion, Op, Registry, SessionId},
};

/// How long a candidate queues for leadership before it looks again whether that is still needed.
const ELECTION: Duration = Duration::from_secs(10);
/// How many changes go into one request. ZooKeeper takes no more than a megabyte.
const BATCH: usize = 1_000;

impl Actor {
    pub(super) fn elect(&mut self) {
        self.memory.electing = true;
        let (registry, tree, me) = (Arc::clone(&self.registry), self.tree.clone(), self.me.clone());
        let (session, ticket) = (self.session, self.randomness.bits());
        self.beside.spawn(async move {
            if let Err(error) = elect(&*registry, &tree, &me, session, ticket).await {
                tracing::warn!(instance = %me, %error, "an election did not come to an end");
            }
            Beside::Elected
        });
    }

    pub(super) async fn abdicate(&mut self) -> Result<(), Error> {
        if leads(&self.view, &self.me) == Some(true) {
            match self.registry.delete(&self.tree.leader(), ExpectedVersion::Any).await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.catch_up().await
    }

    /// Deals the shards; `false` if it has to wait for somebody else's dealing to end.
    pub(super) async fn deal(&mut self) -> Result<bool, Error> {
        if self.view.processing {
            return Ok(false);
        }
        let here = Op::Check { path: self.tree.instance(&self.me), expected: ExpectedVersion::Any };
        // Both at once: Java looks at `necessary` only, and waits while it is there.
        let mut ops = vec![here.clone()];
        if !self.view.necessary {
            ops.push(Op::Create(Create::persistent(&self.tree.necessary(), "")));
        }
        let processing = Create::ephemeral(&self.tree.processing(), "", self.session);
        ops.push(Op::Create(processing));
        self.memory.dealing = true;
        match self.registry.multi(ops).await {
            Ok(_) => {}
            Err(Error::Operation { .. }) => {
                self.memory.dealing = false;
                return self.catch_up().await.map(|()| true);
            }
            Err(error) => return Err(error),
        }
        // From here on nobody starts anything new, and what is seen now was committed before.
        self.catch_up().await?;
        self.configure();
        let done = Op::Delete { path: self.tree.processing(), expected: ExpectedVersion::Any };
        let now_ms = self.clock.now().as_millisecond();
        let leader = self.view.leader.clone();
        let planned = plan(&self.view, &self.job, &self.strategies, now_ms)
            .filter(|_| leads(&self.view, &self.me) == Some(true));
        let Some(planned) = planned else {
            self.unblock().await?;
            return Ok(false);
        };
        let ground = [here, Op::Check { path: self.tree.leader(), expected: ExpectedVersion::Any }];
        let mut changes = planned.ops;
        let last = changes.split_off(changes.len().saturating_sub(1) / BATCH * BATCH);
        let mut dealt = Ok(());
        // A job of many thousands of shards takes several requests. Nobody starts anything before the last one, whoever deals next begins anew.
        for batch in changes.chunks(BATCH) {
            let ops = ground.iter().chain(batch).cloned().collect();
            dealt = self.registry.multi(ops).await.map(drop);
            if dealt.is_err() {
                break;
            }
        }
        if dealt.is_ok() {
            let mut ops = ground.to_vec();
            ops.extend(last);
            if self.view.necessary {
                ops.push(Op::Delete {
                    path: self.tree.necessary(),
                    expected: ExpectedVersion::Any,
                });
            }
            ops.push(done);
            dealt = self.registry.multi(ops).await.map(drop);
        }
        match dealt {
            Ok(()) => {
                self.memory.dealing = false;
                tracing::info!(job = %self.job.name, instances = planned.instances.len(), shards = planned.owners.len(), "shards dealt");
                self.memory.dealt_for = Some((planned.instances, self.job.shards.get()));
                self.memory.later = planned.deferred;
            }
            Err(Error::Operation { index, cause }) => {
                tracing::debug!(index, %cause, "the tree changed while shards were dealt: looking again");
                self.unblock().await?;
            }
            Err(error) => return Err(error),
        }
        self.catch_up().await?;
        if self.view.leader != leader {
            // Somebody else leads by now and may have dealt before us: they have to deal again.
            self.memory.dealt_for = None;
            let flag = Op::Create(Create::persistent(&self.tree.necessary(), ""));
            match self.registry.multi(vec![flag]).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
            self.catch_up().await?;
        }
        Ok(true)
    }
}

/// Queues, and becomes leader unless somebody is.
async fn elect(
    registry: &dyn Registry,
    tree: &JobTree,
    me: &InstanceId,
    session: SessionId,
    ticket: u128,
) -> Result<(), Error> {
    let Some(turn) = latch::acquire(registry, &tree.election_latch(), ticket, ELECTION).await?
    else {
        return Ok(());
    };
    let ops = vec![
        turn.check(),
        Op::Check { path: tree.instance(me), expected: ExpectedVersion::Any },
        Op::Create(Create::ephemeral(&tree.leader(), me.to_string(), session)),
    ];
    let elected = registry.multi(ops).await;
    turn.release(registry).await;
    match elected {
        Ok(_) => {
            tracing::info!(instance = %me, "leads");
            Ok(())
        }
        // Somebody else leads, or we are not there any more.
        Err(Error::Operation { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
