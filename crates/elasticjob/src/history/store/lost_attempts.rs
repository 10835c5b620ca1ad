//! Marks attempts as lost whose end will not be reported.
//!
//! An instance that dies does not report the ends of its attempts. Normally another instance notices and reports them as lost. If none did, because
//! all instances died together, an attempt is over once its shard has started again, because a shard runs once at a time. A new start in the same run
//! is noticed when it is written; for a start in a later run the store is searched from time to time. The attempt's outcome is `lost` then. If its
//! real end arrives late after all, it replaces that.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store,
    batch_statement::BatchStatement,
    error::StoreError,
    query::bound,
    rows::{Rows, failure_group},
    statement::Statement,
};

/// Number of attempts that one transaction marks.
const STEP_ATTEMPTS: usize = 200;
/// Minimum age of an attempt to be marked: ends are recorded with a delay, and clocks differ.
const GRACE: SignedDuration = SignedDuration::from_secs(15);
/// The failure cause of lost attempts.
const CAUSE: &str = "its instance was gone before it ended";

/// Attempts of this shard in this run are lost, up to this token.
#[derive(Debug, Serialize)]
pub(super) struct LostRow {
    run_id: String,
    sharding_item: i64,
    /// The first token that is not lost.
    token: i64,
    failure_cause: &'static str,
    failure_group: String,
}

impl LostRow {
    fn new(run_id: String, sharding_item: i64, token: i64) -> Self {
        Self {
            run_id,
            sharding_item,
            token,
            failure_cause: CAUSE,
            failure_group: failure_group(CAUSE),
        }
    }

    /// The lost attempts that these rows report.
    pub(super) fn from_rows(rows: &Rows) -> impl Iterator<Item = Self> {
        rows.lost.iter().map(|((run, item), token)| Self::new(run.clone(), (*item).into(), *token))
    }
}

impl Store {
    /// Marks attempts without an end whose shard has started again in a later run, and returns their number. Runs without other open attempts end.
    ///
    /// A recorder with a database does this about every half minute.
    pub async fn mark_lost(&self, now: Timestamp) -> Result<u64, StoreError> {
        let before = now.saturating_sub(GRACE).unwrap_or(Timestamp::MIN).as_millisecond();
        let mut marked = 0;
        loop {
            let mut statement = Statement::new(
                self.dialect(),
                "SELECT a.run_id, a.sharding_item, a.token \
                 FROM ELASTICJOB_RUN r JOIN JOB_EXECUTION_LOG a ON a.run_id = r.run_id",
            );
            statement.filter("r.state = 'running' AND r.started_ms < ?", [before.into()]);
            statement.filter("a.outcome IS NULL AND a.started_ms < ?", [before.into()]);
            // `start_time` uses an index, `started_ms` is exact.
            statement.filter(
                "EXISTS (SELECT 1 FROM JOB_EXECUTION_LOG n WHERE n.job_name = a.job_name \
                 AND n.start_time >= a.start_time AND n.started_ms > a.started_ms \
                 AND n.sharding_item = a.sharding_item AND n.run_id <> a.run_id)",
                [],
            );
            statement.with(" LIMIT ?", [bound(STEP_ATTEMPTS)]);
            let lost = self
                .query(&statement, |row| {
                    Ok(LostRow::new(
                        row.text_or_empty(0)?,
                        row.int_or_zero(1)?,
                        row.int_or_zero(2)?.saturating_add(1),
                    ))
                })
                .await?;
            let found = lost.len();
            marked += self.mark(lost).await?;
            if found < STEP_ATTEMPTS {
                return Ok(marked);
            }
        }
    }

    async fn mark(&self, lost: Vec<LostRow>) -> Result<u64, StoreError> {
        // In the same order as all other transactions lock them.
        let mut runs: Vec<String> = lost.iter().map(|row| row.run_id.clone()).collect();
        runs.sort();
        runs.dedup();
        let dialect = self.dialect();
        let write = |name: &str| BatchStatement::new(dialect, name, runs.iter()).ok().flatten();
        let mark =
            BatchStatement::new(dialect, "mark attempts lost", lost.into_iter()).ok().flatten();
        let after = BatchStatement::follow_up(dialect, "apply run updates");
        let (Some(touch), Some(mark)) = (write("lock existing runs"), mark) else { return Ok(0) };
        let writes: Vec<BatchStatement> =
            [Some(touch), Some(mark), write("update runs"), after].into_iter().flatten().collect();
        let changed = self.database.transaction(&writes).await;
        let changed = changed.map_err(|error| self.database.store_error(&error))?;
        Ok(changed.get(1).copied().unwrap_or_default())
    }
}
