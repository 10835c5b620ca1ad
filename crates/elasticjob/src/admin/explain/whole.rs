//! What concerns the job as a whole: its members, its leader, its schedule.

use jiff::SignedDuration;

use super::{Story, Topic, Whole};
use crate::admin::model::{Language, ServerStatus};

impl Whole<'_> {
    pub(super) fn tell(&self, story: &mut Story) {
        self.tell_members(story);
        self.tell_leader(story);
        self.tell_schedule(story);
        if let Some(java) =
            self.instances.iter().find(|instance| instance.language == Language::Java)
        {
            story.informs(
                Topic::Limits,
                format!("{} is a Java instance: what Java ran is not in the ledger, so of its shards only what runs now is known", java.id),
            );
        }
    }

    fn tell_members(&self, story: &mut Story) {
        if let Some(job) = self.job.filter(|job| job.disabled) {
            let says = format!(
                "job {} is disabled in its configuration: Rust instances run nothing, Java instances start disabled",
                job.name
            );
            story.blocks(Topic::Disabled, says, "enable the job");
        }
        let servers = &self.servers;
        let disabled: Vec<&str> = servers
            .iter()
            .filter(|server| server.status == ServerStatus::Disabled)
            .map(|server| server.address.as_str())
            .collect();
        if !disabled.is_empty() && disabled.len() == servers.len() {
            let says = format!("every server of it is disabled: {}", disabled.join(", "));
            story.blocks(Topic::Disabled, says, "enable the job, or one of them");
        } else if !disabled.is_empty() {
            let says = format!("disabled servers get no shards: {}", disabled.join(", "));
            story.matters(Topic::ServerDisabled, says, "enable the server if it should take part");
        }
        if self.instances.is_empty() {
            story.blocks(
                Topic::NoInstance,
                "nobody is a member: there is no instance".to_owned(),
                "start one",
            );
        }
        for instance in &self.instances {
            if let Some(problem) = &instance.problem {
                story.matters(
                    Topic::Unreadable,
                    format!("{} gets no shards: {problem}", instance.id),
                    "restart it",
                );
            }
        }
    }

    fn tell_leader(&self, story: &mut Story) {
        let picture = self.picture;
        if self.instances.is_empty() {
            return;
        }
        let flagged = picture.written_at(&picture.tree.necessary());
        match picture.text(&picture.tree.leader()) {
            None => {
                let topic = Topic::NoLeader;
                let says = "nobody leads, so shards are not dealt".to_owned();
                if flagged.is_some()
                    || picture
                        .servers()
                        .iter()
                        .all(|server| server.status == ServerStatus::Disabled)
                {
                    story.blocks(
                        topic,
                        says,
                        "is an enabled server there? a leader is elected within a moment",
                    );
                } else {
                    story.matters(topic, says, "a leader is elected within a moment");
                }
            }
            Some(leader) if !self.instances.iter().any(|instance| instance.id == leader) => {
                let says = format!("{leader} leads and is no member any more");
                story.matters(
                    Topic::NoLeader,
                    says,
                    "its session ends soon; then another is elected",
                );
            }
            Some(_) => {}
        }
        if let Some(since) = flagged {
            let says = format!(
                "shards are to be dealt anew since {since} ({}): nothing starts until that is done",
                self.ago(since)
            );
            if self.now.duration_since(since) > SignedDuration::from_secs(60) {
                story.blocks(Topic::Resharding, says, "does the leader live? Java waits until no shard is running; look for one that runs too long");
            } else {
                story.matters(Topic::Resharding, says, "look again in a moment");
            }
        }
        if let Some(since) = picture.written_at(&picture.tree.processing()) {
            story.matters(
                Topic::Resharding,
                format!("shards are being dealt since {since}"),
                "look again in a moment",
            );
        }
    }

    fn tell_schedule(&self, story: &mut Story) {
        let Some(job) = self.job else { return };
        let at = self.at;
        let next = self.next_fire.map_or("never again".to_owned(), |next| format!("next {next}"));
        match (&job.cron, self.due_at) {
            (None, _) => story.informs(
                Topic::Schedule,
                "it has no schedule: it runs when somebody asks for it".to_owned(),
            ),
            (Some(cron), None) => {
                story.informs(Topic::Schedule, format!("{cron} was never due up to {at}; {next}"));
            }
            (Some(cron), Some(due)) if due > self.now => {
                story.informs(Topic::Schedule, format!("{cron} will be due at {due}; {next}"));
            }
            (Some(cron), Some(due)) if due == at => {
                story.informs(Topic::Schedule, format!("{cron} was due at {due}; {next}"));
            }
            (Some(cron), Some(due)) => {
                story.informs(
                    Topic::Schedule,
                    format!("{cron} was not due at {at}: last {due}, {next}"),
                );
            }
        }
        if job.zone.is_none() && job.cron.is_some() {
            story.informs(
                Topic::Limits,
                "the job names no time zone: each instance reads its schedule on its own clock"
                    .to_owned(),
            );
        }
    }
}
