//! Deletes old history in small steps.

use std::{num::NonZeroU32, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store, batch_statement::BatchStatement, error::StoreError, query::bound, statement::Statement,
};

/// Number of runs that one transaction deletes: few enough not to block others.
const STEP_ROWS: usize = 200;

/// How long history is kept.
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
    /// Runs that started longer ago are deleted.
    pub age: Duration,
    /// The same for runs that failed or never ended.
    pub failures_age: Duration,
    /// Maximum number of runs kept for each job and each final state.
    pub runs_per_job: NonZeroU32,
    /// Whether to delete rows that Java ElasticJob wrote into its two tables, too.
    pub foreign: bool,
}

impl Default for Retention {
    /// 30 days and 1,000 runs of each job, failures 90 days; rows of Java ElasticJob are kept.
    fn default() -> Self {
        Self {
            age: Duration::from_hours(30 * 24),
            failures_age: Duration::from_hours(90 * 24),
            runs_per_job: NonZeroU32::new(1000).unwrap_or(NonZeroU32::MIN),
            foreign: false,
        }
    }
}

/// Numbers of deleted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PruneSummary {
    /// Runs, each with its attempts, traces and output.
    pub runs: u64,
    /// Rows of Java ElasticJob in both of its tables.
    pub foreign: u64,
    pub missed: u64,
    /// Traces and output without a run: of fires that did not lead to a run, or recorded after their run was deleted.
    pub orphans: u64,
}

impl Store {
    /// Deletes what exceeds the retention. Every step is a short transaction; if the call is dropped halfway, the next one continues.
    pub async fn prune(
        &self,
        retention: &Retention,
        now: Timestamp,
    ) -> Result<PruneSummary, StoreError> {
        let ago = |age: Duration| {
            let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
            now.checked_sub(age).unwrap_or(Timestamp::MIN)
        };
        let (old, older) =
            (ago(retention.age), ago(retention.failures_age).min(ago(retention.age)));
        let mut pruned = PruneSummary::default();
        for (state, before) in
            [("done", old), ("cancelled", old), ("failed", older), ("running", older)]
        {
            pruned.runs += self.delete_runs_before(None, state, before.as_millisecond()).await?;
        }
        for job in self.jobs().await? {
            for state in ["done", "cancelled", "failed"] {
                if let Some(before) = self.oldest_kept(&job, state, retention.runs_per_job).await? {
                    pruned.runs += self.delete_runs_before(Some(&job), state, before).await?;
                }
            }
        }
        pruned.missed =
            self.delete_rows("ELASTICJOB_MISSED", "noticed_ms < ?", old.as_millisecond()).await?;
        pruned.orphans = self.delete_orphans(old).await?;
        if retention.foreign {
            pruned.foreign = self.delete_foreign(old, older).await?;
        }
        Ok(pruned)
    }

    /// Start of the oldest run to keep, if there are at least `runs` of them.
    async fn oldest_kept(
        &self,
        job: &str,
        state: &str,
        runs: NonZeroU32,
    ) -> Result<Option<i64>, StoreError> {
        let mut statement = Statement::new(self.dialect(), "SELECT started_ms FROM ELASTICJOB_RUN");
        statement.filter("job_name = ? AND state = ?", [job.into(), state.into()]);
        let skipped = i64::from(runs.get() - 1);
        statement.with(" ORDER BY started_ms DESC LIMIT 1 OFFSET ?", [skipped.into()]);
        Ok(self.query(&statement, |row| row.int_or_zero(0)).await?.pop())
    }

    async fn delete_runs_before(
        &self,
        job: Option<&str>,
        state: &str,
        before: i64,
    ) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut statement = Statement::new(self.dialect(), "SELECT run_id FROM ELASTICJOB_RUN");
            statement.filter_if("job_name = ?", job.map(Into::into));
            statement.filter("state = ? AND started_ms < ?", [state.into(), before.into()]);
            statement.with(" ORDER BY started_ms LIMIT ?", [bound(STEP_ROWS)]);
            let mut runs = self.query(&statement, |row| row.text_or_empty(0)).await?;
            // In the same order as all other transactions lock them.
            runs.sort();
            if !runs.is_empty() {
                deleted += self.delete_runs(&runs).await?;
            }
            if runs.len() < STEP_ROWS {
                return Ok(deleted);
            }
        }
    }

    async fn delete_runs(&self, runs: &[String]) -> Result<u64, StoreError> {
        let names =
            ["delete runs", "delete attempts", "delete traces", "delete output", "delete cuts"];
        let changed = self.write_all(&names, runs).await?;
        Ok(changed.first().copied().unwrap_or_default())
    }

    async fn delete_output(&self, runs: &[String]) -> Result<u64, StoreError> {
        Ok(self.write_all(&["delete output", "delete cuts"], runs).await?.into_iter().sum())
    }

    /// Executes these statements for these runs, in one transaction.
    async fn write_all(&self, names: &[&str], runs: &[String]) -> Result<Vec<u64>, StoreError> {
        let write =
            |name: &&str| BatchStatement::new(self.dialect(), name, runs.iter()).ok().flatten();
        let statements: Vec<BatchStatement> = names.iter().filter_map(write).collect();
        let changed = self.database.transaction(&statements).await;
        changed.map_err(|error| self.database.store_error(&error))
    }

    /// Deletes old rows without a run. Rows with a run are deleted together with it.
    async fn delete_orphans(&self, old: Timestamp) -> Result<u64, StoreError> {
        let without_run = |table: &str| {
            format!("NOT EXISTS (SELECT 1 FROM ELASTICJOB_RUN r WHERE r.run_id = {table}.run_id)")
        };
        let table = "JOB_STATUS_TRACE_LOG";
        let condition = format!(
            "run_id IS NOT NULL AND creation_time < {} AND {}",
            self.dialect().to_timestamp("?"),
            without_run(table)
        );
        let micros = old.as_microsecond().max(1_000_000);
        let mut deleted = self.delete_rows(table, &condition, micros).await?;
        let of_output = format!("at_ms < ? AND {}", without_run("ELASTICJOB_OUTPUT"));
        // A cut has no time of its own: it is deleted when the attempt has no output left.
        let of_cuts = format!(
            "{} AND NOT EXISTS (SELECT 1 FROM ELASTICJOB_OUTPUT o WHERE o.attempt_id = ELASTICJOB_OUTPUT_CUT.attempt_id)",
            without_run("ELASTICJOB_OUTPUT_CUT")
        );
        for (table, condition, before) in [
            ("ELASTICJOB_OUTPUT", of_output, Some(old.as_millisecond().into())),
            ("ELASTICJOB_OUTPUT_CUT", of_cuts, None),
        ] {
            loop {
                let sql = format!(
                    "SELECT DISTINCT run_id FROM {table} WHERE {condition} LIMIT {STEP_ROWS}"
                );
                let mut statement = Statement::new(self.dialect(), "");
                statement.with(&sql, before.clone());
                let runs = self.query(&statement, |row| row.text_or_empty(0)).await?;
                if !runs.is_empty() {
                    deleted += self.delete_output(&runs).await?;
                }
                if runs.len() < STEP_ROWS {
                    break;
                }
            }
        }
        Ok(deleted)
    }

    async fn delete_foreign(&self, old: Timestamp, older: Timestamp) -> Result<u64, StoreError> {
        let timestamp = self.dialect().to_timestamp("?");
        let micros = |at: Timestamp| at.as_microsecond().max(1_000_000);
        let mut deleted = 0;
        for (success, before) in [(true, old), (false, older)] {
            let condition = format!(
                "run_id IS NULL AND {} AND start_time < {timestamp}",
                self.dialect().success_condition(success)
            );
            deleted += self.delete_rows("JOB_EXECUTION_LOG", &condition, micros(before)).await?;
        }
        let condition = format!("run_id IS NULL AND creation_time < {timestamp}");
        Ok(deleted + self.delete_rows("JOB_STATUS_TRACE_LOG", &condition, micros(old)).await?)
    }

    async fn delete_rows(
        &self,
        table: &str,
        condition: &str,
        before: i64,
    ) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut delete = Statement::new(self.dialect(), format!("DELETE FROM {table}"));
            // The extra nesting is for MySQL, which cannot delete from a table that the same statement reads.
            let chosen = format!(
                "id IN (SELECT id FROM (SELECT id FROM {table} WHERE {condition} LIMIT {STEP_ROWS}) chosen)"
            );
            delete.filter(&chosen, [before.into()]);
            let rows = self.database.execute(&delete).await;
            let rows = rows.map_err(|error| self.database.store_error(&error))?;
            deleted += rows;
            if rows < STEP_ROWS as u64 {
                return Ok(deleted);
            }
        }
    }
}
