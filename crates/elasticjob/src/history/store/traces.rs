//! Traces: what instances said of their part in a run, whoever wrote it.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Store,
    ask::millis,
    columns::Columns,
    error::StoreError,
    page::{Cursor, Page, Span},
    rows::named,
    select::Select,
};

/// Which traces. What is not said does not matter.
#[derive(Debug, Clone, Default)]
pub struct TraceFilter {
    /// Of this job.
    pub job: Option<String>,
    /// `TASK_RUNNING` and so on.
    pub state: Option<String>,
    /// That were told by this: `LITE_EXECUTOR` and so on.
    pub source: Option<String>,
    /// `READY`, `FAILOVER` and so on.
    pub execution_type: Option<String>,
    /// Of then.
    pub span: Span,
    /// After this place.
    pub after: Option<Cursor>,
    /// At most so many; 50 if it is not said.
    pub limit: Option<usize>,
}

/// An instance's part of a run changed its state: a row of `JOB_STATUS_TRACE_LOG`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trace {
    /// The row's id.
    pub id: String,
    /// The job.
    pub job_name: String,
    /// The run; nothing where the ancestor wrote.
    pub run_id: Option<String>,
    /// The ancestor leaves it empty.
    pub original_task_id: String,
    /// The shards of the run on this instance.
    pub task_id: String,
    /// The machine's address.
    pub slave_id: String,
    /// `READY`.
    pub execution_type: String,
    /// `[0, 1, 2]`.
    pub sharding_items: String,
    /// `TASK_RUNNING` and so on.
    pub state: String,
    /// What is said with it.
    pub message: String,
    /// When.
    pub creation_time: Option<Timestamp>,
}

impl Store {
    /// Traces, newest first, whoever wrote them.
    pub async fn traces(&self, filter: &TraceFilter) -> Result<Page<Trace>, StoreError> {
        let mut select = self.traces_where();
        self.of_traces(&mut select, filter);
        let part = (filter.after.as_ref(), filter.limit);
        let rows = self.newest(select, "creation_time", part, |row| {
            let trace = trace(row)?;
            Ok((row.number(10)?, trace.id.clone(), trace))
        });
        rows.await
    }

    /// Those of a run, in the order they were said.
    pub(super) async fn traces_of(&self, run: &str) -> Result<Vec<Trace>, StoreError> {
        let mut select = self.traces_where();
        select.filter("run_id = ?", [run.into()]);
        let mut traces = self.ask(&select, trace).await?;
        traces.sort_by_key(|trace| (trace.creation_time, rank(&trace.state)));
        Ok(traces)
    }

    /// Which traces, wherever in the list.
    pub(super) fn of_traces(&self, select: &mut Select, filter: &TraceFilter) {
        select.filter("creation_time IS NOT NULL", []);
        let job = filter.job.as_deref().map(|job| named(job, 100).as_str().into());
        select.filter_if("job_name = ?", job);
        select.filter_if("state = ?", filter.state.as_deref().map(Into::into));
        select.filter_if("source = ?", filter.source.as_deref().map(Into::into));
        let kind = filter.execution_type.as_deref().map(Into::into);
        select.filter_if("execution_type = ?", kind);
        filter.span.of_moments(select, "creation_time", &self.dialect().moment("?"));
    }

    fn traces_where(&self) -> Select {
        let created = self.dialect().micros("creation_time");
        Select::new(
            self.dialect(),
            format!(
                "SELECT id, job_name, run_id, original_task_id, task_id, slave_id, execution_type, sharding_item, state, \
                 message, {created} FROM JOB_STATUS_TRACE_LOG"
            ),
        )
    }
}

fn trace(row: &dyn Columns) -> Result<Trace, sqlx::Error> {
    Ok(Trace {
        id: row.word(0)?,
        job_name: row.word(1)?,
        run_id: row.text(2)?,
        original_task_id: row.word(3)?,
        task_id: row.word(4)?,
        slave_id: row.word(5)?,
        execution_type: row.word(6)?,
        sharding_items: row.word(7)?,
        state: row.word(8)?,
        message: row.word(9)?,
        creation_time: millis(row.int(10)?.map(|micros| micros.div_euclid(1000))),
    })
}

/// Which of two traces of one moment came first.
fn rank(state: &str) -> u8 {
    match state {
        "TASK_STAGING" => 0,
        "TASK_RUNNING" => 1,
        _ => 2,
    }
}
