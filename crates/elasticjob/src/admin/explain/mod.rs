//! Explains why a job or shard ran, or did not run, at a given time.
//!
//! The explanation is a pure function of a [`JobSnapshot`]: what blocks the job now, what was due by the schedule, and what the ledger knows of that
//! fire. The ledger keeps only the newest run of every shard, and Java writes none; what cannot be known is reported as a finding, too.
//! `Admin::explain_with_history` adds what history knows.

mod finding;
mod fire;
#[cfg(feature = "_history-store")]
mod history;
mod job;
mod shard;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

pub use self::finding::{Explanation, Finding, Severity, Topic};
use super::{
    error::AdminError,
    handle::Admin,
    model::{Instance, Server},
    snapshot::JobSnapshot,
};
use crate::{
    job::{Job, JobName},
    registry::SessionId,
    schedule::Zone,
};

impl Admin {
    /// Explains why a shard (all shards if none is given) ran, or did not run, at a given time (now if none is given). A job that does not exist is a
    /// finding, too.
    pub async fn explain(
        &self,
        job: &JobName,
        shard: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Explanation, AdminError> {
        let snapshot = self.snapshot(job).await?;
        let now = self.now();
        Ok(explain(&snapshot, shard, at.unwrap_or(now), now, &self.zone))
    }
}

fn explain(
    snapshot: &JobSnapshot,
    shard: Option<u32>,
    at: Timestamp,
    now: Timestamp,
    zone: &Zone,
) -> Explanation {
    let mut report = Report { findings: Vec::new(), shard: None };
    let job = match snapshot.config() {
        Some(Ok(job)) => Some(job),
        Some(Err(error)) => {
            let hint = error.hint.as_deref().unwrap_or("correct the stored document; instances continue with the last configuration they could read");
            report.blocking(Topic::Unreadable, error.to_string(), hint);
            None
        }
        None => {
            report.blocking(
                Topic::Missing,
                format!("job {} has no configuration", snapshot.job),
                "is it in another namespace? was it removed?",
            );
            None
        }
    };
    let schedule = job.as_ref().and_then(|job| job.schedule(zone));
    let just_after = at.checked_add(SignedDuration::from_nanos(1)).unwrap_or(at);
    let due_at = schedule.as_ref().and_then(|schedule| schedule.prev_before(just_after));
    let next_fire = schedule.as_ref().and_then(|schedule| schedule.next_after(at));
    let context = JobContext {
        snapshot,
        instances: snapshot.instances(),
        servers: snapshot.servers(),
        ephemeral_bytes: snapshot.ephemeral_bytes(),
        job: job.as_ref(),
        at,
        now,
        due_at,
        next_fire,
    };
    if snapshot.exists() {
        context.explain_job(&mut report);
        let items = snapshot.items();
        let wanted = items.iter().filter(|item| shard.is_none_or(|shard| shard == *item));
        for one in snapshot.shards(wanted) {
            report.shard = Some(one.item);
            context.explain_shard(&one, &mut report);
        }
        if let Some(item) = shard.filter(|shard| !items.contains(*shard)) {
            report.shard = Some(item);
            report.blocking(
                Topic::NoShard,
                format!("there is no shard {item}"),
                "shards are numbered from 0",
            );
        }
    }
    Explanation { job: snapshot.job.to_string(), at, due_at, next_fire, findings: report.findings }
}

/// Collects findings.
struct Report {
    findings: Vec<Finding>,
    /// The shard that new findings are about; none for the job.
    shard: Option<u32>,
}

impl Report {
    fn add(&mut self, topic: Topic, severity: Severity, message: String, hint: Option<&str>) {
        let hint = hint.map(ToOwned::to_owned);
        self.findings.push(Finding { topic, severity, shard: self.shard, message, hint });
    }

    fn info(&mut self, topic: Topic, message: String) {
        self.add(topic, Severity::Info, message, None);
    }

    fn warning(&mut self, topic: Topic, message: String, hint: &str) {
        self.add(topic, Severity::Warning, message, Some(hint));
    }

    fn blocking(&mut self, topic: Topic, message: String, hint: &str) {
        self.add(topic, Severity::Blocking, message, Some(hint));
    }
}

/// Everything the findings about a job and its shards are derived from.
struct JobContext<'a> {
    snapshot: &'a JobSnapshot,
    instances: Vec<Instance>,
    servers: Vec<Server>,
    /// What each session holds in this job.
    ephemeral_bytes: BTreeMap<SessionId, usize>,
    job: Option<&'a Job>,
    at: Timestamp,
    now: Timestamp,
    due_at: Option<Timestamp>,
    next_fire: Option<Timestamp>,
}

impl JobContext<'_> {
    /// The time passed since `since`, for messages.
    fn ago(&self, since: Timestamp) -> String {
        let seconds = self.now.duration_since(since).as_secs().max(0);
        match seconds {
            0..=119 => format!("{seconds} s"),
            120..=7199 => format!("{} min", seconds / 60),
            _ => format!("{} h", seconds / 3600),
        }
    }
}
