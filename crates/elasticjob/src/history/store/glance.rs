//! At a glance: the last runs of many jobs, the shards of many runs, and how many there are of what.

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    Store,
    ask::bound,
    error::StoreError,
    executions::{Execution, ExecutionFilter, execution},
    page::Span,
    rows::named,
    runs::{RUN, Run, own_run},
    select::Select,
    traces::TraceFilter,
};

/// How many rows names are looked for in.
const LOOKED_AT: usize = 10_000;
/// How many names are told.
const NAMES: usize = 100;

/// How many of what there were in a span of time. What the ancestor wrote is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tally {
    /// Runs that began.
    pub runs: i64,
    /// Those that are done.
    pub done: i64,
    /// Those that failed.
    pub failed: i64,
    /// Those that run.
    pub running: i64,
    /// Those that began later than they were due by more than what was said.
    pub late: i64,
    /// Fires that did not run.
    pub missed: i64,
}

/// What names can be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Jobs that were executed.
    ExecutedJob,
    /// Addresses where something was executed.
    Ip,
    /// Jobs that have traces.
    TracedJob,
}

impl Store {
    /// A run without its attempts; nothing if there is none of this id, or the ancestor wrote it.
    pub async fn brief(&self, id: &str) -> Result<Option<Run>, StoreError> {
        let mut select = Select::new(self.dialect(), format!("SELECT {RUN} FROM ELASTICJOB_RUN"));
        select.filter("run_id = ?", [named(id, 150).as_str().into()]);
        Ok(self.ask(&select, own_run).await?.pop())
    }

    /// The last runs of each of these jobs, newest first, in one question.
    pub async fn last_runs(&self, jobs: &[&str], count: usize) -> Result<Vec<Run>, StoreError> {
        // One step into the index for each job, however many runs it has. SQLite joins at most 500 such steps.
        let mut runs = Vec::new();
        for some in jobs.chunks(400) {
            let mut select = Select::new(self.dialect(), "");
            for (index, job) in some.iter().enumerate() {
                if index > 0 {
                    select.push(" UNION ALL ");
                }
                let part = format!(
                    "SELECT * FROM (SELECT {RUN} FROM ELASTICJOB_RUN WHERE job_name = ? \
                     ORDER BY started_ms DESC, run_id DESC LIMIT ?) AS r{index}"
                );
                select.with(&part, [named(job, 100).as_str().into(), bound(count)]);
            }
            runs.extend(self.ask(&select, own_run).await?);
        }
        runs.sort_by(|one, other| {
            other.started_at.cmp(&one.started_at).then_with(|| other.run_id.cmp(&one.run_id))
        });
        Ok(runs)
    }

    /// Every attempt of these runs, in the order of the shards and then of the attempts.
    pub async fn attempts(&self, runs: &[Run]) -> Result<Vec<Execution>, StoreError> {
        let mut attempts = Vec::new();
        // What the ancestor wrote of one shard stands for a run.
        for (is_foreign, column) in [(false, "run_id"), (true, "id")] {
            let ids = runs.iter().filter(|run| run.source.is_none() == is_foreign);
            let ids: Vec<_> = ids.map(|run| run.run_id.as_str().into()).collect();
            if ids.is_empty() {
                continue;
            }
            let known = if is_foreign { "run_id IS NULL" } else { "run_id IS NOT NULL" };
            let mut select = self.executions_where(known);
            select.filter_in(column, ids);
            select.push(" ORDER BY sharding_item, token, attempt");
            attempts.extend(self.ask(&select, execution).await?);
        }
        Ok(attempts)
    }

    /// How many of what there were; late is what began later than this after it was due.
    pub async fn tally(&self, span: Span, late: SignedDuration) -> Result<Tally, StoreError> {
        let late = i64::try_from(late.as_millis()).unwrap_or(i64::MAX);
        let mut select = Select::new(self.dialect(), "SELECT COUNT(*)");
        for state in ["done", "failed", "running"] {
            select.push(&format!(", COUNT(CASE WHEN state = '{state}' THEN 1 END)"));
        }
        select.with(", COUNT(CASE WHEN lateness_ms > ? THEN 1 END)", [late.into()]);
        select.push(" FROM ELASTICJOB_RUN");
        span.of_millis(&mut select, "started_ms");
        let counts = self.ask(&select, |row| {
            Ok([row.number(0)?, row.number(1)?, row.number(2)?, row.number(3)?, row.number(4)?])
        });
        let [runs, done, failed, running, late] = counts.await?.pop().unwrap_or_default();
        let mut select = Select::new(self.dialect(), "SELECT fires FROM ELASTICJOB_MISSED");
        span.of_millis(&mut select, "noticed_ms");
        let missed = self.ask(&select, |row| row.number(0)).await?;
        let missed = missed.into_iter().fold(0, i64::saturating_add);
        Ok(Tally { runs, done, failed, running, late, missed })
    }

    /// How many executions there are of this kind, whoever wrote them.
    pub async fn execution_count(&self, filter: &ExecutionFilter) -> Result<i64, StoreError> {
        let mut select = Select::new(self.dialect(), "SELECT COUNT(*) FROM JOB_EXECUTION_LOG");
        select.filter("start_time IS NOT NULL", []);
        self.of_executions(&mut select, filter);
        Ok(self.ask(&select, |row| row.number(0)).await?.pop().unwrap_or_default())
    }

    /// How many traces there are of this kind, whoever wrote them.
    pub async fn trace_count(&self, filter: &TraceFilter) -> Result<i64, StoreError> {
        let mut select = Select::new(self.dialect(), "SELECT COUNT(*) FROM JOB_STATUS_TRACE_LOG");
        self.of_traces(&mut select, filter);
        Ok(self.ask(&select, |row| row.number(0)).await?.pop().unwrap_or_default())
    }

    /// Names that begin so, among the 10,000 rows that were written last; for somebody who types one.
    pub async fn names(&self, named: Named, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (column, table, time) = match named {
            Named::ExecutedJob => ("job_name", "JOB_EXECUTION_LOG", "start_time"),
            Named::Ip => ("ip", "JOB_EXECUTION_LOG", "start_time"),
            Named::TracedJob => ("job_name", "JOB_STATUS_TRACE_LOG", "creation_time"),
        };
        // The rows first and then their names: a name that is rare would be looked for in all there are.
        let looked = format!(
            "SELECT DISTINCT name FROM (SELECT {column} AS name FROM {table} \
             WHERE {time} IS NOT NULL ORDER BY {time} DESC LIMIT ?) AS looked"
        );
        let escaped = prefix.replace('!', "!!").replace('%', "!%").replace('_', "!_");
        let pattern = format!("{escaped}%");
        let mut select = Select::new(self.dialect(), "");
        select.with(&looked, [bound(LOOKED_AT)]);
        select.filter("name LIKE ? ESCAPE '!'", [pattern.as_str().into()]);
        select.with(" ORDER BY 1 LIMIT ?", [bound(NAMES)]);
        self.ask(&select, |row| row.word(0)).await
    }
}
