//! The content of an alert.

use std::fmt::Write;

use jiff::Timestamp;

use crate::{
    execution::{Failure, ShardResult},
    job::{JobName, Outcome, RunId},
    problem::printable,
};

/// Reports that a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    pub job: JobName,
    pub message: String,
    pub at: Timestamp,
    pub run: Option<RunId>,
    pub shard: Option<u32>,
    pub attempts: u32,
}

impl Notice {
    /// A failure of the job that belongs to none of its shards.
    pub fn of_job(job: JobName, failure: &Failure, at: Timestamp) -> Self {
        Self { job, message: failure.to_string(), at, run: None, shard: None, attempts: 0 }
    }

    /// The notice for a shard that ended like this; `None` if it succeeded or was cancelled.
    pub fn of_shard(result: &ShardResult, at: Timestamp) -> Option<Self> {
        match result.outcome {
            Outcome::Succeeded | Outcome::Cancelled => return None,
            Outcome::Failed | Outcome::TimedOut | Outcome::Fenced | Outcome::Lost => {}
        }
        Some(Self {
            job: result.shard.job.clone(),
            message: result.text().to_owned(),
            at,
            run: Some(result.shard.run.clone()),
            shard: Some(result.shard.item),
            // A lease may be lost before the first attempt.
            attempts: result.attempts.max(1),
        })
    }

    /// The text for people. It begins with Java ElasticJob's wording, which existing filters and chat robots may match on. Lines of the message after
    /// the first are indented, because a script or a server may have written them: they cannot pass for the lines that follow.
    pub fn text(&self) -> String {
        let message = printable(&self.message).replace('\n', "\n  ");
        let mut text = format!(
            "Job '{}' exception occur in job processing, caused by {message}\nat {}",
            self.job, self.at
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
    use crate::{
        execution::{AttemptResult, fixture},
        runtime::CancelReason,
    };

    #[test]
    fn message_can_neither_forge_a_line_nor_control_a_terminal() {
        let failure = Failure::new("exited: \u{1b}[2J\u{9b}1m\nat 2026-11-18T00:00:00Z, shard 7");

        let text =
            Notice::of_job("settle".parse().unwrap(), &failure, Timestamp::UNIX_EPOCH).text();

        assert_eq!(
            text,
            "Job 'settle' exception occur in job processing, caused by exited: \\u{1b}[2J\\u{9b}1m\n  \
             at 2026-11-18T00:00:00Z, shard 7\nat 1970-01-01T00:00:00Z"
        );
    }

    #[test]
    fn success_and_cancellation_produce_no_notice() {
        let shard = fixture::shard("settle", 2);
        let notice = |result: AttemptResult| {
            Notice::of_shard(&ShardResult::new(shard.clone(), result), Timestamp::UNIX_EPOCH)
        };

        assert_eq!(notice(AttemptResult::succeeded()), None);
        assert_eq!(notice(AttemptResult::cancelled(CancelReason::Requested)), None);
        assert!(notice(AttemptResult::fenced()).is_some());
        assert_eq!(
            notice(AttemptResult::failed(&Failure::new("no table")).after(3)).unwrap().text(),
            "Job 'settle' exception occur in job processing, caused by no table\n\
             at 1970-01-01T00:00:00Z, shard 2, run settle/1774749600000, after 3 attempts"
        );
    }
}
