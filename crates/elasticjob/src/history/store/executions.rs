//! Executions: attempts of shards, whoever wrote them.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{
    Store,
    ask::millis,
    columns::Columns,
    error::StoreError,
    page::{Cursor, Page, Span},
    rows::named,
    select::Select,
};

/// Which executions. What is not said does not matter.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Of this job.
    pub job: Option<String>,
    /// On this server.
    pub ip: Option<String>,
    /// That succeeded, or did not.
    pub success: Option<bool>,
    /// That began then.
    pub span: Span,
    /// After this place.
    pub after: Option<Cursor>,
    /// At most so many; 50 if it is not said.
    pub limit: Option<usize>,
}

/// An attempt of a shard: a row of `JOB_EXECUTION_LOG`. What may be missing is missing where the ancestor wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Execution {
    /// The attempt's id.
    pub id: String,
    /// The job.
    pub job_name: String,
    /// The run.
    pub run_id: Option<String>,
    /// The shards of the run on this instance.
    pub task_id: String,
    /// The machine's name.
    pub hostname: String,
    /// The machine's address.
    pub ip: String,
    /// Which shard.
    pub sharding_item: i64,
    /// `NORMAL_TRIGGER`, `MISFIRE`, `FAILOVER`, `RETRY`, `CATCH_UP`.
    pub execution_source: String,
    /// Whether it did what it had to do.
    pub success: bool,
    /// `done`, `failed`, `timed_out`, `cancelled`, `fenced`, `lost`; nothing while it runs.
    pub outcome: Option<String>,
    /// Why it did not.
    pub failure_cause: Option<String>,
    /// When it began.
    pub start_time: Option<Timestamp>,
    /// When it ended.
    pub complete_time: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// How late it began.
    pub lateness_ms: Option<i64>,
    /// The how-manieth attempt.
    pub attempt: Option<i64>,
    /// `due`, `misfire`, `failover`, `retry`, `catch_up`.
    pub reason: Option<String>,
    /// The fencing token. It is text in JSON: many a reader's numbers are not exact that far up.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub token: Option<i64>,
    /// The instance.
    pub instance: Option<String>,
    /// The trace it is part of.
    pub trace_id: Option<String>,
}

#[expect(clippy::ref_option, reason = "serde gives a field as it is")]
fn as_text<S: Serializer>(number: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| number.to_string()).serialize(serializer)
}

impl Store {
    /// Executions of shards, newest first, whoever wrote them.
    pub async fn executions(
        &self,
        filter: &ExecutionFilter,
    ) -> Result<Page<Execution>, StoreError> {
        let mut select = self.executions_where("start_time IS NOT NULL");
        self.of_executions(&mut select, filter);
        let part = (filter.after.as_ref(), filter.limit);
        let rows = self.newest(select, "start_time", part, |row| {
            let execution = execution(row)?;
            Ok((row.number(STARTED)?, execution.id.clone(), execution))
        });
        rows.await
    }

    /// Which executions, wherever in the list.
    pub(super) fn of_executions(&self, select: &mut Select, filter: &ExecutionFilter) {
        let job = filter.job.as_deref().map(|job| named(job, 100).as_str().into());
        select.filter_if("job_name = ?", job);
        select.filter_if("ip = ?", filter.ip.as_deref().map(Into::into));
        if let Some(success) = filter.success {
            select.filter(self.dialect().is_success(success), []);
        }
        filter.span.of_moments(select, "start_time", &self.dialect().moment("?"));
    }

    pub(super) fn executions_where(&self, condition: &str) -> Select {
        let (started, ended) =
            (self.dialect().micros("start_time"), self.dialect().micros("complete_time"));
        let mut select = Select::new(
            self.dialect(),
            format!(
                "SELECT id, job_name, run_id, task_id, hostname, ip, sharding_item, execution_source, is_success, outcome, \
                 failure_cause, {started}, {ended}, started_ms, ended_ms, duration_ms, lateness_ms, attempt, reason, token, \
                 instance, trace_id FROM JOB_EXECUTION_LOG"
            ),
        );
        select.filter(condition, []);
        select
    }
}

/// Where `start_time` is in a row of executions.
pub(super) const STARTED: usize = 11;

pub(super) fn execution(row: &dyn Columns) -> Result<Execution, sqlx::Error> {
    let micros =
        |index: usize| Ok::<_, sqlx::Error>(row.int(index)?.map(|micros| micros.div_euclid(1000)));
    // Ours are exact; the ancestor's columns may have whole seconds only.
    let started = row.int(13)?.or(micros(STARTED)?);
    let ended = row.int(14)?.or(micros(12)?);
    let took = started.zip(ended).map(|(started, ended)| ended - started);
    Ok(Execution {
        id: row.word(0)?,
        job_name: row.word(1)?,
        run_id: row.text(2)?,
        task_id: row.word(3)?,
        hostname: row.word(4)?,
        ip: row.word(5)?,
        sharding_item: row.number(6)?,
        execution_source: row.word(7)?,
        success: row.number(8)? != 0,
        outcome: row.text(9)?,
        failure_cause: row.text(10)?,
        start_time: millis(started),
        complete_time: millis(ended),
        duration_ms: row.int(15)?.or(took),
        lateness_ms: row.int(16)?,
        attempt: row.int(17)?,
        reason: row.text(18)?,
        token: row.int(19)?,
        instance: row.text(20)?,
        trace_id: row.text(21)?,
    })
}
