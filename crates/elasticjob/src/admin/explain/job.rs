//! Findings about the job as a whole: its instances, its leader, its schedule.

use jiff::SignedDuration;

use super::{JobContext, Report, Topic};
use crate::{
    admin::model::{Language, ServerStatus},
    coordination::server_status::StoredStatus,
    job::server_of,
};

impl JobContext<'_> {
    pub(super) fn explain_job(&self, report: &mut Report) {
        self.explain_instances(report);
        self.explain_leader(report);
        self.explain_schedule(report);
        if let Some(java) =
            self.instances.iter().find(|instance| instance.language == Language::Java)
        {
            report.info(
                Topic::Limits,
                format!("{} is a Java instance: Java does not write the ledger, so only what is running now is known of its shards", java.id),
            );
        }
    }

    fn explain_instances(&self, report: &mut Report) {
        if let Some(job) = self.job.filter(|job| job.disabled) {
            let message = format!(
                "job {} is disabled in its configuration: Rust instances run nothing, Java instances start disabled",
                job.name
            );
            report.blocking(Topic::Disabled, message, "enable the job");
        }
        let servers = &self.servers;
        let stored = self.snapshot.children(self.snapshot.tree.servers());
        let empty: Vec<&str> = stored
            .filter(|(_, node)| StoredStatus::read(&node.data) == StoredStatus::Empty)
            .map(|(address, _)| address)
            .collect();
        for address in &empty {
            let message = format!(
                "server {address} has an empty status, as ElasticJob 2.x writes it: no instance runs there"
            );
            let hint = format!("elasticjob server enable {address}");
            let has_instance = self.instances.iter().any(|one| server_of(&one.id) == *address);
            if has_instance || servers.iter().all(|server| empty.contains(&&*server.address)) {
                report.blocking(Topic::Unreadable, message, &hint);
            } else {
                report.info(Topic::Unreadable, message);
            }
        }
        let disabled: Vec<&str> = servers
            .iter()
            .filter(|server| server.status == ServerStatus::Disabled)
            .map(|server| server.address.as_str())
            .filter(|address| !empty.contains(address))
            .collect();
        if !disabled.is_empty() && disabled.len() == servers.len() {
            let message = format!("every server of the job is disabled: {}", disabled.join(", "));
            report.blocking(Topic::Disabled, message, "enable the job, or one of them");
        } else if !disabled.is_empty() {
            let message = format!("disabled servers get no shards: {}", disabled.join(", "));
            report.warning(
                Topic::ServerDisabled,
                message,
                "enable the server if it should run the job",
            );
        }
        if self.instances.is_empty() {
            report.blocking(Topic::NoInstance, "the job has no instance".to_owned(), "start one");
        }
        for instance in &self.instances {
            if let Some(problem) = &instance.problem {
                report.warning(
                    Topic::Unreadable,
                    format!("{} gets no shards: {problem}", instance.id),
                    "restart it",
                );
            }
        }
    }

    fn explain_leader(&self, report: &mut Report) {
        let snapshot = self.snapshot;
        if self.instances.is_empty() {
            return;
        }
        let flagged_at = snapshot.written_at(&snapshot.tree.necessary());
        match snapshot.text(&snapshot.tree.leader()) {
            None => {
                let topic = Topic::NoLeader;
                let message = "the job has no leader, so shards are not assigned".to_owned();
                if flagged_at.is_some()
                    || snapshot
                        .servers()
                        .iter()
                        .all(|server| server.status == ServerStatus::Disabled)
                {
                    report.blocking(
                        topic,
                        message,
                        "is any server enabled? then a leader is elected within a moment",
                    );
                } else {
                    report.warning(topic, message, "a leader is elected within a moment");
                }
            }
            Some(leader) if !self.instances.iter().any(|instance| instance.id == leader) => {
                let message = format!("the leader {leader} is no longer an instance of the job");
                report.warning(
                    Topic::NoLeader,
                    message,
                    "its session ends soon; then another leader is elected",
                );
            }
            Some(_) => {}
        }
        if let Some(since) = flagged_at {
            let message = format!(
                "reassignment of shards has been pending since {since} ({}): nothing starts until it is done",
                self.ago(since)
            );
            if self.now.duration_since(since) > SignedDuration::from_secs(60) {
                report.blocking(Topic::Resharding, message, "is the leader alive? Java waits until no shard is running; look for one that runs too long");
            } else {
                report.warning(Topic::Resharding, message, "check again in a moment");
            }
        }
        if let Some(since) = snapshot.written_at(&snapshot.tree.processing()) {
            report.warning(
                Topic::Resharding,
                format!("assignment of shards has been in progress since {since}"),
                "check again in a moment",
            );
        }
    }

    fn explain_schedule(&self, report: &mut Report) {
        let Some(job) = self.job else { return };
        let at = self.at;
        let next = self.next_fire.map_or("never again".to_owned(), |next| format!("next {next}"));
        match (&job.cron, self.due_at) {
            (None, _) => report.info(
                Topic::Schedule,
                "it has no schedule: it runs only when triggered".to_owned(),
            ),
            (Some(cron), None) => {
                report.info(Topic::Schedule, format!("{cron} was never due up to {at}; {next}"));
            }
            (Some(cron), Some(due)) if due > self.now => {
                report.info(Topic::Schedule, format!("{cron} will be due at {due}; {next}"));
            }
            (Some(cron), Some(due)) if due == at => {
                report.info(Topic::Schedule, format!("{cron} was due at {due}; {next}"));
            }
            (Some(cron), Some(due)) => {
                report.info(
                    Topic::Schedule,
                    format!("{cron} was not due at {at}: last {due}, {next}"),
                );
            }
        }
        if job.zone.is_none() && job.cron.is_some() {
            report.info(
                Topic::Limits,
                "the job sets no time zone: each instance applies the schedule in its own zone"
                    .to_owned(),
            );
        }
    }
}
