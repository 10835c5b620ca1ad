//! Figures: how often, how long, how late, and what goes wrong most.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    Store,
    ask::{bound, millis},
    error::StoreError,
    page::Span,
    rows::{group, named},
    select::Select,
};

/// How many failures of the ancestor's are looked at for groups.
const FOREIGN: usize = 10_000;

/// A job in figures, over a span of time. Runs that the ancestor wrote are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobFigures {
    /// The job.
    pub job_name: String,
    /// How many runs began.
    pub runs: i64,
    /// How many of them are done.
    pub done: i64,
    /// How many failed.
    pub failed: i64,
    /// How many were told to end.
    pub cancelled: i64,
    /// How many run.
    pub running: i64,
    /// How long runs took, if any came to an end.
    pub duration_ms: Option<Percentiles>,
    /// How late runs began, if any was due.
    pub lateness_ms: Option<Percentiles>,
    /// When the last run began, in this span or before.
    pub last_run: Option<Timestamp>,
    /// When the last run that is done began, in this span or before.
    pub last_success: Option<Timestamp>,
}

impl JobFigures {
    /// How many of a hundred that came to an end are done, in tenths; nothing if none came to an end.
    pub fn success_permille(&self) -> Option<i64> {
        let ended = self.done + self.failed + self.cancelled;
        (ended > 0).then(|| self.done * 1000 / ended)
    }
}

/// What half, 95 and 99 of a hundred do not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Percentiles {
    /// Half.
    pub p50: i64,
    /// 95 of a hundred.
    pub p95: i64,
    /// 99 of a hundred.
    pub p99: i64,
}

/// How many runs that stand so began from this time on, for as long as a bucket is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// From when.
    pub from: Timestamp,
    /// `running`, `done`, `failed`, `cancelled`.
    pub state: String,
    /// How many.
    pub runs: i64,
    /// How long the longest of them took, if any came to an end.
    pub longest_ms: Option<i64>,
    /// How late the latest of them began, if any was due.
    pub latest_ms: Option<i64>,
}

/// Failures with similar messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailureGroup {
    /// The job.
    pub job_name: String,
    /// What the messages have in common: numbers, hexadecimal words and UUIDs are left open.
    pub message: String,
    /// How many.
    pub count: i64,
    /// The first.
    pub first: Option<Timestamp>,
    /// The last.
    pub last: Option<Timestamp>,
    /// The run of the last one; nothing where the ancestor wrote.
    pub last_run_id: Option<String>,
}

/// Fires that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissedFires {
    /// The job.
    pub job_name: String,
    /// The first of them.
    pub first: Option<Timestamp>,
    /// The last of them.
    pub last: Option<Timestamp>,
    /// How many.
    pub count: i64,
    /// `skipped` or `nobody_there`.
    pub why: String,
    /// When that was noticed.
    pub noticed_at: Option<Timestamp>,
}

impl Store {
    /// The names of the jobs that have runs.
    pub async fn jobs(&self) -> Result<Vec<String>, StoreError> {
        // From each name straight to the next, however many runs it has.
        let select = Select::new(
            self.dialect(),
            "WITH RECURSIVE known (name) AS ( \
             SELECT MIN(job_name) FROM ELASTICJOB_RUN \
             UNION ALL \
             SELECT (SELECT MIN(r.job_name) FROM ELASTICJOB_RUN r WHERE r.job_name > known.name) \
             FROM known WHERE known.name IS NOT NULL \
             ) SELECT name FROM known WHERE name IS NOT NULL",
        );
        self.ask(&select, |row| row.word(0)).await
    }

    /// Figures of these jobs, as far as they ran in this span; of every job that did if none is named.
    pub async fn figures(&self, jobs: &[&str], span: Span) -> Result<Vec<JobFigures>, StoreError> {
        let mut select = Select::new(
            self.dialect(),
            "SELECT f.*, \
             (SELECT MAX(r.started_ms) FROM ELASTICJOB_RUN r WHERE r.job_name = f.job_name), \
             (SELECT MAX(r.started_ms) FROM ELASTICJOB_RUN r WHERE r.job_name = f.job_name AND r.state = 'done') \
             FROM (SELECT job_name, COUNT(*), ",
        );
        for state in ["done", "failed", "cancelled", "running"] {
            select.push(&format!("COUNT(CASE WHEN state = '{state}' THEN 1 END), "));
        }
        let ranks = [("duration_ms", "d"), ("lateness_ms", "l")];
        let percentile = |(column, name): (&str, &str), percent: u32| {
            // The smallest value that is not exceeded by so many of a hundred.
            format!(
                "MIN(CASE WHEN {column} IS NOT NULL AND {name}_rank * 100 >= {name}_count * {percent} THEN {column} END)"
            )
        };
        let percentiles: Vec<String> = ranks
            .into_iter()
            .flat_map(|rank| [50, 95, 99].map(|percent| percentile(rank, percent)))
            .collect();
        select.push(&percentiles.join(", "));
        select.push(" FROM (SELECT job_name, state, duration_ms, lateness_ms");
        for (column, name) in ranks {
            let is_there = format!("CASE WHEN {column} IS NULL THEN 1 ELSE 0 END");
            select.push(&format!(
                ", ROW_NUMBER() OVER (PARTITION BY job_name, {is_there} ORDER BY {column}) AS {name}_rank, \
                 COUNT({column}) OVER (PARTITION BY job_name) AS {name}_count"
            ));
        }
        select.push(" FROM ELASTICJOB_RUN");
        if !jobs.is_empty() {
            let jobs = jobs.iter().map(|job| named(job, 100).as_str().into());
            select.filter_in("job_name", jobs.collect());
        }
        span.of_millis(&mut select, "started_ms");
        select.push(") ranked GROUP BY job_name) f ORDER BY 1");
        self.ask(&select, |row| {
            let percentiles = |at: usize| {
                let (p50, p95, p99) = (row.int(at)?, row.int(at + 1)?, row.int(at + 2)?);
                Ok::<_, sqlx::Error>(match (p50, p95, p99) {
                    (Some(p50), Some(p95), Some(p99)) => Some(Percentiles { p50, p95, p99 }),
                    _ => None,
                })
            };
            Ok(JobFigures {
                job_name: row.word(0)?,
                runs: row.number(1)?,
                done: row.number(2)?,
                failed: row.number(3)?,
                cancelled: row.number(4)?,
                running: row.number(5)?,
                duration_ms: percentiles(6)?,
                lateness_ms: percentiles(9)?,
                last_run: millis(row.int(12)?),
                last_success: millis(row.int(13)?),
            })
        })
        .await
    }

    /// How many runs began in each piece of a span, by how they stand: what a chart shows. Pieces without runs are left out.
    pub async fn buckets(
        &self,
        job: Option<&str>,
        span: Span,
        bucket: SignedDuration,
    ) -> Result<Vec<Bucket>, StoreError> {
        let length = i64::try_from(bucket.as_millis()).unwrap_or(i64::MAX).max(1);
        let number = self.dialect().divided("started_ms", &length.to_string());
        let mut select = Select::new(
            self.dialect(),
            format!(
                "SELECT {number}, state, COUNT(*), MAX(duration_ms), MAX(lateness_ms) FROM ELASTICJOB_RUN"
            ),
        );
        select.filter_if("job_name = ?", job.map(|job| named(job, 100).as_str().into()));
        span.of_millis(&mut select, "started_ms");
        select.push(" GROUP BY 1, 2 ORDER BY 1, 2");
        let buckets = self.ask(&select, |row| {
            let from = millis(Some(row.number(0)?.saturating_mul(length)));
            let (state, runs) = (row.word(1)?, row.number(2)?);
            let (longest_ms, latest_ms) = (row.int(3)?, row.int(4)?);
            Ok(from.map(|from| Bucket { from, state, runs, longest_ms, latest_ms }))
        });
        Ok(buckets.await?.into_iter().flatten().collect())
    }

    /// What goes wrong, most often first.
    pub async fn failures(
        &self,
        job: Option<&str>,
        span: Span,
        limit: usize,
    ) -> Result<Vec<FailureGroup>, StoreError> {
        let mut select = Select::new(
            self.dialect(),
            "SELECT job_name, failure_group, COUNT(*), MIN(started_ms), MAX(started_ms) FROM JOB_EXECUTION_LOG",
        );
        select.filter("failure_group IS NOT NULL", []);
        select.filter_if("job_name = ?", job.map(|job| named(job, 100).as_str().into()));
        span.of_millis(&mut select, "started_ms");
        select.with(" GROUP BY job_name, failure_group ORDER BY 3 DESC LIMIT ?", [bound(limit)]);
        let own = self.ask(&select, |row| {
            let key = (row.word(0)?, row.word(1)?);
            Ok((key, (row.number(2)?, row.number(3)?, row.number(4)?)))
        });
        let own = own.await?;
        let mut groups: BTreeMap<(String, String), (i64, i64, i64)> = own.into_iter().collect();
        for (key, at) in self.foreign_failures(job, span).await? {
            let known = groups.entry(key).or_insert((0, at, at));
            *known = (known.0 + 1, known.1.min(at), known.2.max(at));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (count, _, last))| std::cmp::Reverse((*count, *last)));
        groups.truncate(limit);
        let mut told = Vec::new();
        for ((job_name, message), (count, first, last)) in groups {
            let mut select = Select::new(self.dialect(), "SELECT run_id FROM JOB_EXECUTION_LOG");
            let key = [message.as_str().into(), job_name.as_str().into(), last.into()];
            select.filter("failure_group = ? AND job_name = ? AND started_ms = ?", key);
            select.push(" LIMIT 1");
            let last_run_id = self.ask(&select, |row| row.text(0)).await?.pop().flatten();
            let (first, last) = (millis(Some(first)), millis(Some(last)));
            told.push(FailureGroup { job_name, message, count, first, last, last_run_id });
        }
        Ok(told)
    }

    /// Failures that the ancestor wrote: job, group, and when.
    async fn foreign_failures(
        &self,
        job: Option<&str>,
        span: Span,
    ) -> Result<Vec<((String, String), i64)>, StoreError> {
        let started = self.dialect().micros("start_time");
        let mut select = Select::new(
            self.dialect(),
            format!(
                "SELECT job_name, SUBSTR(failure_cause, 1, 400), {started} FROM JOB_EXECUTION_LOG"
            ),
        );
        select
            .filter("run_id IS NULL AND failure_cause IS NOT NULL AND start_time IS NOT NULL", []);
        select.filter_if("job_name = ?", job.map(Into::into));
        span.of_moments(&mut select, "start_time", &self.dialect().moment("?"));
        select.with(" ORDER BY start_time DESC LIMIT ?", [bound(FOREIGN)]);
        self.ask(&select, |row| {
            Ok(((row.word(0)?, group(&row.word(1)?)), row.number(2)?.div_euclid(1000)))
        })
        .await
    }

    /// Fires that did not run, the last noticed first.
    pub async fn missed(
        &self,
        job: Option<&str>,
        span: Span,
        limit: usize,
    ) -> Result<Vec<MissedFires>, StoreError> {
        let mut select = Select::new(
            self.dialect(),
            "SELECT job_name, first_ms, last_ms, fires, why, noticed_ms FROM ELASTICJOB_MISSED",
        );
        select.filter_if("job_name = ?", job.map(|job| named(job, 100).as_str().into()));
        span.of_millis(&mut select, "noticed_ms");
        select.with(" ORDER BY noticed_ms DESC, id DESC LIMIT ?", [bound(limit)]);
        self.ask(&select, |row| {
            Ok(MissedFires {
                job_name: row.word(0)?,
                first: millis(row.int(1)?),
                last: millis(row.int(2)?),
                count: row.number(3)?,
                why: row.word(4)?,
                noticed_at: millis(row.int(5)?),
            })
        })
        .await
    }
}
