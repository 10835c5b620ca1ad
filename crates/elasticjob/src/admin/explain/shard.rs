//! Findings about one shard: its owner, its holder, its failover.

use super::{JobContext, Report, Topic};
use crate::{
    admin::model::{Language, ServerStatus, Shard},
    coordination::{
        ephemerals::{MOST_CLAIMED, bytes_of},
        ledger::{LedgerPage, LedgerState},
        tree::ShardNode,
    },
    job::{Misfire, Monitor, server_of},
};

impl JobContext<'_> {
    pub(super) fn explain_shard(&self, shard: &Shard, report: &mut Report) {
        if shard.is_disabled {
            report.blocking(Topic::ShardDisabled, "it is disabled".to_owned(), "enable the shard");
        }
        if let Some(total) =
            self.job.map(|job| job.shards.get()).filter(|total| shard.item >= *total)
        {
            let message = format!("the job has {total} shards: this one is left over");
            report.blocking(
                Topic::NoShard,
                message,
                "it is deleted the next time shards are assigned; if it stays, delete its node and all below it",
            );
        }
        match &shard.owner {
            None => report.blocking(
                Topic::NoOwner,
                "it is unassigned: shards are not assigned yet".to_owned(),
                "is there an enabled instance? Java assigns shards at the next fire",
            ),
            Some(owner) if !shard.is_owner_online => {
                report.blocking(
                    Topic::OwnerGone,
                    format!("it is assigned to {owner}, which is gone"),
                    "it is reassigned within a moment if there is an enabled instance",
                );
            }
            Some(owner) => self.explain_owner(owner, report),
        }
        self.explain_run(shard, report);
        self.explain_session(shard, report);
        self.explain_failover(shard, report);
        self.explain_fire(shard, report);
    }

    fn explain_owner(&self, owner: &str, report: &mut Report) {
        let address = server_of(owner);
        match self.servers.iter().find(|server| server.address == address) {
            Some(server) if server.status == ServerStatus::Disabled => {
                let message = format!("its owner {owner} is on a disabled server");
                report.blocking(Topic::ServerDisabled, message, "enable the server");
            }
            Some(_) => {}
            None => {
                let message = format!(
                    "its owner {owner} is on a server without an entry, which counts as disabled"
                );
                report.blocking(Topic::ServerDisabled, message, "restart the instance");
            }
        }
    }

    /// An owner whose session is full claims further shards once others have ended.
    fn explain_session(&self, shard: &Shard, report: &mut Report) {
        let Some(owner) = shard.owner.as_deref().filter(|_| shard.running.is_none()) else {
            return;
        };
        let tree = &self.snapshot.tree;
        let session = self.snapshot.node(&tree.instance(owner)).and_then(|node| node.stat.owner);
        let bytes = session.and_then(|session| self.ephemeral_bytes.get(&session)).copied();
        let next = bytes_of(&tree.shard(shard.item, ShardNode::Running));
        if Language::of(owner) == Language::Rust && bytes.unwrap_or_default() + next > MOST_CLAIMED
        {
            report.warning(
                Topic::Running,
                format!("the session of {owner} holds as many shards as it may"),
                "it runs once others have ended; start more instances to run more at once",
            );
        }
    }

    fn explain_run(&self, shard: &Shard, report: &mut Report) {
        let page = self.snapshot.page(shard.item).and_then(|(page, _)| page.ok());
        let tree = &self.snapshot.tree;
        let is_in_tree =
            ShardNode::HOLDERS.iter().any(|part| self.snapshot.has(&tree.shard(shard.item, *part)));
        if !is_in_tree
            && self.job.is_some_and(|job| job.monitor == Monitor::Executions)
            && let Some(LedgerPage { state: LedgerState::Running, holder: Some(holder), .. }) = page
            && self.snapshot.processes.contains(holder.as_str())
        {
            report.blocking(
                Topic::Running,
                format!("{holder} holds it according to the ledger, and the tree shows no run"),
                "it is released within a moment; if it is not, restart that worker",
            );
        } else if let Some(running) = &shard.running {
            let since = running.since.map(|since| format!(" since {since} ({})", self.ago(since)));
            let since = since.unwrap_or_default();
            let holder = &running.instance;
            if self.instances.iter().any(|instance| instance.id == *holder) {
                report.info(Topic::Running, format!("it is running on {holder}{since}"));
            } else if self.snapshot.processes.contains(holder) {
                report.warning(
                    Topic::Running,
                    format!("{holder} has left the job and still runs it{since}"),
                    "it runs elsewhere once that run ends; if it does not end, restart that worker",
                );
            } else {
                let message = format!("{holder} was running it{since} and is gone");
                report.warning(
                    Topic::Running,
                    message,
                    "another instance takes it over, or runs it at its next fire",
                );
            }
        }
        if shard.has_misfire_mark {
            let message = "it came due while it was running".to_owned();
            match self.job.map(|job| job.misfire) {
                Some(Misfire::Skip) => {
                    report.warning(Topic::Misfire, message, "misfire is off: that fire is missed");
                }
                _ => report.warning(Topic::Misfire, message, "it runs once more, right after"),
            }
        }
    }

    fn explain_failover(&self, shard: &Shard, report: &mut Report) {
        if shard.awaits_failover {
            let since = self.snapshot.written_at(&self.snapshot.tree.failover_item(shard.item));
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            report.warning(
                Topic::Failover,
                format!("it has been awaiting failover{since}: the instance that ran it is gone"),
                "an idle instance takes it over within a moment",
            );
        }
        if let Some(instance) = &shard.taken_over_by {
            report.info(Topic::Failover, format!("{instance} has taken it over"));
        }
    }
}
