//! Status traces of instances, written by this library or by Java ElasticJob.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    Store,
    error::StoreError,
    page::{Cursor, Page, Span},
    query::millis,
    result_row::ResultRow,
    statement::Statement,
};

/// Selects traces. Fields that are not set select all.
#[derive(Debug, Clone, Default)]
pub struct TraceFilter {
    pub job: Option<String>,
    /// `TASK_RUNNING` and so on.
    pub state: Option<String>,
    /// The component that wrote the trace: `LITE_EXECUTOR` and so on.
    pub source: Option<String>,
    /// `READY`, `FAILOVER` and so on.
    pub execution_type: Option<String>,
    /// By creation time.
    pub span: Span,
    /// Only rows after this position.
    pub after: Option<Cursor>,
    /// Maximum number of rows; 50 by default.
    pub limit: Option<usize>,
}

/// An instance's part of a run changed its state: a row of `JOB_STATUS_TRACE_LOG`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trace {
    pub id: String,
    pub job_name: String,
    /// Null if Java ElasticJob wrote it.
    pub run_id: Option<String>,
    /// Java ElasticJob leaves it empty.
    pub original_task_id: String,
    /// Java ElasticJob's id for the instance's part of the run.
    pub task_id: String,
    /// Address of the server.
    pub slave_id: String,
    /// `READY`.
    pub execution_type: String,
    /// `[0, 1, 2]`.
    pub sharding_items: String,
    /// `TASK_RUNNING` and so on.
    pub state: String,
    pub message: String,
    pub creation_time: Option<Timestamp>,
}

impl Store {
    /// Traces, newest first.
    pub async fn traces(&self, filter: &TraceFilter) -> Result<Page<Trace>, StoreError> {
        let mut statement = self.select_traces();
        self.filter_traces(&mut statement, filter);
        let page = (filter.after.as_ref(), filter.limit);
        let rows = self.newest(statement, "creation_time", page, |row| {
            let trace = trace(row)?;
            Ok((row.int_or_zero(10)?, trace.id.clone(), trace))
        });
        rows.await
    }

    /// The traces of a run, in the order of the states.
    pub(super) async fn traces_of(&self, run: &str) -> Result<Vec<Trace>, StoreError> {
        let mut statement = self.select_traces();
        statement.filter("run_id = ?", [run.into()]);
        let mut traces = self.query(&statement, trace).await?;
        traces.sort_by_key(|trace| (trace.creation_time, rank(&trace.state)));
        Ok(traces)
    }

    /// Adds the filter's conditions, without its position.
    pub(super) fn filter_traces(&self, statement: &mut Statement, filter: &TraceFilter) {
        statement.filter("creation_time IS NOT NULL", []);
        statement.filter_job(filter.job.as_deref());
        statement.filter_if("state = ?", filter.state.as_deref().map(Into::into));
        statement.filter_if("source = ?", filter.source.as_deref().map(Into::into));
        let kind = filter.execution_type.as_deref().map(Into::into);
        statement.filter_if("execution_type = ?", kind);
        filter.span.filter_timestamps(
            statement,
            "creation_time",
            &self.dialect().to_timestamp("?"),
        );
    }

    fn select_traces(&self) -> Statement {
        let created = self.dialect().micros("creation_time");
        Statement::new(
            self.dialect(),
            format!(
                "SELECT id, job_name, run_id, original_task_id, task_id, slave_id, execution_type, sharding_item, state, \
                 message, {created} FROM JOB_STATUS_TRACE_LOG"
            ),
        )
    }
}

fn trace(row: &dyn ResultRow) -> Result<Trace, sqlx::Error> {
    Ok(Trace {
        id: row.text_or_empty(0)?,
        job_name: row.text_or_empty(1)?,
        run_id: row.text(2)?,
        original_task_id: row.text_or_empty(3)?,
        task_id: row.text_or_empty(4)?,
        slave_id: row.text_or_empty(5)?,
        execution_type: row.text_or_empty(6)?,
        sharding_items: row.text_or_empty(7)?,
        state: row.text_or_empty(8)?,
        message: row.text_or_empty(9)?,
        creation_time: millis(row.int(10)?.map(|micros| micros.div_euclid(1000))),
    })
}

/// Orders traces with the same time.
fn rank(state: &str) -> u8 {
    match state {
        "TASK_STAGING" => 0,
        "TASK_RUNNING" => 1,
        _ => 2,
    }
}
