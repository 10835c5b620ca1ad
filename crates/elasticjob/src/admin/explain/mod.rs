//! Why did this job, this shard, run or not run at that time?
//!
//! A pure reading of a [`Picture`]: what stands in the way now, what was due by the schedule, and what the ledger says of it. The ledger keeps the
//! newest run of every shard and Java keeps none, so there are limits, and they are told as findings of their own. What only history
//! knows is added by whoever has one (`Admin::explain_with`).

mod finding;
mod fire;
#[cfg(feature = "_history-store")]
mod remembered;
mod shard;
mod whole;

use jiff::{SignedDuration, Timestamp};

pub use self::finding::{Explanation, Finding, Topic, Weight};
use super::{
    door::Admin,
    error::AdminError,
    model::{Instance, Server},
    picture::Picture,
};
use crate::{
    job::{Job, JobName},
    schedule::Zone,
};

impl Admin {
    /// Why did this job, this shard of it, run or not run at that time? Without a shard: all of them; without a time: now. A job that is not
    /// there is a finding, too.
    pub async fn explain(
        &self,
        job: &JobName,
        shard: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Explanation, AdminError> {
        let picture = self.picture(job).await?;
        let now = self.now();
        Ok(explain(&picture, shard, at.unwrap_or(now), now, &self.zone))
    }
}

/// What a picture says about that time.
fn explain(
    picture: &Picture,
    shard: Option<u32>,
    at: Timestamp,
    now: Timestamp,
    zone: &Zone,
) -> Explanation {
    let mut story = Story { findings: Vec::new(), shard: None };
    let job = match picture.config() {
        Some(Ok(job)) => Some(job),
        Some(Err(error)) => {
            story.blocks(Topic::Unreadable, error.to_string(), "correct the stored document; whoever runs it goes on with the last one they could read");
            None
        }
        None => {
            story.blocks(
                Topic::Missing,
                format!("there is no configuration of job {}", picture.job),
                "is it another namespace? was it removed?",
            );
            None
        }
    };
    let schedule = job.as_ref().and_then(|job| job.schedule(zone));
    let just_after = at.checked_add(SignedDuration::from_nanos(1)).unwrap_or(at);
    let due_at = schedule.as_ref().and_then(|schedule| schedule.prev_before(just_after));
    let next_fire = schedule.as_ref().and_then(|schedule| schedule.next_after(at));
    let whole = Whole {
        picture,
        instances: picture.instances(),
        servers: picture.servers(),
        job: job.as_ref(),
        at,
        now,
        due_at,
        next_fire,
    };
    if picture.is_there() {
        whole.tell(&mut story);
        for one in picture.shards().iter().filter(|one| shard.is_none_or(|shard| shard == one.item))
        {
            story.shard = Some(one.item);
            whole.tell_shard(one, &mut story);
        }
        if let Some(number) = shard.filter(|shard| !picture.items().contains(shard)) {
            story.shard = Some(number);
            story.blocks(
                Topic::NoShard,
                format!("there is no shard {number}"),
                "shards count from zero",
            );
        }
    }
    Explanation { job: picture.job.to_string(), at, due_at, next_fire, findings: story.findings }
}

/// Findings, as they come.
struct Story {
    findings: Vec<Finding>,
    /// What they are about now.
    shard: Option<u32>,
}

impl Story {
    fn add(&mut self, topic: Topic, weight: Weight, says: String, hint: Option<&str>) {
        let hint = hint.map(ToOwned::to_owned);
        self.findings.push(Finding { topic, weight, shard: self.shard, says, hint });
    }

    fn informs(&mut self, topic: Topic, says: String) {
        self.add(topic, Weight::Informs, says, None);
    }

    fn matters(&mut self, topic: Topic, says: String, hint: &str) {
        self.add(topic, Weight::Matters, says, Some(hint));
    }

    fn blocks(&mut self, topic: Topic, says: String, hint: &str) {
        self.add(topic, Weight::Blocks, says, Some(hint));
    }
}

/// What is known of the job as a whole.
struct Whole<'p> {
    picture: &'p Picture,
    instances: Vec<Instance>,
    servers: Vec<Server>,
    job: Option<&'p Job>,
    at: Timestamp,
    now: Timestamp,
    due_at: Option<Timestamp>,
    next_fire: Option<Timestamp>,
}

impl Whole<'_> {
    fn ago(&self, since: Timestamp) -> String {
        let seconds = self.now.duration_since(since).as_secs().max(0);
        match seconds {
            0..=119 => format!("{seconds} s"),
            120..=7199 => format!("{} min", seconds / 60),
            _ => format!("{} h", seconds / 3600),
        }
    }
}
