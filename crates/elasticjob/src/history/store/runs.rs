//! Runs: one by its name, many by what they are.

use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Store,
    ask::{bound, millis, page_size},
    columns::Columns,
    error::StoreError,
    executions::{Execution, STARTED, execution},
    page::{Cursor, Page, Span},
    rows::named,
    select::Select,
    traces::Trace,
};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
// A shard's newest run has states, too, in the same description.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = HistoryRunState))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// A shard of it runs.
    Running,
    /// Every shard that ran is done.
    Done,
    /// A shard's last attempt failed, took too long, lost its lease, or was lost with its instance.
    Failed,
    /// A shard was told to end, and none failed.
    Cancelled,
}

impl RunState {
    /// `running`, `done`, `failed` or `cancelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl FromStr for RunState {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let all = [Self::Running, Self::Done, Self::Failed, Self::Cancelled];
        all.into_iter().find(|state| state.as_str() == text).ok_or_else(|| StoreError::Url {
            problem: format!("{text:?} is no state of a run"),
            hint: "running, done, failed or cancelled".to_owned(),
        })
    }
}

/// Which runs. What is not said does not matter.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this job.
    pub job: Option<String>,
    /// That stand so.
    pub state: Option<RunState>,
    /// That this instance had a part in.
    pub instance: Option<String>,
    /// `schedule` or `trigger`.
    pub source: Option<String>,
    /// That began then.
    pub span: Span,
    /// After this place.
    pub after: Option<Cursor>,
    /// At most so many; 50 if it is not said.
    pub limit: Option<usize>,
}

/// One fire as the cluster executed it. Where the ancestor wrote, each execution of a shard stands for itself: it has no runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Run {
    /// Its id; that of the row where the ancestor wrote.
    pub run_id: String,
    /// The job.
    pub job_name: String,
    /// How it stands.
    pub state: RunState,
    /// `schedule` or `trigger`; nothing where the ancestor wrote.
    pub source: Option<String>,
    /// Who triggered it.
    pub triggered_by: Option<String>,
    /// When it was due, or the time it worked for.
    pub due_at: Option<Timestamp>,
    /// When the first of its shards began.
    pub started_at: Option<Timestamp>,
    /// When the last of its shards ended.
    pub ended_at: Option<Timestamp>,
    /// From the first beginning to the last end.
    pub duration_ms: Option<i64>,
    /// From when it was due to the first beginning.
    pub lateness_ms: Option<i64>,
    /// How many shards the job had; nothing where the ancestor wrote.
    pub sharding_total_count: Option<i64>,
    /// How many of them ran.
    pub shards: i64,
    /// How many of these are done.
    pub done: i64,
    /// How many of these failed.
    pub failed: i64,
    /// How many attempts there were.
    pub attempts: i64,
    /// What went wrong, the beginning of it.
    pub failure: Option<String>,
    /// The trace it is part of.
    pub trace_id: Option<String>,
}

/// A run with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunDetails {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Every attempt of every shard, in the order of the shards and then of the attempts.
    pub executions: Vec<Execution>,
    /// What the instances said of their part in it, in that order.
    pub traces: Vec<Trace>,
}

pub(super) const RUN: &str = "run_id, job_name, state, source, triggered_by, due_ms, started_ms, ended_ms, duration_ms, lateness_ms, \
     total, shards, done, failed, attempts, failure, trace_id";

impl Store {
    /// Runs, newest first.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Page<Run>, StoreError> {
        let limit = page_size(filter.limit);
        let mut rows = self.own_runs(filter, limit + 1).await?;
        // Nobody can tell these two of what the ancestor wrote.
        if filter.source.is_none() && filter.instance.is_none() {
            rows.extend(self.foreign_runs(filter, limit + 1).await?);
            // Stable: rows of one kind are in order already.
            rows.sort_by_key(|(cursor, _)| (std::cmp::Reverse(cursor.micros), cursor.is_foreign));
        }
        Ok(Page::of(rows, limit))
    }

    async fn own_runs(
        &self,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<(Cursor, Run)>, StoreError> {
        let mut select = Select::new(self.dialect(), format!("SELECT {RUN} FROM ELASTICJOB_RUN"));
        select.filter_if(
            "job_name = ?",
            filter.job.as_deref().map(|job| named(job, 100).as_str().into()),
        );
        select.filter_if("state = ?", filter.state.map(|state| state.as_str().into()));
        select.filter_if("source = ?", filter.source.as_deref().map(Into::into));
        if let Some(instance) = &filter.instance {
            let part = "run_id IN (SELECT run_id FROM JOB_EXECUTION_LOG WHERE instance = ?)";
            select.filter(part, [named(instance, 100).as_str().into()]);
        }
        filter.span.of_millis(&mut select, "started_ms");
        if let Some(after) = &filter.after {
            let millis = after.micros / 1000;
            if after.is_foreign {
                // Of the same moment all of ours came before.
                select.filter("started_ms * 1000 < ?", [after.micros.into()]);
                select.filter("started_ms <= ?", [millis.into()]);
            } else {
                after.filter(&mut select, ("started_ms", "run_id"), "?", millis);
            }
        }
        select.with(" ORDER BY started_ms DESC, run_id DESC LIMIT ?", [bound(limit)]);
        self.ask(&select, |row| {
            let run = own_run(row)?;
            let micros = row.number(6)? * 1000;
            Ok((Cursor { micros, is_foreign: false, id: run.run_id.clone() }, run))
        })
        .await
    }

    async fn foreign_runs(
        &self,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<(Cursor, Run)>, StoreError> {
        let mut select = self.executions_where("run_id IS NULL");
        select.filter_if("job_name = ?", filter.job.as_deref().map(Into::into));
        let moment = self.dialect().moment("?");
        match filter.state {
            None => {}
            Some(RunState::Done) => {
                select.filter(self.dialect().is_success(true), []);
            }
            Some(RunState::Failed) => {
                select.filter(self.dialect().is_success(false), []);
                select.filter("(failure_cause IS NOT NULL OR complete_time IS NOT NULL)", []);
            }
            Some(RunState::Running) => {
                select.filter(self.dialect().is_success(false), []);
                select.filter("failure_cause IS NULL AND complete_time IS NULL", []);
            }
            // The ancestor cannot.
            Some(RunState::Cancelled) => return Ok(Vec::new()),
        }
        select.filter("start_time IS NOT NULL", []);
        filter.span.of_moments(&mut select, "start_time", &moment);
        match &filter.after {
            Some(after) if after.is_foreign => {
                after.filter(&mut select, ("start_time", "id"), &moment, after.micros);
            }
            // Of the same moment ours came first.
            Some(after) => {
                select.filter(&format!("start_time <= {moment}"), [after.micros.into()]);
            }
            None => {}
        }
        select.with(" ORDER BY start_time DESC, id DESC LIMIT ?", [bound(limit)]);
        self.ask(&select, |row| {
            let micros = row.number(STARTED)?;
            let execution = execution(row)?;
            let cursor = Cursor { micros, is_foreign: true, id: execution.id.clone() };
            Ok((cursor, foreign_run(execution)))
        })
        .await
    }

    /// A run with its attempts; nothing if there is none of this id.
    pub async fn run(&self, id: &str) -> Result<Option<RunDetails>, StoreError> {
        let id = named(id, 150);
        let mut select = Select::new(self.dialect(), format!("SELECT {RUN} FROM ELASTICJOB_RUN"));
        select.filter("run_id = ?", [id.as_str().into()]);
        if let Some(run) = self.ask(&select, own_run).await?.pop() {
            let mut select = self.executions_where("run_id IS NOT NULL");
            select.filter("run_id = ?", [id.as_str().into()]);
            select.push(" ORDER BY sharding_item, token, attempt");
            let executions = self.ask(&select, execution).await?;
            let traces = self.traces_of(&id).await?;
            return Ok(Some(RunDetails { run, executions, traces }));
        }
        let mut select = self.executions_where("run_id IS NULL");
        select.filter("id = ?", [id.as_str().into()]);
        let found = self.ask(&select, execution).await?.pop();
        Ok(found.map(|execution| RunDetails {
            run: foreign_run(execution.clone()),
            executions: vec![execution],
            traces: Vec::new(),
        }))
    }
}

pub(super) fn own_run(row: &dyn Columns) -> Result<Run, sqlx::Error> {
    Ok(Run {
        run_id: row.word(0)?,
        job_name: row.word(1)?,
        state: row.word(2)?.parse().unwrap_or(RunState::Running),
        source: row.text(3)?,
        triggered_by: row.text(4)?,
        due_at: millis(row.int(5)?),
        started_at: millis(row.int(6)?),
        ended_at: millis(row.int(7)?),
        duration_ms: row.int(8)?,
        lateness_ms: row.int(9)?,
        sharding_total_count: row.int(10)?,
        shards: row.number(11)?,
        done: row.number(12)?,
        failed: row.number(13)?,
        attempts: row.number(14)?,
        failure: row.text(15)?,
        trace_id: row.text(16)?,
    })
}

/// What the ancestor wrote of one shard stands for a run.
fn foreign_run(execution: Execution) -> Run {
    let has_ended = execution.complete_time.is_some() || execution.failure_cause.is_some();
    let state = match (execution.success, has_ended) {
        (true, _) => RunState::Done,
        (false, true) => RunState::Failed,
        (false, false) => RunState::Running,
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
        shards: 1,
        done: i64::from(state == RunState::Done),
        failed: i64::from(state == RunState::Failed),
        attempts: 1,
        failure: execution.failure_cause,
        trace_id: None,
    }
}
