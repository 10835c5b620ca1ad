//! Queries for runs.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store,
    attempt_state::AttemptState,
    error::StoreError,
    executions::{Execution, STARTED, execution},
    page::{Cursor, Page, Span},
    query::{bound, millis, page_size},
    result_row::ResultRow,
    rows::truncate_distinct,
    statement::Statement,
    traces::Trace,
};
use crate::{
    job::Outcome,
    runtime::{Clock, SystemClock},
};

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// A shard is running, or the last one ended so recently that a shard that did not run yet may still start.
    Running,
    /// Every shard of the run succeeded. Of runs that an older version recorded, it is not known how many shards they should have: every shard that
    /// ran succeeded.
    Done,
    /// Every shard that ran succeeded, but not every shard ran that should have.
    Incomplete,
    /// A shard's last attempt failed, timed out, was fenced, or was lost with its instance.
    Failed,
    /// A shard was cancelled, and none failed.
    Cancelled,
}

impl RunState {
    /// `running`, `done`, `incomplete`, `failed` or `cancelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl FromStr for RunState {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Running, Self::Done, Self::Incomplete, Self::Failed, Self::Cancelled];
        all.into_iter().find(|state| state.as_str() == text).ok_or_else(|| StoreError::Url {
            problem: format!("{text:?} is not a state of a run"),
            hint: "running, done, incomplete, failed or cancelled".to_owned(),
        })
    }
}

/// Selects runs. Fields that are not set select all.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub job: Option<String>,
    pub state: Option<RunState>,
    /// Runs of which this instance ran a shard.
    pub instance: Option<String>,
    /// `schedule` or `trigger`.
    pub source: Option<String>,
    /// By start time.
    pub span: Span,
    /// Only rows after this position.
    pub after: Option<Cursor>,
    /// Maximum number of rows; 50 by default.
    pub limit: Option<usize>,
}

/// A run. Java ElasticJob has no runs: each execution of a shard that it wrote is listed as a run of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Run {
    /// Id of the run; of the execution if Java ElasticJob wrote it.
    pub run_id: String,
    pub job_name: String,
    pub state: RunState,
    /// `schedule` or `trigger`; null if Java ElasticJob wrote it.
    pub source: Option<String>,
    pub triggered_by: Option<String>,
    /// When it was due, or its logical time.
    pub due_at: Option<Timestamp>,
    /// When its first shard started.
    pub started_at: Option<Timestamp>,
    /// When its last shard ended.
    pub ended_at: Option<Timestamp>,
    /// From the first start to the last end.
    pub duration_ms: Option<i64>,
    /// Start delay: from the due time to the first start.
    pub lateness_ms: Option<i64>,
    /// Number of shards of the job; null if Java ElasticJob wrote it.
    pub sharding_total_count: Option<i64>,
    /// Number of shards that the run should have: selected and enabled when it was due, without those of Java ElasticJob; null if not known.
    pub expected_shards: Option<i64>,
    /// Number of shards that Java ElasticJob owned, so that nothing is known of them; null if not known.
    pub untracked_shards: Option<i64>,
    /// Number of shards that ran.
    pub shards: i64,
    /// Number of shards that succeeded.
    pub done: i64,
    /// Number of shards that failed.
    pub failed: i64,
    /// Number of attempts of all shards.
    pub attempts: i64,
    /// Beginning of the failure message.
    pub failure: Option<String>,
    pub trace_id: Option<String>,
}

/// A run with its attempts and traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunDetails {
    #[serde(flatten)]
    pub run: Run,
    /// Every attempt of every shard, ordered by shard, then by attempt.
    pub executions: Vec<Execution>,
    /// Status traces of the instances, in their order.
    pub traces: Vec<Trace>,
}

pub(super) const RUN_COLUMNS: &str = "run_id, job_name, state, source, triggered_by, due_ms, started_ms, ended_ms, duration_ms, lateness_ms, \
     total, shards, done, failed, attempts, failure, trace_id, expected, untracked";

/// How long after the end of the last shard another one may still start: a fire waits half a minute for an assignment.
const START_GRACE: SignedDuration = SignedDuration::from_mins(1);

/// The condition of a stored state. What is stored as done is only done if every expected shard ran; until [`START_GRACE`] has passed, it may become
/// so. Here the stored words are given their meaning, so that rows of older and newer programs are read alike.
pub(super) fn state_condition(state: RunState, now: Timestamp) -> String {
    let settled = now.saturating_sub(START_GRACE).unwrap_or(Timestamp::MIN).as_millisecond();
    let lacks_shards = "state = 'done' AND shards < expected";
    match state {
        RunState::Running => {
            format!("(state = 'running' OR ({lacks_shards} AND ended_ms > {settled}))")
        }
        RunState::Done => {
            "(state = 'done' AND (expected IS NULL OR shards >= expected))".to_owned()
        }
        RunState::Incomplete => format!("({lacks_shards} AND ended_ms <= {settled})"),
        RunState::Failed | RunState::Cancelled => format!("state = '{}'", state.as_str()),
    }
}

impl Store {
    /// Runs, newest first.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Page<Run>, StoreError> {
        let limit = page_size(filter.limit);
        let mut rows = self.own_runs(filter, limit + 1).await?;
        // Java ElasticJob's rows have neither source nor instance.
        if filter.source.is_none() && filter.instance.is_none() {
            rows.extend(self.foreign_runs(filter, limit + 1).await?);
            // The sort is stable, and rows of each kind are ordered already.
            rows.sort_by_key(|(cursor, _)| (std::cmp::Reverse(cursor.micros), cursor.is_foreign));
        }
        Ok(Page::of(rows, limit))
    }

    pub(super) fn select_runs(&self) -> Statement {
        Statement::new(self.dialect(), format!("SELECT {RUN_COLUMNS} FROM ELASTICJOB_RUN"))
    }

    async fn own_runs(
        &self,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<(Cursor, Run)>, StoreError> {
        let mut statement = self.select_runs();
        statement.filter_job(filter.job.as_deref());
        match filter.state {
            None => {}
            // Runs that may still become complete are left out: a search for them would read every run that succeeded.
            Some(RunState::Running) => drop(statement.filter("state = 'running'", [])),
            Some(state) => drop(statement.filter(&state_condition(state, SystemClock.now()), [])),
        }
        statement.filter_if("source = ?", filter.source.as_deref().map(Into::into));
        if let Some(instance) = &filter.instance {
            let part = "run_id IN (SELECT run_id FROM JOB_EXECUTION_LOG WHERE instance = ?)";
            statement.filter(part, [truncate_distinct(instance, 100).as_str().into()]);
        }
        filter.span.filter_millis(&mut statement, "started_ms");
        if let Some(after) = &filter.after {
            let millis = after.micros / 1000;
            if after.is_foreign {
                // Own runs with the same time came before.
                statement.filter("started_ms * 1000 < ?", [after.micros.into()]);
                statement.filter("started_ms <= ?", [millis.into()]);
            } else {
                after.filter(&mut statement, ("started_ms", "run_id"), "?", millis);
            }
        }
        statement.with(" ORDER BY started_ms DESC, run_id DESC LIMIT ?", [bound(limit)]);
        self.query(&statement, |row| {
            let run = own_run(row)?;
            let micros = row.int_or_zero(6)? * 1000;
            Ok((Cursor { micros, is_foreign: false, id: run.run_id.clone() }, run))
        })
        .await
    }

    async fn foreign_runs(
        &self,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<(Cursor, Run)>, StoreError> {
        let mut statement = self.select_executions("run_id IS NULL");
        statement.filter_if("job_name = ?", filter.job.as_deref().map(Into::into));
        let timestamp = self.dialect().to_timestamp("?");
        match filter.state {
            None => {}
            Some(RunState::Done) => {
                statement.filter(self.dialect().success_condition(true), []);
            }
            Some(RunState::Failed) => {
                statement.filter(self.dialect().success_condition(false), []);
                statement.filter("(failure_cause IS NOT NULL OR complete_time IS NOT NULL)", []);
            }
            Some(RunState::Running) => {
                statement.filter(self.dialect().success_condition(false), []);
                statement.filter("failure_cause IS NULL AND complete_time IS NULL", []);
            }
            // Java ElasticJob has no such states.
            Some(RunState::Cancelled | RunState::Incomplete) => return Ok(Vec::new()),
        }
        statement.filter("start_time IS NOT NULL", []);
        filter.span.filter_timestamps(&mut statement, "start_time", &timestamp);
        match &filter.after {
            Some(after) if after.is_foreign => {
                after.filter(&mut statement, ("start_time", "id"), &timestamp, after.micros);
            }
            // Own runs with the same time come first.
            Some(after) => {
                statement.filter(&format!("start_time <= {timestamp}"), [after.micros.into()]);
            }
            None => {}
        }
        statement.with(" ORDER BY start_time DESC, id DESC LIMIT ?", [bound(limit)]);
        self.query(&statement, |row| {
            let micros = row.int_or_zero(STARTED)?;
            let execution = execution(row)?;
            let cursor = Cursor { micros, is_foreign: true, id: execution.id.clone() };
            Ok((cursor, foreign_run(execution)))
        })
        .await
    }

    /// A run with its attempts; `None` if there is no run with this id.
    pub async fn run(&self, id: &str) -> Result<Option<RunDetails>, StoreError> {
        let id = truncate_distinct(id, 150);
        let mut statement = self.select_runs();
        statement.filter("run_id = ?", [id.as_str().into()]);
        if let Some(run) = self.query(&statement, own_run).await?.pop() {
            let mut statement = self.select_executions("run_id IS NOT NULL");
            statement.filter("run_id = ?", [id.as_str().into()]);
            statement.push(" ORDER BY sharding_item, token, attempt");
            let executions = self.query(&statement, execution).await?;
            let traces = self.traces_of(&id).await?;
            return Ok(Some(RunDetails { run, executions, traces }));
        }
        let mut statement = self.select_executions("run_id IS NULL");
        statement.filter("id = ?", [id.as_str().into()]);
        let found = self.query(&statement, execution).await?.pop();
        Ok(found.map(|execution| RunDetails {
            run: foreign_run(execution.clone()),
            executions: vec![execution],
            traces: Vec::new(),
        }))
    }
}

/// Whether a shard that did not run yet may still start.
fn is_recent(ended_at: Option<Timestamp>) -> bool {
    ended_at.is_some_and(|ended_at| SystemClock.now().duration_since(ended_at) < START_GRACE)
}

pub(super) fn own_run(row: &dyn ResultRow) -> Result<Run, sqlx::Error> {
    let (shards, expected_shards) = (row.int_or_zero(11)?, row.int(17)?);
    let ended_at = millis(row.int(7)?);
    let stored = row.text_or_empty(2)?.parse().unwrap_or(RunState::Running);
    let lacks_shards = expected_shards.is_some_and(|expected| shards < expected);
    Ok(Run {
        run_id: row.text_or_empty(0)?,
        job_name: row.text_or_empty(1)?,
        state: match stored {
            RunState::Done if lacks_shards && is_recent(ended_at) => RunState::Running,
            RunState::Done if lacks_shards => RunState::Incomplete,
            stored => stored,
        },
        source: row.text(3)?,
        triggered_by: row.text(4)?,
        due_at: millis(row.int(5)?),
        started_at: millis(row.int(6)?),
        ended_at,
        duration_ms: row.int(8)?,
        lateness_ms: row.int(9)?,
        sharding_total_count: row.int(10)?,
        expected_shards,
        untracked_shards: row.int(18)?,
        shards,
        done: row.int_or_zero(12)?,
        failed: row.int_or_zero(13)?,
        attempts: row.int_or_zero(14)?,
        failure: row.text(15)?,
        trace_id: row.text(16)?,
    })
}

/// An execution that Java ElasticJob wrote, as a run of its own.
fn foreign_run(execution: Execution) -> Run {
    let state = match execution.state {
        AttemptState::Running => RunState::Running,
        AttemptState::Ended(Outcome::Succeeded) => RunState::Done,
        AttemptState::Ended(Outcome::Cancelled) => RunState::Cancelled,
        AttemptState::Ended(_) => RunState::Failed,
    };
    Run {
        run_id: execution.id,
        job_name: execution.job_name,
        state,
        source: None,
        triggered_by: None,
        due_at: None,
        started_at: execution.start_time,
        ended_at: execution.complete_time,
        duration_ms: execution.duration_ms,
        lateness_ms: None,
        sharding_total_count: None,
        expected_shards: None,
        untracked_shards: None,
        shards: 1,
        done: i64::from(state == RunState::Done),
        failed: i64::from(state == RunState::Failed),
        attempts: 1,
        failure: execution.failure_cause,
        trace_id: None,
    }
}
