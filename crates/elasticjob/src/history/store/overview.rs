//! Overviews: the last runs of many jobs, the shards of many runs, and totals.

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    Store,
    error::StoreError,
    executions::{Execution, ExecutionFilter, execution},
    page::Span,
    query::bound,
    rows::truncate_distinct,
    runs::{RUN_COLUMNS, Run, RunState, own_run, state_condition},
    statement::Statement,
    traces::TraceFilter,
};
use crate::{
    history::MissedReason,
    runtime::{Clock, SystemClock},
};

/// Number of rows that are searched for names.
const SEARCHED_ROWS: usize = 10_000;
/// Maximum number of names returned.
const MAX_NAMES: usize = 100;

/// Totals of a span of time, without what Java ElasticJob wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Totals {
    /// Runs that started.
    pub runs: i64,
    /// Runs that succeeded, with every shard that they should have.
    pub done: i64,
    /// Runs that lack shards that they should have.
    pub incomplete: i64,
    pub failed: i64,
    pub running: i64,
    /// Runs whose start delay exceeded the limit.
    pub late: i64,
    /// Fires that will not run.
    pub missed: i64,
    /// Fires that got no run of their own, because the run of a later fire answers them.
    pub coalesced: i64,
}

/// Kinds of names that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    ExecutedJob,
    /// Addresses of servers with executions.
    Ip,
    /// Jobs with traces.
    TracedJob,
}

impl Store {
    /// A run without its attempts; `None` if there is no run with this id, or Java ElasticJob wrote it.
    pub async fn brief(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let mut statement = self.select_runs();
        statement.filter("run_id = ?", [truncate_distinct(id, 150).as_str().into()]);
        Ok(self.query(&statement, own_run).await?.pop())
    }

    /// The last runs of each of these jobs, newest first.
    pub async fn last_runs(&self, jobs: &[&str], count: usize) -> Result<Vec<Run>, StoreError> {
        // One index lookup for each job, however many runs it has. SQLite allows at most 500 terms in a compound SELECT.
        let mut runs = Vec::new();
        for chunk in jobs.chunks(400) {
            let mut statement = Statement::new(self.dialect(), "");
            for (index, job) in chunk.iter().enumerate() {
                if index > 0 {
                    statement.push(" UNION ALL ");
                }
                let part = format!(
                    "SELECT * FROM (SELECT {RUN_COLUMNS} FROM ELASTICJOB_RUN WHERE job_name = ? \
                     ORDER BY started_ms DESC, run_id DESC LIMIT ?) AS r{index}"
                );
                statement.with(&part, [truncate_distinct(job, 100).as_str().into(), bound(count)]);
            }
            runs.extend(self.query(&statement, own_run).await?);
        }
        runs.sort_by(|one, other| {
            other.started_at.cmp(&one.started_at).then_with(|| other.run_id.cmp(&one.run_id))
        });
        Ok(runs)
    }

    /// Every attempt of these runs, ordered by shard, then by attempt.
    pub async fn attempts(&self, runs: &[Run]) -> Result<Vec<Execution>, StoreError> {
        let mut attempts = Vec::new();
        // A row that Java ElasticJob wrote for one shard stands for a run.
        for (is_foreign, column) in [(false, "run_id"), (true, "id")] {
            let ids = runs.iter().filter(|run| run.source.is_none() == is_foreign);
            let ids: Vec<_> = ids.map(|run| run.run_id.as_str().into()).collect();
            if ids.is_empty() {
                continue;
            }
            let known = if is_foreign { "run_id IS NULL" } else { "run_id IS NOT NULL" };
            let mut statement = self.select_executions(known);
            statement.filter_in(column, ids);
            statement.push(" ORDER BY sharding_item, token, attempt");
            attempts.extend(self.query(&statement, execution).await?);
        }
        Ok(attempts)
    }

    /// Totals of a span; a run is late if it started more than `late` after it was due.
    pub async fn tally(&self, span: Span, late: SignedDuration) -> Result<Totals, StoreError> {
        let late = i64::try_from(late.as_millis()).unwrap_or(i64::MAX);
        let mut statement = Statement::new(self.dialect(), "SELECT COUNT(*)");
        let now = SystemClock.now();
        for state in [RunState::Done, RunState::Failed, RunState::Running, RunState::Incomplete] {
            let condition = state_condition(state, now);
            statement.push(&format!(", COUNT(CASE WHEN {condition} THEN 1 END)"));
        }
        statement.with(", COUNT(CASE WHEN lateness_ms > ? THEN 1 END)", [late.into()]);
        statement.push(" FROM ELASTICJOB_RUN");
        span.filter_millis(&mut statement, "started_ms");
        let counts = self.query(&statement, |row| {
            Ok([
                row.int_or_zero(0)?,
                row.int_or_zero(1)?,
                row.int_or_zero(2)?,
                row.int_or_zero(3)?,
                row.int_or_zero(4)?,
                row.int_or_zero(5)?,
            ])
        });
        let [runs, done, failed, running, incomplete, late] =
            counts.await?.pop().unwrap_or_default();
        let mut statement =
            Statement::new(self.dialect(), "SELECT why, fires FROM ELASTICJOB_MISSED");
        span.filter_millis(&mut statement, "noticed_ms");
        let read = self.query(&statement, |row| Ok((row.text_or_empty(0)?, row.int_or_zero(1)?)));
        let (mut missed, mut coalesced) = (0_i64, 0_i64);
        for (why, fires) in read.await? {
            let sum =
                if why == MissedReason::Coalesced.as_str() { &mut coalesced } else { &mut missed };
            *sum = sum.saturating_add(fires);
        }
        Ok(Totals { runs, done, incomplete, failed, running, late, missed, coalesced })
    }

    async fn count(&self, statement: &Statement) -> Result<i64, StoreError> {
        Ok(self.query(statement, |row| row.int_or_zero(0)).await?.pop().unwrap_or_default())
    }

    /// Number of executions that match the filter.
    pub async fn execution_count(&self, filter: &ExecutionFilter) -> Result<i64, StoreError> {
        let mut statement =
            Statement::new(self.dialect(), "SELECT COUNT(*) FROM JOB_EXECUTION_LOG");
        statement.filter("start_time IS NOT NULL", []);
        self.filter_executions(&mut statement, filter);
        self.count(&statement).await
    }

    /// Number of traces that match the filter.
    pub async fn trace_count(&self, filter: &TraceFilter) -> Result<i64, StoreError> {
        let mut statement =
            Statement::new(self.dialect(), "SELECT COUNT(*) FROM JOB_STATUS_TRACE_LOG");
        self.filter_traces(&mut statement, filter);
        self.count(&statement).await
    }

    /// Names with this prefix among the 10,000 rows that were written last, for completion of user input.
    pub async fn names(&self, named: NameKind, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (column, table, time) = match named {
            NameKind::ExecutedJob => ("job_name", "JOB_EXECUTION_LOG", "start_time"),
            NameKind::Ip => ("ip", "JOB_EXECUTION_LOG", "start_time"),
            NameKind::TracedJob => ("job_name", "JOB_STATUS_TRACE_LOG", "creation_time"),
        };
        // Selects rows first and then their names, because a search for a rare name would read the whole table.
        let searched = format!(
            "SELECT DISTINCT name FROM (SELECT {column} AS name FROM {table} \
             WHERE {time} IS NOT NULL ORDER BY {time} DESC LIMIT ?) AS searched"
        );
        let escaped = prefix.replace('!', "!!").replace('%', "!%").replace('_', "!_");
        let pattern = format!("{escaped}%");
        let mut statement = Statement::new(self.dialect(), "");
        statement.with(&searched, [bound(SEARCHED_ROWS)]);
        statement.filter("name LIKE ? ESCAPE '!'", [pattern.as_str().into()]);
        statement.with(" ORDER BY 1 LIMIT ?", [bound(MAX_NAMES)]);
        self.query(&statement, |row| row.text_or_empty(0)).await
    }
}
