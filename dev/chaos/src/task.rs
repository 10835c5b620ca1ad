//! What a worker's jobs are, as its parent tells it.

use std::time::Duration;

use elasticjob::job::{Failover, Invalid, Job, LeaseLoss, Strategy};
use serde_json::{Value, json};

/// A job that works in steps and writes after each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What it is called.
    pub name: String,
    /// When it is due.
    pub cron: String,
    /// How many shards it has.
    pub shards: u32,
    /// Whether what a dead instance ran is taken over.
    pub failover: bool,
    /// How many steps a shard takes.
    pub steps: u32,
    /// How long each takes.
    pub step: Duration,
    /// A shard that fails after its steps, each time.
    pub fails: Option<u32>,
    /// Goes on when its lease is lost: somebody has to try a stale write.
    pub stubborn: bool,
    /// How its shards are dealt.
    pub strategy: Option<String>,
}

impl Task {
    /// One that is taken over, with as many steps of this length.
    pub fn new(name: &str, cron: &str, shards: u32, steps: u32, step: Duration) -> Self {
        Self {
            name: name.into(),
            cron: cron.into(),
            shards,
            failover: true,
            steps,
            step,
            fails: None,
            stubborn: false,
            strategy: None,
        }
    }

    /// Is not taken over.
    #[must_use]
    pub fn without_failover(self) -> Self {
        Self { failover: false, ..self }
    }

    /// This shard fails each time.
    #[must_use]
    pub fn failing(self, shard: u32) -> Self {
        Self { fails: Some(shard), ..self }
    }

    /// Goes on whatever happens.
    #[must_use]
    pub fn stubborn(self) -> Self {
        Self { stubborn: true, ..self }
    }

    /// Is dealt like this.
    #[must_use]
    pub fn dealt_by(self, strategy: &str) -> Self {
        Self { strategy: Some(strategy.into()), ..self }
    }

    /// How long a shard works.
    pub fn length(&self) -> Duration {
        self.step * self.steps
    }

    /// The job it is.
    pub fn job(&self) -> Result<Job, Invalid> {
        let mut job = Job::named(&self.name)?.cron(&self.cron)?.shards(self.shards);
        if self.failover {
            job = job.if_node_dies(Failover::TakeOver);
        }
        if self.stubborn {
            job = job.if_lease_is_lost(LeaseLoss::FinishFenced);
        }
        match self.strategy.as_deref() {
            Some("SINGLE_SHARDING_BALANCE") => Ok(job.strategy(&Strategy::SingleShardingBalance)),
            Some(_) | None => Ok(job),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "cron": self.cron,
            "shards": self.shards,
            "failover": self.failover,
            "steps": self.steps,
            "stepMs": self.step.as_millis() as u64,
            "fails": self.fails,
            "stubborn": self.stubborn,
            "strategy": self.strategy,
        })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
        Some(Self {
            name: value["name"].as_str()?.into(),
            cron: value["cron"].as_str()?.into(),
            shards: number("shards")?,
            failover: value["failover"].as_bool()?,
            steps: number("steps")?,
            step: Duration::from_millis(value["stepMs"].as_u64()?),
            fails: number("fails"),
            stubborn: value["stubborn"].as_bool()?,
            strategy: value["strategy"].as_str().map(Into::into),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_told_what_its_parent_means() {
        let task = Task::new("long", "0/5 * * * * ?", 3, 6, Duration::from_millis(500))
            .failing(1)
            .stubborn()
            .dealt_by("SINGLE_SHARDING_BALANCE");

        assert_eq!(Task::from_json(&task.to_json()), Some(task));
    }
}
