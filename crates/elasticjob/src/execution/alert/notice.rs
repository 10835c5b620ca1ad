//! What there is to tell.

use std::fmt::Write;

use jiff::Timestamp;

use crate::{
    execution::{Failure, Outcome},
    job::{JobName, RunId, Shard},
};

/// Something went wrong with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// The job.
    pub job: JobName,
    /// What went wrong.
    pub message: String,
    /// When.
    pub at: Timestamp,
    /// In which run, if in one.
    pub run: Option<RunId>,
    /// With which shard, if with one.
    pub shard: Option<u32>,
    /// After how many attempts.
    pub attempts: u32,
}

impl Notice {
    /// Something went wrong with a job, but not with one of its shards.
    pub fn of_job(job: JobName, failure: &Failure, at: Timestamp) -> Self {
        Self { job, message: failure.to_string(), at, run: None, shard: None, attempts: 0 }
    }

    /// What there is to tell about a shard that ended like this, if anything. That somebody cancelled it is nothing to tell.
    pub fn of_shard(shard: &Shard, outcome: &Outcome, at: Timestamp) -> Option<Self> {
        let attempts = match outcome {
            Outcome::Failed { attempts, .. } | Outcome::TimedOut { attempts, .. } => *attempts,
            Outcome::Fenced => 1,
            Outcome::Done | Outcome::Cancelled { .. } => return None,
        };
        Some(Self {
            job: shard.job.clone(),
            message: outcome.to_string(),
            at,
            run: Some(shard.run.clone()),
            shard: Some(shard.item),
            attempts,
        })
    }

    /// For people. It begins in the ancestor's words, which filters and robots may be waiting for.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Job '{}' exception occur in job processing, caused by {}\nat {}",
            self.job, self.message, self.at
        );
        if let Some(shard) = self.shard {
            let _ = write!(text, ", shard {shard}");
        }
        if let Some(run) = &self.run {
            let _ = write!(text, ", run {run}");
        }
        if self.attempts > 1 {
            let _ = write!(text, ", after {} attempts", self.attempts);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{execution::fixture, runtime::CancelReason};

    #[test]
    fn what_somebody_wanted_is_nothing_to_tell() {
        let shard = fixture::shard("settle", 2);
        let told = |outcome: &Outcome| Notice::of_shard(&shard, outcome, Timestamp::UNIX_EPOCH);

        assert_eq!(told(&Outcome::Done), None);
        assert_eq!(told(&Outcome::Cancelled { reason: CancelReason::Requested }), None);
        assert!(told(&Outcome::Fenced).is_some());
        assert_eq!(
            told(&Outcome::Failed { message: "no table".into(), attempts: 3 }).unwrap().text(),
            "Job 'settle' exception occur in job processing, caused by no table\n\
             at 1970-01-01T00:00:00Z, shard 2, run settle/1774749600000, after 3 attempts"
        );
    }
}
