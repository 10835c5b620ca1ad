//! What is forgotten, a little at a time.

use std::{num::NonZeroU32, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{Store, ask::bound, error::StoreError, select::Select, write::Write};

/// How many runs one transaction forgets: few enough that nobody waits for it.
const STEP: usize = 200;

/// How much is kept.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::history::Retention;
///
/// let retention = Retention::default();
/// assert_eq!(retention.age, Duration::from_hours(30 * 24));
/// assert_eq!(retention.failures_age, Duration::from_hours(90 * 24));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// A run that began longer ago is forgotten.
    pub age: Duration,
    /// The same for one that failed, or never came to an end.
    pub failures_age: Duration,
    /// Of each job so many runs are kept, and as many that failed.
    pub runs_per_job: NonZeroU32,
    /// Whether rows that others wrote are forgotten, too: what the ancestor left in its two tables.
    pub foreign: bool,
}

impl Default for Retention {
    /// 30 days and 1,000 runs of each job, failures 90 days; what others wrote is left alone.
    fn default() -> Self {
        Self {
            age: Duration::from_hours(30 * 24),
            failures_age: Duration::from_hours(90 * 24),
            runs_per_job: NonZeroU32::new(1000).unwrap_or(NonZeroU32::MIN),
            foreign: false,
        }
    }
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// Runs, with everything that belongs to them.
    pub runs: u64,
    /// Rows of both of the ancestor's tables that others wrote.
    pub foreign: u64,
    /// Missed fires.
    pub missed: u64,
    /// Traces and output of runs that there are none of: fires that came to nothing, and what was told after its run was forgotten.
    pub orphans: u64,
}

impl Store {
    /// Forgets what is not to be kept. Every step is a short transaction of its own; dropped half way, the rest is done the next time.
    pub async fn prune(&self, retention: &Retention, now: Timestamp) -> Result<Pruned, StoreError> {
        let ago = |age: Duration| {
            let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
            now.checked_sub(age).unwrap_or(Timestamp::MIN)
        };
        let (old, older) =
            (ago(retention.age), ago(retention.failures_age).min(ago(retention.age)));
        let mut pruned = Pruned::default();
        for (state, before) in
            [("done", old), ("cancelled", old), ("failed", older), ("running", older)]
        {
            pruned.runs += self.forget_before(None, state, before.as_millisecond()).await?;
        }
        for job in self.jobs().await? {
            for state in ["done", "cancelled", "failed"] {
                if let Some(before) = self.last_kept(&job, state, retention.runs_per_job).await? {
                    pruned.runs += self.forget_before(Some(&job), state, before).await?;
                }
            }
        }
        pruned.missed =
            self.forget_rows("ELASTICJOB_MISSED", "noticed_ms < ?", old.as_millisecond()).await?;
        pruned.orphans = self.forget_orphans(old).await?;
        if retention.foreign {
            pruned.foreign = self.forget_foreign(old, older).await?;
        }
        Ok(pruned)
    }

    /// When the oldest run began that is still to be kept, if there are more.
    async fn last_kept(
        &self,
        job: &str,
        state: &str,
        runs: NonZeroU32,
    ) -> Result<Option<i64>, StoreError> {
        let mut select = Select::new(self.dialect(), "SELECT started_ms FROM ELASTICJOB_RUN");
        select.filter("job_name = ? AND state = ?", [job.into(), state.into()]);
        let skipped = i64::from(runs.get() - 1);
        select.with(" ORDER BY started_ms DESC LIMIT 1 OFFSET ?", [skipped.into()]);
        Ok(self.ask(&select, |row| row.number(0)).await?.pop())
    }

    async fn forget_before(
        &self,
        job: Option<&str>,
        state: &str,
        before: i64,
    ) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let mut select = Select::new(self.dialect(), "SELECT run_id FROM ELASTICJOB_RUN");
            select.filter_if("job_name = ?", job.map(Into::into));
            select.filter("state = ? AND started_ms < ?", [state.into(), before.into()]);
            select.with(" ORDER BY started_ms LIMIT ?", [bound(STEP)]);
            let mut runs = self.ask(&select, |row| row.word(0)).await?;
            // As everybody else locks them.
            runs.sort();
            if !runs.is_empty() {
                forgotten += self.forget(&runs).await?;
            }
            if runs.len() < STEP {
                return Ok(forgotten);
            }
        }
    }

    async fn forget(&self, runs: &[String]) -> Result<u64, StoreError> {
        let names =
            ["forget runs", "forget attempts", "forget traces", "forget output", "forget cuts"];
        let changed = self.write_all(&names, runs).await?;
        Ok(changed.first().copied().unwrap_or_default())
    }

    async fn forget_output(&self, runs: &[String]) -> Result<u64, StoreError> {
        Ok(self.write_all(&["forget output", "forget cuts"], runs).await?.into_iter().sum())
    }

    /// All of these statements on these runs, in one transaction.
    async fn write_all(&self, names: &[&str], runs: &[String]) -> Result<Vec<u64>, StoreError> {
        let write = |name: &&str| Write::new(self.dialect(), name, runs.iter()).ok().flatten();
        let statements: Vec<Write> = names.iter().filter_map(write).collect();
        let changed = self.database.transaction(&statements).await;
        changed.map_err(|error| self.database.told(&error))
    }

    /// What is old and belongs to no run. Where there is a run it goes with that.
    async fn forget_orphans(&self, old: Timestamp) -> Result<u64, StoreError> {
        let without_run = |table: &str| {
            format!("NOT EXISTS (SELECT 1 FROM ELASTICJOB_RUN r WHERE r.run_id = {table}.run_id)")
        };
        let table = "JOB_STATUS_TRACE_LOG";
        let condition = format!(
            "run_id IS NOT NULL AND creation_time < {} AND {}",
            self.dialect().moment("?"),
            without_run(table)
        );
        let micros = old.as_microsecond().max(1_000_000);
        let mut forgotten = self.forget_rows(table, &condition, micros).await?;
        let of_output = format!("at_ms < ? AND {}", without_run("ELASTICJOB_OUTPUT"));
        // A cut has no time of its own: it is old when nothing is left that it was cut from.
        let of_cuts = format!(
            "{} AND NOT EXISTS (SELECT 1 FROM ELASTICJOB_OUTPUT o WHERE o.attempt_id = ELASTICJOB_OUTPUT_CUT.attempt_id)",
            without_run("ELASTICJOB_OUTPUT_CUT")
        );
        for (table, condition, before) in [
            ("ELASTICJOB_OUTPUT", of_output, Some(old.as_millisecond().into())),
            ("ELASTICJOB_OUTPUT_CUT", of_cuts, None),
        ] {
            loop {
                let sql =
                    format!("SELECT DISTINCT run_id FROM {table} WHERE {condition} LIMIT {STEP}");
                let mut select = Select::new(self.dialect(), "");
                select.with(&sql, before.clone());
                let runs = self.ask(&select, |row| row.word(0)).await?;
                if !runs.is_empty() {
                    forgotten += self.forget_output(&runs).await?;
                }
                if runs.len() < STEP {
                    break;
                }
            }
        }
        Ok(forgotten)
    }

    async fn forget_foreign(&self, old: Timestamp, older: Timestamp) -> Result<u64, StoreError> {
        let moment = self.dialect().moment("?");
        let micros = |at: Timestamp| at.as_microsecond().max(1_000_000);
        let mut forgotten = 0;
        for (success, before) in [(true, old), (false, older)] {
            let condition = format!(
                "run_id IS NULL AND {} AND start_time < {moment}",
                self.dialect().is_success(success)
            );
            forgotten += self.forget_rows("JOB_EXECUTION_LOG", &condition, micros(before)).await?;
        }
        let condition = format!("run_id IS NULL AND creation_time < {moment}");
        Ok(forgotten + self.forget_rows("JOB_STATUS_TRACE_LOG", &condition, micros(old)).await?)
    }

    async fn forget_rows(
        &self,
        table: &str,
        condition: &str,
        before: i64,
    ) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let mut delete = Select::new(self.dialect(), format!("DELETE FROM {table}"));
            // Once more around it, as MySQL does not let one delete from what one reads.
            let chosen = format!(
                "id IN (SELECT id FROM (SELECT id FROM {table} WHERE {condition} LIMIT {STEP}) chosen)"
            );
            delete.filter(&chosen, [before.into()]);
            let rows = self.database.execute(&delete).await;
            let rows = rows.map_err(|error| self.database.told(&error))?;
            forgotten += rows;
            if rows < STEP as u64 {
                return Ok(forgotten);
            }
        }
    }
}
