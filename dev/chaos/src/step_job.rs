//! The jobs that chaos workers run, and their JSON form, in which the parent process passes them to a worker.

use std::time::Duration;

use elasticjob::job::{Failover, InvalidValue, Job, LeaseLoss, Strategy};
use serde_json::{Value, json};

/// A job that works in steps and writes after each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepJob {
    pub name: String,
    pub cron: String,
    pub shards: u32,
    /// Whether another instance takes over the shards of a dead one.
    pub failover: bool,
    /// Number of steps of each shard.
    pub steps: u32,
    /// Duration of a step.
    pub step: Duration,
    /// The shard that fails after its steps, in every run.
    pub fails: Option<u32>,
    /// Keeps running when its lease is lost, so that there are stale writes to refuse.
    pub stubborn: bool,
    /// The sharding strategy; the default one if `None`.
    pub strategy: Option<String>,
}

impl StepJob {
    /// A job with failover whose shards make `steps` steps of duration `step`.
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

    #[must_use]
    pub fn without_failover(self) -> Self {
        Self { failover: false, ..self }
    }

    #[must_use]
    pub fn failing(self, shard: u32) -> Self {
        Self { fails: Some(shard), ..self }
    }

    #[must_use]
    pub fn stubborn(self) -> Self {
        Self { stubborn: true, ..self }
    }

    #[must_use]
    pub fn with_strategy(self, strategy: &str) -> Self {
        Self { strategy: Some(strategy.into()), ..self }
    }

    /// How long a shard runs.
    pub fn length(&self) -> Duration {
        self.step * self.steps
    }

    pub fn job(&self) -> Result<Job, InvalidValue> {
        let mut job = Job::named(&self.name)?.cron(&self.cron)?.shards(self.shards);
        if self.failover {
            job = job.failover(Failover::TakeOver);
        }
        if self.stubborn {
            job = job.on_lease_loss(LeaseLoss::FinishFenced);
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
    fn job_survives_json_round_trip() {
        let job = StepJob::new("long", "0/5 * * * * ?", 3, 6, Duration::from_millis(500))
            .failing(1)
            .stubborn()
            .with_strategy("SINGLE_SHARDING_BALANCE");

        assert_eq!(StepJob::from_json(&job.to_json()), Some(job));
    }
}
