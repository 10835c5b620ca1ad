//! What concerns one shard: whose it is, who runs it, who has to take it over.

use super::{Story, Topic, Whole};
use crate::{
    admin::model::{ServerStatus, Shard},
    job::{Misfire, server_of},
};

impl Whole<'_> {
    pub(super) fn tell_shard(&self, shard: &Shard, story: &mut Story) {
        if shard.is_disabled {
            story.blocks(Topic::ShardDisabled, "it is disabled".to_owned(), "enable the shard");
        }
        if let Some(total) =
            self.job.map(|job| job.shards.get()).filter(|total| shard.item >= *total)
        {
            let says = format!("the job has {total} shards: this one is left over");
            story.blocks(Topic::NoShard, says, "it goes the next time shards are dealt");
        }
        match &shard.owner {
            None => story.blocks(
                Topic::NoOwner,
                "it belongs to nobody: shards are not dealt yet".to_owned(),
                "is there an enabled instance? Java deals at the next fire",
            ),
            Some(owner) if !shard.is_owner_online => {
                story.blocks(
                    Topic::OwnerGone,
                    format!("it belongs to {owner}, who is gone"),
                    "it is dealt anew within a moment if an enabled instance is there",
                );
            }
            Some(owner) => self.tell_owner(owner, story),
        }
        self.tell_run(shard, story);
        self.tell_failover(shard, story);
        self.tell_fire(shard, story);
    }

    fn tell_owner(&self, owner: &str, story: &mut Story) {
        let address = server_of(owner);
        match self.servers.iter().find(|server| server.address == address) {
            Some(server) if server.status == ServerStatus::Disabled => {
                let says = format!("its owner {owner} is on a disabled server");
                story.blocks(Topic::ServerDisabled, says, "enable the server");
            }
            Some(_) => {}
            None => {
                let says = format!(
                    "its owner {owner} is on a server without an entry, which counts as disabled"
                );
                story.blocks(Topic::ServerDisabled, says, "restart the instance");
            }
        }
    }

    fn tell_run(&self, shard: &Shard, story: &mut Story) {
        if let Some(running) = &shard.running {
            let since = running.since.map(|since| format!(" since {since} ({})", self.ago(since)));
            let since = since.unwrap_or_default();
            let holder = &running.instance;
            let lives = self.picture.processes.contains(holder)
                || self.instances.iter().any(|instance| instance.id == *holder);
            if lives {
                story.informs(Topic::Running, format!("{holder} runs it{since}"));
            } else {
                let says = format!("{holder} was running it{since} and is gone");
                story.matters(
                    Topic::Running,
                    says,
                    "whoever is left takes it over, or runs it at its next fire",
                );
            }
        }
        if shard.is_misfired {
            let says = "it was due while it ran".to_owned();
            match self.job.map(|job| job.misfire) {
                Some(Misfire::Skip) => {
                    story.matters(Topic::Misfire, says, "misfire is off: that fire is left out");
                }
                _ => story.matters(Topic::Misfire, says, "it runs once more, right after"),
            }
        }
    }

    fn tell_failover(&self, shard: &Shard, story: &mut Story) {
        if shard.waits_for_failover {
            let since = self.picture.written_at(&self.picture.tree.failover_item(shard.item));
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            story.matters(
                Topic::Failover,
                format!("it waits{since} to be taken over: whoever ran it is gone"),
                "an instance that is free takes it within a moment",
            );
        }
        if let Some(taker) = &shard.taken_over_by {
            story.informs(Topic::Failover, format!("{taker} has taken it over"));
        }
    }
}
