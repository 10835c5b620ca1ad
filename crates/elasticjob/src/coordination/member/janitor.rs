//! A second look at everything, now and then.
//!
//! Whatever was missed — a notification, a death nobody saw, what a Java instance left behind — is derived anew from the tree. Nothing of
//! a live instance is touched.

use std::{collections::BTreeSet, time::Duration};

use super::{
    actor::Actor,
    duties::{is_enabled, leads},
};
use crate::{
    coordination::{flaw::Flaw, view::CachedNode},
    job::{Failover, InstanceId, Resharding},
    registry::{Create, Error, ExpectedVersion, Op},
    runtime::Monotonic,
};

/// How long a server is kept that nobody is on.
const DESERTED: Duration = Duration::from_mins(10);
/// How long we wait without a shard before we ask a Java leader to deal again.
const IDLE: Duration = Duration::from_secs(30);

impl Actor {
    pub(super) async fn tidy(&mut self) -> Result<(), Error> {
        let now = self.clock.monotonic();
        self.memory.look_again_at(now, &*self.randomness);
        if self.flaws.has(Flaw::NoJanitor) {
            return Ok(());
        }
        self.reconcile(now).await?;
        // What has not changed needs no second look, unless time alone makes a difference.
        let waits = !self.memory.undecided.is_empty()
            || !self.memory.deserted.is_empty()
            || self.memory.idle_since.is_some();
        if self.memory.tidied_at.replace(self.changes) == Some(self.changes) && !waits {
            return Ok(());
        }
        self.memory.is_suspicious = true;
        let mut gone = self.triggers_of_nobody();
        if leads(&self.view, &self.me) == Some(true) {
            gone.extend(self.flags_of_nothing());
        }
        for op in gone {
            match self.registry.multi(vec![op]).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if leads(&self.view, &self.me) == Some(true) {
            self.clear_deserted_servers(now).await?;
        } else {
            self.memory.deserted.clear();
        }
        self.nudge(now).await?;
        self.catch_up().await
    }

    /// We were dealing when an answer was lost: everybody waits for us, and we for ourselves. Or somebody began to deal who does not
    /// lead any more.
    pub(super) async fn unblock(&mut self) -> Result<(), Error> {
        if !self.memory.dealing {
            tracing::warn!(job = %self.job.name, "somebody who does not lead began to deal and did not end: the shards are dealt anew");
        }
        let path = self.tree.processing();
        match self.registry.delete(&path, ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => self.memory.dealing = false,
            Err(error) => return Err(error),
        }
        self.catch_up().await
    }

    /// As often as the job says the whole picture is taken anew, whatever the watch has told.
    async fn reconcile(&mut self, now: Monotonic) -> Result<(), Error> {
        let Some(interval) = self.job.reconcile.interval() else { return Ok(()) };
        if self.memory.reconciled_at.is_some_and(|last| now < last + interval) {
            return Ok(());
        }
        self.memory.reconciled_at = Some(now);
        self.look_anew().await
    }

    /// Somebody was to run who is not there.
    fn triggers_of_nobody(&self) -> Vec<Op> {
        let nobody = |id: &&String| !self.view.instances.contains_key(*id);
        let stale = self.view.triggers.iter().filter(nobody);
        stale.map(|id| delete(self.tree.trigger(id))).collect()
    }

    /// Nobody may take these over.
    fn flags_of_nothing(&self) -> Vec<Op> {
        let is_off = self.job.failover == Failover::Wait;
        let stale = self.view.failover_items.iter();
        stale
            .filter(|shard| is_off || **shard >= self.job.shards.get())
            .map(|shard| delete(self.tree.failover_item(*shard)))
            .collect()
    }

    /// Somebody may enter while their server is taken away, and would never run without it: it is put back.
    async fn clear_deserted_servers(&mut self, now: Monotonic) -> Result<(), Error> {
        for address in self.deserted_servers(now) {
            let path = self.tree.server(&address);
            match self.registry.delete(&path, ExpectedVersion::Any).await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            // The answer was a sync: whoever entered before is seen; whoever enters after finds no server, and brings one.
            self.catch_up().await?;
            if self.inhabited().contains(&address) {
                match self.registry.create(Create::persistent(&path, "ENABLED")).await {
                    Ok(_) | Err(Error::Exists { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn inhabited(&self) -> BTreeSet<String> {
        let ids = self.view.instances.keys().filter_map(|id| id.parse::<InstanceId>().ok());
        ids.map(|id| id.server().to_owned()).collect()
    }

    /// Pods come with new addresses every time. Those that were disabled stay: somebody meant it.
    fn deserted_servers(&mut self, now: Monotonic) -> Vec<String> {
        let inhabited = self.inhabited();
        self.memory.deserted.retain(|address, _| {
            self.view.servers.contains_key(address) && !inhabited.contains(address)
        });
        let mut gone = Vec::new();
        for (address, status) in &self.view.servers {
            if inhabited.contains(address) || status.text() != Some("ENABLED") {
                continue;
            }
            let since = *self.memory.deserted.entry(address.clone()).or_insert(now);
            if now >= since + DESERTED {
                gone.push(address.clone());
            }
        }
        gone
    }

    /// A Java leader that fixed its list before we came never looks at us again, unless our server changes.
    async fn nudge(&mut self, now: Monotonic) -> Result<(), Error> {
        let leader = self.view.leader.as_ref().and_then(CachedNode::text);
        let is_java =
            leader.and_then(|id| id.parse::<InstanceId>().ok()).is_some_and(|id| id.is_java());
        let owners: Vec<&str> = self
            .view
            .shards
            .range(..self.job.shards.get())
            .filter_map(|(_, shard)| shard.owner.as_ref().and_then(CachedNode::text))
            .collect();
        let has_two =
            owners.iter().any(|id| owners.iter().filter(|other| *other == id).count() > 1);
        let is_left_out = is_java
            && self.is_settled()
            && is_enabled(&self.view, &self.me, &self.job) == Some(true)
            && self.job.resharding != Resharding::Static
            && has_two
            && !owners.contains(&self.me.as_str());
        if !is_left_out {
            self.memory.idle_since = None;
            return Ok(());
        }
        let since = *self.memory.idle_since.get_or_insert(now);
        if now < since + IDLE {
            return Ok(());
        }
        self.memory.idle_since = None;
        let path = self.tree.server(self.me.server());
        match self.registry.set(&path, "ENABLED".into(), ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn delete(path: crate::registry::Path) -> Op {
    Op::Delete { path, expected: ExpectedVersion::Any }
}
