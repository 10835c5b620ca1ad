//! Executions: attempts of shards, written by this library or by Java ElasticJob.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{
    super::stored_reason::read_reason,
    Store,
    attempt_state::AttemptState,
    error::StoreError,
    page::{Cursor, Page, Span},
    query::millis,
    result_row::ResultRow,
    statement::Statement,
};
use crate::job::{Outcome, RunReason};

/// Selects executions. Fields that are not set select all.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    pub job: Option<String>,
    /// Server address.
    pub ip: Option<String>,
    pub success: Option<bool>,
    /// By start time.
    pub span: Span,
    /// Only rows after this position.
    pub after: Option<Cursor>,
    /// Maximum number of rows; 50 by default.
    pub limit: Option<usize>,
}

/// An attempt of a shard: a row of `JOB_EXECUTION_LOG`. Optional fields may be null if Java ElasticJob wrote the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Execution {
    /// Id of the attempt.
    pub id: String,
    pub job_name: String,
    pub run_id: Option<String>,
    /// Java ElasticJob's id for the instance's part of the run.
    pub task_id: String,
    pub hostname: String,
    pub ip: String,
    pub sharding_item: i64,
    /// `NORMAL_TRIGGER`, `MISFIRE`, `FAILOVER`, `RETRY`, `CATCH_UP`.
    pub execution_source: String,
    pub success: bool,
    /// Derived from the other columns where Java ElasticJob wrote the row: it records only success and time.
    pub state: AttemptState,
    /// Null while it runs, if Java ElasticJob wrote the row, and if a newer version wrote a word that this one does not know.
    pub outcome: Option<Outcome>,
    pub failure_cause: Option<String>,
    pub start_time: Option<Timestamp>,
    pub complete_time: Option<Timestamp>,
    pub duration_ms: Option<i64>,
    /// Start delay.
    pub lateness_ms: Option<i64>,
    /// Attempt number within the run.
    pub attempt: Option<i64>,
    pub reason: Option<RunReason>,
    /// The fencing token. A string in JSON, because it may exceed the range in which many clients' numbers are exact.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub token: Option<i64>,
    pub instance: Option<String>,
    pub trace_id: Option<String>,
}

#[expect(clippy::ref_option, reason = "serde gives a field as it is")]
fn as_text<S: Serializer>(number: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| number.to_string()).serialize(serializer)
}

impl Store {
    /// Executions, newest first.
    pub async fn executions(
        &self,
        filter: &ExecutionFilter,
    ) -> Result<Page<Execution>, StoreError> {
        let mut statement = self.select_executions("start_time IS NOT NULL");
        self.filter_executions(&mut statement, filter);
        let page = (filter.after.as_ref(), filter.limit);
        let rows = self.newest(statement, "start_time", page, |row| {
            let execution = execution(row)?;
            Ok((row.int_or_zero(STARTED)?, execution.id.clone(), execution))
        });
        rows.await
    }

    /// Adds the filter's conditions, without its position.
    pub(super) fn filter_executions(&self, statement: &mut Statement, filter: &ExecutionFilter) {
        statement.filter_job(filter.job.as_deref());
        statement.filter_if("ip = ?", filter.ip.as_deref().map(Into::into));
        if let Some(success) = filter.success {
            statement.filter(self.dialect().success_condition(success), []);
        }
        filter.span.filter_timestamps(statement, "start_time", &self.dialect().to_timestamp("?"));
    }

    pub(super) fn select_executions(&self, condition: &str) -> Statement {
        let (started, ended) =
            (self.dialect().micros("start_time"), self.dialect().micros("complete_time"));
        let mut statement = Statement::new(
            self.dialect(),
            format!(
                "SELECT id, job_name, run_id, task_id, hostname, ip, sharding_item, execution_source, is_success, outcome, \
                 failure_cause, {started}, {ended}, started_ms, ended_ms, duration_ms, lateness_ms, attempt, reason, token, \
                 instance, trace_id, source FROM JOB_EXECUTION_LOG"
            ),
        );
        statement.filter(condition, []);
        statement
    }
}

/// Index of `start_time` in a row of executions.
pub(super) const STARTED: usize = 11;

pub(super) fn execution(row: &dyn ResultRow) -> Result<Execution, sqlx::Error> {
    let micros =
        |index: usize| Ok::<_, sqlx::Error>(row.int(index)?.map(|micros| micros.div_euclid(1000)));
    // The milliseconds columns are exact; Java ElasticJob's columns may have whole seconds only.
    let started = row.int(13)?.or(micros(STARTED)?);
    let ended = row.int(14)?.or(micros(12)?);
    let took = started.zip(ended).map(|(started, ended)| ended - started);
    let outcome = row.text(9)?.and_then(|name| Outcome::from_name(&name));
    let (success, reason) = (row.int_or_zero(8)? != 0, row.text(18)?);
    let failure_cause = row.text(10)?;
    let has_ended = ended.is_some() || failure_cause.is_some();
    let is_triggered = row.text(22)?.as_deref() == Some("trigger");
    Ok(Execution {
        id: row.text_or_empty(0)?,
        job_name: row.text_or_empty(1)?,
        run_id: row.text(2)?,
        task_id: row.text_or_empty(3)?,
        hostname: row.text_or_empty(4)?,
        ip: row.text_or_empty(5)?,
        sharding_item: row.int_or_zero(6)?,
        execution_source: row.text_or_empty(7)?,
        success,
        state: AttemptState::derive(outcome, success, has_ended),
        outcome,
        failure_cause,
        start_time: millis(started),
        complete_time: millis(ended),
        duration_ms: row.int(15)?.or(took),
        lateness_ms: row.int(16)?,
        attempt: row.int(17)?,
        reason: reason.and_then(|reason| read_reason(&reason, is_triggered)),
        token: row.int(19)?,
        instance: row.text(20)?,
        trace_id: row.text(21)?,
    })
}
