//! Attempts that nobody will tell the end of.
//!
//! An instance that dies takes the ends of its attempts along. Whoever notices tells of it. If nobody did, because all died together, then the attempt is over once its shard has
//! begun again, for a shard runs once at a time: in the same run, which is seen when that is told, or in a later one, which is looked for now and then. It is `lost` then. Its real
//! end, should it come late after all, still counts.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store,
    ask::bound,
    error::StoreError,
    rows::{Rows, group},
    select::Select,
    write::Write,
};

/// How many attempts one transaction marks.
const STEP: usize = 200;
/// How old an attempt is before it is looked at: ends are told a moment later than they come, and clocks differ.
const GRACE: SignedDuration = SignedDuration::from_secs(15);
/// What is said of it.
const CAUSE: &str = "its instance was gone before it ended";

/// Attempts of this shard in this run are lost, up to this token.
#[derive(Debug, Serialize)]
pub(super) struct LostRow {
    run_id: String,
    sharding_item: i64,
    /// The first that is not.
    token: i64,
    failure_cause: &'static str,
    failure_group: String,
}

impl LostRow {
    fn new(run_id: String, sharding_item: i64, token: i64) -> Self {
        Self { run_id, sharding_item, token, failure_cause: CAUSE, failure_group: group(CAUSE) }
    }

    /// What these rows tell of.
    pub(super) fn told_by(rows: &Rows) -> impl Iterator<Item = Self> {
        rows.lost.iter().map(|((run, item), token)| Self::new(run.clone(), (*item).into(), *token))
    }
}

impl Store {
    /// Marks attempts that have no end and whose shard has begun again in a later run; says how many. Runs that had nothing else open are over then.
    ///
    /// A recorder with a database does this about every half minute.
    pub async fn mark_lost(&self, now: Timestamp) -> Result<u64, StoreError> {
        let before = now.saturating_sub(GRACE).unwrap_or(Timestamp::MIN).as_millisecond();
        let mut marked = 0;
        loop {
            let mut select = Select::new(
                self.dialect(),
                "SELECT a.run_id, a.sharding_item, a.token \
                 FROM ELASTICJOB_RUN r JOIN JOB_EXECUTION_LOG a ON a.run_id = r.run_id",
            );
            select.filter("r.state = 'running' AND r.started_ms < ?", [before.into()]);
            select.filter("a.outcome IS NULL AND a.started_ms < ?", [before.into()]);
            // By `start_time` it is found quickly, by `started_ms` exactly.
            select.filter(
                "EXISTS (SELECT 1 FROM JOB_EXECUTION_LOG n WHERE n.job_name = a.job_name \
                 AND n.start_time >= a.start_time AND n.started_ms > a.started_ms \
                 AND n.sharding_item = a.sharding_item AND n.run_id <> a.run_id)",
                [],
            );
            select.with(" LIMIT ?", [bound(STEP)]);
            let lost = self
                .ask(&select, |row| {
                    Ok(LostRow::new(row.word(0)?, row.number(1)?, row.number(2)?.saturating_add(1)))
                })
                .await?;
            let found = lost.len();
            marked += self.mark(lost).await?;
            if found < STEP {
                return Ok(marked);
            }
        }
    }

    async fn mark(&self, lost: Vec<LostRow>) -> Result<u64, StoreError> {
        // As everybody else locks them.
        let mut runs: Vec<String> = lost.iter().map(|row| row.run_id.clone()).collect();
        runs.sort();
        runs.dedup();
        let dialect = self.dialect();
        let write = |name: &str| Write::new(dialect, name, runs.iter()).ok().flatten();
        let mark = Write::new(dialect, "lose attempts", lost.into_iter()).ok().flatten();
        let after = Write::after(dialect, "settle runs as found");
        let (Some(touch), Some(mark)) = (write("touch runs"), mark) else { return Ok(0) };
        let writes: Vec<Write> =
            [Some(touch), Some(mark), write("settle runs"), after].into_iter().flatten().collect();
        let changed = self.database.transaction(&writes).await;
        let changed = changed.map_err(|error| self.database.told(&error))?;
        Ok(changed.get(1).copied().unwrap_or_default())
    }
}
