//! From when on a shard that was due should have been run.
//!
//! A fire that nobody started was missed, unless it was not to be run: the job was disabled, or the shard, or nobody's server was
//! enabled, or there was no such shard. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    coordination::{sharding::available_instances, view::View},
    job::Job,
};

#[derive(Debug)]
pub(super) struct Presence {
    total: u32,
    disabled: BTreeSet<u32>,
    /// Shards that were not to run, or not there, until then.
    shards: BTreeMap<u32, Timestamp>,
    is_open: bool,
    /// Nothing was to run until then.
    open_since: Option<Timestamp>,
}

impl Presence {
    /// Whoever enters a job knows nothing of the time before; its owner knows since when it tries to be a member.
    pub(super) fn new(job: &Job) -> Self {
        Self {
            total: job.shards.get(),
            disabled: BTreeSet::new(),
            shards: BTreeMap::new(),
            is_open: true,
            open_since: None,
        }
    }

    /// Takes what is seen now.
    pub(super) fn note(&mut self, view: &View, job: &Job, now: Timestamp) {
        if !view.is_current() {
            return;
        }
        let disabled: BTreeSet<u32> = view
            .shards
            .iter()
            .filter(|(_, shard)| shard.disabled)
            .map(|(shard, _)| *shard)
            .collect();
        for shard in self.disabled.difference(&disabled) {
            self.shards.insert(*shard, now);
        }
        self.disabled = disabled;
        let total = job.shards.get();
        self.shards.extend((self.total..total).map(|shard| (shard, now)));
        self.total = total;
        if let Some(candidates) = available_instances(view) {
            let is_open = !job.disabled && !candidates.is_empty();
            if is_open && !self.is_open {
                self.open_since = Some(now);
            }
            self.is_open = is_open;
        }
    }

    /// Whether this shard should have been run at that instant, as far as is known here.
    pub(super) fn was_to_run(&self, shard: u32, due_at: Timestamp) -> bool {
        self.open_since.is_none_or(|since| due_at > since)
            && self.shards.get(&shard).is_none_or(|since| due_at > *since)
    }
}
