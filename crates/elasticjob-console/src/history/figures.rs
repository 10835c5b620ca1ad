//! Figures of jobs: counts, durations, delays, failures.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::history::{
    Bucket, FailureGroup, JobFigures, MissedFires, Run, RunState, Span, Store,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{check_limit, check_text, span_or_last_hours};
use crate::{
    auth::caller::{Authorized, Viewer},
    http::{
        extract::{PathJob, Query},
        problem::{Code, Problem},
        state::AppState,
    },
};

/// Default spans in hours. Figures cover a week, so that a daily job has some.
const WEEK: i64 = 7 * 24;
const DAY: i64 = 24;
/// Limits of one request: jobs, and last runs of each.
const MAX_JOBS: usize = 200;
const MAX_LAST_RUNS: usize = 100;
/// Failure groups or missed fires of one request.
const MAX_GROUPS: usize = 100;
const MAX_BUCKETS: i64 = 2_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(figures))
        .routes(routes!(job_figures))
        .routes(routes!(buckets))
        .routes(routes!(failures))
        .routes(routes!(missed))
}

/// Figures of a job with its last runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobFiguresWithRuns)]
struct JobFiguresWithRuns {
    job_name: String,
    /// Figures over the requested span; null if the job did not run then.
    figures: Option<RatedFigures>,
    /// The last runs, newest first, whether or not in the span.
    last_runs: Vec<LastRun>,
}

/// Figures with the success rate.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RatedFigures)]
struct RatedFigures {
    #[serde(flatten)]
    figures: JobFigures,
    /// Successful runs per thousand finished ones; null if none finished.
    success_permille: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecentRun)]
struct LastRun {
    run_id: String,
    state: RunState,
    started_at: Option<Timestamp>,
    duration_ms: Option<i64>,
    lateness_ms: Option<i64>,
}

impl From<Run> for LastRun {
    fn from(run: Run) -> Self {
        Self {
            run_id: run.run_id,
            state: run.state,
            started_at: run.started_at,
            duration_ms: run.duration_ms,
            lateness_ms: run.lateness_ms,
        }
    }
}

async fn read_figures(
    store: &Store,
    jobs: &[&str],
    span: Span,
    last: usize,
) -> Result<Vec<JobFiguresWithRuns>, Problem> {
    let mut figures = store.figures(jobs, span).await?;
    let mut runs = store.last_runs(jobs, last).await?;
    let shown = jobs.iter().map(|job| {
        let known = figures.iter().position(|figures| figures.job_name == *job);
        let rated = known
            .map(|index| figures.swap_remove(index))
            .map(|figures| RatedFigures { success_permille: figures.success_permille(), figures });
        let last_runs: Vec<_> = runs.extract_if(.., |run| run.job_name == *job).collect();
        JobFiguresWithRuns {
            job_name: (*job).to_owned(),
            figures: rated,
            last_runs: last_runs.into_iter().map(LastRun::from).collect(),
        }
    });
    Ok(shown.collect())
}

#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only describes the parameters: `job` may be repeated, so the query is parsed pair by pair"
)]
struct FiguresQuery {
    /// A job; may be repeated up to 200 times.
    job: Vec<String>,
    /// Start; if omitted, a week before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// End; if omitted, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Number of last runs of each job.
    #[param(minimum = 1, maximum = 100)]
    last: Option<usize>,
}

/// Figures and last runs of several jobs: all that a page of the job list shows, in one request.
#[utoipa::path(get, path = "/r/{registry}/figures", tag = "history", params(("registry" = String, Path), FiguresQuery),
    responses((status = 200, body = [JobFiguresWithRuns]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn figures(
    access: Authorized<Viewer>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Json<Vec<JobFiguresWithRuns>>, Problem> {
    let (mut jobs, mut from, mut to, mut last) = (Vec::new(), None, None, None);
    for (name, value) in pairs {
        match name.as_str() {
            "job" if jobs.contains(&value) => {}
            "job" => jobs.extend(check_text("job", Some(value))?),
            "from" => from = Some(value),
            "to" => to = Some(value),
            "last" => {
                let count = value.parse().map_err(|_| {
                    Problem::new(Code::Malformed, "last is not a number").with_field("last")
                })?;
                last = Some(count);
            }
            name => {
                let text = format!("cannot parse the query: unknown parameter {name:?}");
                return Err(Problem::new(Code::Malformed, text)
                    .with_hint("job, from, to, last")
                    .with_field(name));
            }
        }
    }
    if jobs.is_empty() || jobs.len() > MAX_JOBS {
        let text = format!("name 1 to {MAX_JOBS} jobs");
        return Err(Problem::invalid("job", text).with_hint("job=a&job=b"));
    }
    let span = span_or_last_hours(from.as_deref(), to.as_deref(), WEEK, access.app.clock.now())?;
    let last = check_limit("last", last, 20, MAX_LAST_RUNS)?;
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    Ok(Json(read_figures(&access.history().await?, &jobs, span, last).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobFiguresQuery {
    /// Start; if omitted, a week before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// End; if omitted, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Number of last runs.
    #[param(minimum = 1, maximum = 100)]
    last: Option<usize>,
}

/// Figures and last runs of a job.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/figures", tag = "history", params(("registry" = String, Path), ("job" = String, Path), JobFiguresQuery),
    responses((status = 200, body = JobFiguresWithRuns), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn job_figures(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<JobFiguresQuery>,
) -> Result<Json<JobFiguresWithRuns>, Problem> {
    let now = access.app.clock.now();
    let span = span_or_last_hours(query.from.as_deref(), query.to.as_deref(), WEEK, now)?;
    let last = check_limit("last", query.last, 20, MAX_LAST_RUNS)?;
    let mut shown = read_figures(&access.history().await?, &[job.as_str()], span, last).await?;
    shown
        .pop()
        .map(Json)
        .ok_or_else(|| Problem::new(Code::Internal, "the figures of the job are missing"))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BucketsQuery {
    /// Only this job.
    job: Option<String>,
    /// Start; if omitted, a day before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// End; if omitted, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Length of a bucket; if omitted, 1/96 of the span.
    #[param(minimum = 1)]
    bucket_ms: Option<i64>,
}

/// Runs over time, in buckets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Buckets {
    from: Option<Timestamp>,
    to: Timestamp,
    bucket_ms: i64,
    /// Buckets without runs are omitted. Each begins at a multiple of its length since 1970.
    items: Vec<Bucket>,
}

/// Counts the runs that began in each bucket of a span, by state: the data of a chart.
#[utoipa::path(get, path = "/r/{registry}/buckets", tag = "history", params(("registry" = String, Path), BucketsQuery),
    responses((status = 200, body = Buckets), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn buckets(
    access: Authorized<Viewer>,
    Query(query): Query<BucketsQuery>,
) -> Result<Json<Buckets>, Problem> {
    let now = access.app.clock.now();
    let mut span = span_or_last_hours(query.from.as_deref(), query.to.as_deref(), DAY, now)?;
    let until = *span.until.get_or_insert(now);
    let since = span.since.unwrap_or(until);
    let length = until.as_millisecond().saturating_sub(since.as_millisecond()).max(1);
    let bucket_ms = query.bucket_ms.unwrap_or((length / 96).max(1));
    if bucket_ms < 1 || length / bucket_ms > MAX_BUCKETS {
        let least = length / MAX_BUCKETS + 1;
        let text = format!("a span has at most {MAX_BUCKETS} buckets");
        return Err(Problem::invalid("bucketMs", text).with_hint(format!("{least} or more")));
    }
    let job = check_text("job", query.job)?;
    let store = access.history().await?;
    let length = SignedDuration::from_millis(bucket_ms);
    let items = store.buckets(job.as_deref(), span, length).await?;
    Ok(Json(Buckets { from: span.since, to: until, bucket_ms, items }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct IncidentsQuery {
    /// Only this job.
    job: Option<String>,
    /// Start; if omitted, a day before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// End; if omitted, now.
    #[param(format = DateTime)]
    to: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

impl IncidentsQuery {
    /// Job, span and maximum number of rows.
    fn parse(self, now: Timestamp) -> Result<(Option<String>, Span, usize), Problem> {
        let span = span_or_last_hours(self.from.as_deref(), self.to.as_deref(), DAY, now)?;
        let limit = check_limit("limit", self.limit, 50, MAX_GROUPS)?;
        Ok((check_text("job", self.job)?, span, limit))
    }
}

/// Failures grouped by similar messages, most frequent first.
#[utoipa::path(get, path = "/r/{registry}/failures", tag = "history", params(("registry" = String, Path), IncidentsQuery),
    responses((status = 200, body = [FailureGroup]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn failures(
    access: Authorized<Viewer>,
    Query(query): Query<IncidentsQuery>,
) -> Result<Json<Vec<FailureGroup>>, Problem> {
    let (job, span, limit) = query.parse(access.app.clock.now())?;
    Ok(Json(access.history().await?.failures(job.as_deref(), span, limit).await?))
}

/// Missed fires, latest first.
#[utoipa::path(get, path = "/r/{registry}/missed", tag = "history", params(("registry" = String, Path), IncidentsQuery),
    responses((status = 200, body = [MissedFires]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn missed(
    access: Authorized<Viewer>,
    Query(query): Query<IncidentsQuery>,
) -> Result<Json<Vec<MissedFires>>, Problem> {
    let (job, span, limit) = query.parse(access.app.clock.now())?;
    Ok(Json(access.history().await?.missed(job.as_deref(), span, limit).await?))
}
