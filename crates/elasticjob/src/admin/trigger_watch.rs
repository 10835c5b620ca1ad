//! Waits for a triggered run, without polling.
//!
//! What is stored tells how each shard ended, also when another run has followed since: an entry is of one run.

use std::{collections::BTreeSet, time::Duration};

use super::{
    error::AdminError,
    handle::Admin,
    triggers::{StoredObject, StoredTrigger, TriggerDetails, no_such_trigger},
};
use crate::{
    coordination::tree::JobTree,
    job::{JobName, RunId},
    registry::{Error, Event, Watch},
};

/// Follows a stored trigger: see [`Admin::watch_trigger`].
pub struct TriggerWatch {
    admin: Admin,
    job: JobName,
    tree: JobTree,
    run: RunId,
    watch: Watch,
    stored: StoredTrigger,
}

impl Admin {
    /// Watches a stored trigger from now on.
    pub async fn watch_trigger(
        &self,
        job: &JobName,
        run: &RunId,
    ) -> Result<TriggerWatch, AdminError> {
        let tree = self.tree_of_existing(job).await?;
        // Before it is read, so that no change is missed.
        let watch = self.registry.watch(&tree.accepted_trigger(run)).await?;
        let stored = self.stored_trigger(job, &tree, run).await?;
        let (admin, job, run) = (self.clone(), job.clone(), run.clone());
        Ok(TriggerWatch { admin, job, tree, run, watch, stored })
    }

    /// Waits until every shard of a trigger has an outcome or a reason, at most `timeout`. The result shows which of it it was:
    /// [`has_ended`](TriggerDetails::has_ended).
    ///
    /// ```no_run
    /// # async fn example(admin: elasticjob::admin::Admin) -> Result<(), elasticjob::admin::AdminError> {
    /// let job = "settle".parse()?;
    /// let triggered = admin.trigger(&job, Default::default()).await?;
    /// let ended = admin.wait_for_trigger(&job, &triggered.run, std::time::Duration::from_mins(10)).await?;
    /// assert!(ended.has_ended(), "still running");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_trigger(
        &self,
        job: &JobName,
        run: &RunId,
        timeout: Duration,
    ) -> Result<TriggerDetails, AdminError> {
        let deadline = self.clock.monotonic() + timeout;
        let mut watch = self.watch_trigger(job, run).await?;
        let mut details = watch.details();
        while !details.has_ended() {
            tokio::select! {
                biased;
                changed = watch.changed() => details = changed?,
                () = self.clock.sleep_until(deadline) => break,
            }
        }
        Ok(details)
    }
}

impl TriggerWatch {
    /// The trigger as it was last read.
    pub fn details(&self) -> TriggerDetails {
        self.stored.details()
    }

    /// Waits for the next change; changes that are already queued are reported as one. An error if the trigger was removed.
    pub async fn changed(&mut self) -> Result<TriggerDetails, AdminError> {
        let mut events = vec![self.watch.next().await.ok_or(Error::SessionExpired)?];
        while let Some(event) = self.watch.try_next() {
            events.push(event);
        }
        let Self { admin, tree, run, .. } = self;
        if events.contains(&Event::Init) {
            // Everything may have changed.
            self.stored = admin.stored_trigger(&self.job, tree, run).await?;
            return Ok(self.details());
        }
        let object = tree.accepted_trigger(&*run);
        let mut changed = BTreeSet::new();
        for event in &events {
            let (Event::Apply { path } | Event::Delete { path }) = event else { continue };
            changed.insert(path.clone());
        }
        if changed.remove(&object) {
            let node = admin.registry.get(&object).await;
            let read = StoredObject::of(node)?;
            self.stored.object = read.ok_or_else(|| no_such_trigger(&self.job, run))?;
        }
        let shards = changed.iter().filter_map(|path| path.relative_to(&object)?.parse().ok());
        let is_ours = |shard: &u32| {
            self.stored.object.trigger.as_ref().is_ok_and(|it| it.shards.contains(*shard))
        };
        let shards: Vec<u32> = shards.filter(is_ours).collect();
        let mut read = admin.read_entries(tree, &self.stored.run, &shards).await?;
        let entries = self.stored.entries.get_or_insert_default();
        for shard in shards {
            match read.remove(&shard) {
                Some(entry) => drop(entries.insert(shard, entry)),
                // A claim was withdrawn.
                None => drop(entries.remove(&shard)),
            }
        }
        Ok(self.details())
    }
}
