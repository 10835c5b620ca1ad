//! Statistics: counts, durations, start delays and failures.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store,
    error::StoreError,
    page::Span,
    query::{bound, millis},
    rows::{failure_group, truncate_distinct},
    runs::{RunState, state_condition},
    statement::Statement,
};
use crate::{
    history::MissedReason,
    runtime::{Clock, SystemClock},
};

/// Maximum number of Java ElasticJob's failures that are grouped.
const MAX_FOREIGN_FAILURES: usize = 10_000;

/// Statistics of a job over a span of time, without runs that Java ElasticJob wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobFigures {
    pub job_name: String,
    /// Runs that started.
    pub runs: i64,
    /// Runs that succeeded, with every shard that they should have.
    pub done: i64,
    /// Runs that lack shards that they should have.
    pub incomplete: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub running: i64,
    /// Durations, if any run ended.
    pub duration_ms: Option<Percentiles>,
    /// Start delays, if any run was scheduled.
    pub lateness_ms: Option<Percentiles>,
    /// Start of the last run, in this span or before.
    pub last_run: Option<Timestamp>,
    /// Start of the last successful run, in this span or before.
    pub last_success: Option<Timestamp>,
}

impl JobFigures {
    /// Success rate of ended runs in tenths of a percent; `None` if no run ended.
    pub fn success_permille(&self) -> Option<i64> {
        let ended = self.done + self.incomplete + self.failed + self.cancelled;
        (ended > 0).then(|| self.done * 1000 / ended)
    }
}

/// Percentiles: the value that 50, 95 and 99 percent do not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Percentiles {
    pub p50: i64,
    pub p95: i64,
    pub p99: i64,
}

/// Number of runs with one state that started within one interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// Start of the interval.
    pub from: Timestamp,
    /// `running`, `done`, `incomplete`, `failed`, `cancelled`.
    pub state: String,
    pub runs: i64,
    /// Longest duration, if any run ended.
    pub longest_ms: Option<i64>,
    /// Longest start delay, if any run was scheduled.
    pub latest_ms: Option<i64>,
}

/// Failures with similar messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailureGroup {
    pub job_name: String,
    /// The common message, with placeholders for numbers, hexadecimal words and UUIDs.
    pub message: String,
    pub count: i64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// Run of the last failure; null if Java ElasticJob wrote it.
    pub last_run_id: Option<String>,
}

/// Missed fires of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissedFires {
    pub job_name: String,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub count: i64,
    /// `skipped`, `nobody_there`, `unreadable`, `not_started`, or `coalesced`: answered by the run of a later fire, and so not missed.
    pub reason: String,
    pub noticed_at: Option<Timestamp>,
}

impl MissedFires {
    /// Whether the run of a later fire answers these fires, so that they are not missed.
    pub fn is_coalesced(&self) -> bool {
        self.reason == MissedReason::Coalesced.as_str()
    }

    /// [`reason`](Self::reason) in words for people.
    pub fn reason_text(&self) -> &str {
        match self.reason.as_str() {
            "nobody_there" => "no instance was running",
            "skipped" => "the previous run was still running",
            "coalesced" => "answered by the run of a later fire",
            "unreadable" => "the ledger page of a shard could not be read",
            "not_started" => "shards could not be claimed in time",
            other => other,
        }
    }
}

impl Store {
    /// The names of all jobs with runs.
    pub async fn jobs(&self) -> Result<Vec<String>, StoreError> {
        // A loose index scan: jumps from each name to the next, however many runs a job has.
        let statement = Statement::new(
            self.dialect(),
            "WITH RECURSIVE known (name) AS ( \
             SELECT MIN(job_name) FROM ELASTICJOB_RUN \
             UNION ALL \
             SELECT (SELECT MIN(r.job_name) FROM ELASTICJOB_RUN r WHERE r.job_name > known.name) \
             FROM known WHERE known.name IS NOT NULL \
             ) SELECT name FROM known WHERE name IS NOT NULL",
        );
        self.query(&statement, |row| row.text_or_empty(0)).await
    }

    /// Statistics of these jobs over a span; of all jobs that ran if none is named.
    pub async fn figures(&self, jobs: &[&str], span: Span) -> Result<Vec<JobFigures>, StoreError> {
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT f.*, \
             (SELECT MAX(r.started_ms) FROM ELASTICJOB_RUN r WHERE r.job_name = f.job_name), \
             (SELECT MAX(r.started_ms) FROM ELASTICJOB_RUN r WHERE r.job_name = f.job_name AND r.state = 'done' \
             AND (r.expected IS NULL OR r.shards >= r.expected)) \
             FROM (SELECT job_name, COUNT(*), ",
        );
        let now = SystemClock.now();
        for state in [
            RunState::Done,
            RunState::Failed,
            RunState::Cancelled,
            RunState::Running,
            RunState::Incomplete,
        ] {
            let condition = state_condition(state, now);
            statement.push(&format!("COUNT(CASE WHEN {condition} THEN 1 END), "));
        }
        let ranks = [("duration_ms", "d"), ("lateness_ms", "l")];
        let percentile = |(column, name): (&str, &str), percent: u32| {
            // The smallest value that this percentage of the values does not exceed.
            format!(
                "MIN(CASE WHEN {column} IS NOT NULL AND {name}_rank * 100 >= {name}_count * {percent} THEN {column} END)"
            )
        };
        let percentiles: Vec<String> = ranks
            .into_iter()
            .flat_map(|rank| [50, 95, 99].map(|percent| percentile(rank, percent)))
            .collect();
        statement.push(&percentiles.join(", "));
        statement.push(
            " FROM (SELECT job_name, state, shards, expected, ended_ms, duration_ms, lateness_ms",
        );
        for (column, name) in ranks {
            let is_null = format!("CASE WHEN {column} IS NULL THEN 1 ELSE 0 END");
            statement.push(&format!(
                ", ROW_NUMBER() OVER (PARTITION BY job_name, {is_null} ORDER BY {column}) AS {name}_rank, \
                 COUNT({column}) OVER (PARTITION BY job_name) AS {name}_count"
            ));
        }
        statement.push(" FROM ELASTICJOB_RUN");
        if !jobs.is_empty() {
            let jobs = jobs.iter().map(|job| truncate_distinct(job, 100).as_str().into());
            statement.filter_in("job_name", jobs.collect());
        }
        span.filter_millis(&mut statement, "started_ms");
        statement.push(") ranked GROUP BY job_name) f ORDER BY 1");
        self.query(&statement, |row| {
            let percentiles = |at: usize| {
                let (p50, p95, p99) = (row.int(at)?, row.int(at + 1)?, row.int(at + 2)?);
                Ok::<_, sqlx::Error>(match (p50, p95, p99) {
                    (Some(p50), Some(p95), Some(p99)) => Some(Percentiles { p50, p95, p99 }),
                    _ => None,
                })
            };
            Ok(JobFigures {
                job_name: row.text_or_empty(0)?,
                runs: row.int_or_zero(1)?,
                done: row.int_or_zero(2)?,
                failed: row.int_or_zero(3)?,
                cancelled: row.int_or_zero(4)?,
                running: row.int_or_zero(5)?,
                incomplete: row.int_or_zero(6)?,
                duration_ms: percentiles(7)?,
                lateness_ms: percentiles(10)?,
                last_run: millis(row.int(13)?),
                last_success: millis(row.int(14)?),
            })
        })
        .await
    }

    /// Number of runs per interval and state, for charts. Intervals without runs are left out.
    pub async fn buckets(
        &self,
        job: Option<&str>,
        span: Span,
        bucket: SignedDuration,
    ) -> Result<Vec<Bucket>, StoreError> {
        let length = i64::try_from(bucket.as_millis()).unwrap_or(i64::MAX).max(1);
        let number = self.dialect().integer_division("started_ms", &length.to_string());
        let now = SystemClock.now();
        let [running, incomplete] =
            [RunState::Running, RunState::Incomplete].map(|state| state_condition(state, now));
        let state = format!(
            "CASE WHEN {running} THEN 'running' WHEN {incomplete} THEN 'incomplete' ELSE state END"
        );
        let mut statement = Statement::new(
            self.dialect(),
            format!(
                "SELECT {number}, {state}, COUNT(*), MAX(duration_ms), MAX(lateness_ms) FROM ELASTICJOB_RUN"
            ),
        );
        statement.filter_job(job);
        span.filter_millis(&mut statement, "started_ms");
        statement.push(" GROUP BY 1, 2 ORDER BY 1, 2");
        let buckets = self.query(&statement, |row| {
            let from = millis(Some(row.int_or_zero(0)?.saturating_mul(length)));
            let (state, runs) = (row.text_or_empty(1)?, row.int_or_zero(2)?);
            let (longest_ms, latest_ms) = (row.int(3)?, row.int(4)?);
            Ok(from.map(|from| Bucket { from, state, runs, longest_ms, latest_ms }))
        });
        Ok(buckets.await?.into_iter().flatten().collect())
    }

    /// Failures grouped by message, the most frequent first.
    pub async fn failures(
        &self,
        job: Option<&str>,
        span: Span,
        limit: usize,
    ) -> Result<Vec<FailureGroup>, StoreError> {
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT job_name, failure_group, COUNT(*), MIN(started_ms), MAX(started_ms) FROM JOB_EXECUTION_LOG",
        );
        statement.filter("failure_group IS NOT NULL", []);
        statement.filter_job(job);
        span.filter_millis(&mut statement, "started_ms");
        statement.with(" GROUP BY job_name, failure_group ORDER BY 3 DESC LIMIT ?", [bound(limit)]);
        let rows = self.query(&statement, |row| {
            let key = (row.text_or_empty(0)?, row.text_or_empty(1)?);
            Ok((key, (row.int_or_zero(2)?, row.int_or_zero(3)?, row.int_or_zero(4)?)))
        });
        let rows = rows.await?;
        let mut groups: BTreeMap<(String, String), (i64, i64, i64)> = rows.into_iter().collect();
        for (key, at) in self.foreign_failures(job, span).await? {
            let known = groups.entry(key).or_insert((0, at, at));
            *known = (known.0 + 1, known.1.min(at), known.2.max(at));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (count, _, last))| std::cmp::Reverse((*count, *last)));
        groups.truncate(limit);
        let mut failures = Vec::new();
        for ((job_name, message), (count, first, last)) in groups {
            let mut statement =
                Statement::new(self.dialect(), "SELECT run_id FROM JOB_EXECUTION_LOG");
            let key = [message.as_str().into(), job_name.as_str().into(), last.into()];
            statement.filter("failure_group = ? AND job_name = ? AND started_ms = ?", key);
            statement.push(" LIMIT 1");
            let last_run_id = self.query(&statement, |row| row.text(0)).await?.pop().flatten();
            let (first, last) = (millis(Some(first)), millis(Some(last)));
            failures.push(FailureGroup { job_name, message, count, first, last, last_run_id });
        }
        Ok(failures)
    }

    /// Failures that Java ElasticJob wrote: job, group and time.
    async fn foreign_failures(
        &self,
        job: Option<&str>,
        span: Span,
    ) -> Result<Vec<((String, String), i64)>, StoreError> {
        let started = self.dialect().micros("start_time");
        let mut statement = Statement::new(
            self.dialect(),
            format!(
                "SELECT job_name, SUBSTR(failure_cause, 1, 400), {started} FROM JOB_EXECUTION_LOG"
            ),
        );
        statement
            .filter("run_id IS NULL AND failure_cause IS NOT NULL AND start_time IS NOT NULL", []);
        statement.filter_if("job_name = ?", job.map(Into::into));
        span.filter_timestamps(&mut statement, "start_time", &self.dialect().to_timestamp("?"));
        statement.with(" ORDER BY start_time DESC LIMIT ?", [bound(MAX_FOREIGN_FAILURES)]);
        self.query(&statement, |row| {
            Ok((
                (row.text_or_empty(0)?, failure_group(&row.text_or_empty(1)?)),
                row.int_or_zero(2)?.div_euclid(1000),
            ))
        })
        .await
    }

    /// Missed fires, the last noticed first.
    pub async fn missed(
        &self,
        job: Option<&str>,
        span: Span,
        limit: usize,
    ) -> Result<Vec<MissedFires>, StoreError> {
        let mut statement = Statement::new(
            self.dialect(),
            "SELECT job_name, first_ms, last_ms, fires, why, noticed_ms FROM ELASTICJOB_MISSED",
        );
        statement.filter_job(job);
        span.filter_millis(&mut statement, "noticed_ms");
        statement.with(" ORDER BY noticed_ms DESC, id DESC LIMIT ?", [bound(limit)]);
        self.query(&statement, |row| {
            Ok(MissedFires {
                job_name: row.text_or_empty(0)?,
                first: millis(row.int(1)?),
                last: millis(row.int(2)?),
                count: row.int_or_zero(3)?,
                reason: row.text_or_empty(4)?,
                noticed_at: millis(row.int(5)?),
            })
        })
        .await
    }
}
