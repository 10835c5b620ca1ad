//! How often, how long, how late, and what went wrong.

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

/// How far back is looked if nobody says anything: for figures, a job that runs once a day should have some.
const WEEK: i64 = 7 * 24;
const DAY: i64 = 24;
/// How many jobs may be asked about at once, and how many of their last runs.
const MAX_JOBS: usize = 200;
const MAX_LAST_RUNS: usize = 100;
/// How many failures, or missed fires.
const MAX_GROUPS: usize = 100;
/// Into how many pieces a span may be cut.
const MAX_BUCKETS: i64 = 2_000;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(figures))
        .routes(routes!(job_figures))
        .routes(routes!(buckets))
        .routes(routes!(failures))
        .routes(routes!(missed))
}

/// A job in figures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FiguresShown)]
struct JobFiguresWithRuns {
    job_name: String,
    /// Over the span that was asked for; nothing if it did not run then.
    figures: Option<RatedFigures>,
    /// Its last runs, newest first, whenever they were.
    last_runs: Vec<LastRun>,
}

/// Figures, and what they amount to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Rated)]
struct RatedFigures {
    #[serde(flatten)]
    figures: JobFigures,
    /// How many of a thousand that came to an end are done; nothing if none came to an end.
    success_permille: Option<i64>,
}

/// A run in few words.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RunBrief)]
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

/// Which jobs, and when.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "what it describes is read pair by pair, for a name may come several times"
)]
struct FiguresQuery {
    /// A job; up to 200 times.
    job: Vec<String>,
    /// From when; without, a week before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Until when; without, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// How many of the last runs of each.
    #[param(minimum = 1, maximum = 100)]
    last: Option<usize>,
}

/// Jobs in figures, and their last runs: everything that a page of a list shows, at once.
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
                    Problem::new(Code::Malformed, "last is no number").with_field("last")
                })?;
                last = Some(count);
            }
            name => {
                let text = format!(
                    "the query cannot be read: {name:?} means nothing here; hint: job, from, to, last"
                );
                return Err(Problem::new(Code::Malformed, text).with_field(name));
            }
        }
    }
    if jobs.is_empty() || jobs.len() > MAX_JOBS {
        let text = format!("1 to {MAX_JOBS} jobs can be asked about; hint: job=a&job=b");
        return Err(Problem::invalid("job", text));
    }
    let span = span_or_last_hours(from.as_deref(), to.as_deref(), WEEK, access.app.clock.now())?;
    let last = check_limit("last", last, 20, MAX_LAST_RUNS)?;
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    Ok(Json(read_figures(&access.history().await?, &jobs, span, last).await?))
}

/// When.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobFiguresQuery {
    /// From when; without, a week before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Until when; without, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// How many of the last runs.
    #[param(minimum = 1, maximum = 100)]
    last: Option<usize>,
}

/// A job in figures, and its last runs.
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
    shown.pop().map(Json).ok_or_else(|| Problem::new(Code::Internal, "a job got lost"))
}

/// Of which job, and when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BucketsQuery {
    /// Only of this job.
    job: Option<String>,
    /// From when; without, a day before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Until when; without, now.
    #[param(format = DateTime)]
    to: Option<String>,
    /// How long a piece is; without, a 96th of the span.
    #[param(minimum = 1)]
    bucket_ms: Option<i64>,
}

/// Runs over time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Buckets {
    from: Option<Timestamp>,
    to: Timestamp,
    bucket_ms: i64,
    /// Pieces without runs are left out. Each begins at a multiple of its length since 1970.
    items: Vec<Bucket>,
}

/// How many runs began in each piece of a span, by how they stand: what a chart shows.
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
        let text = format!("a span has at most {MAX_BUCKETS} pieces; hint: {least} or more");
        return Err(Problem::invalid("bucketMs", text));
    }
    let job = check_text("job", query.job)?;
    let store = access.history().await?;
    let length = SignedDuration::from_millis(bucket_ms);
    let items = store.buckets(job.as_deref(), span, length).await?;
    Ok(Json(Buckets { from: span.since, to: until, bucket_ms, items }))
}

/// Of which job, and when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct IncidentsQuery {
    /// Only of this job.
    job: Option<String>,
    /// From when; without, a day before `to`.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Until when; without, now.
    #[param(format = DateTime)]
    to: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// What went wrong, most often first; similar messages are one.
#[utoipa::path(get, path = "/r/{registry}/failures", tag = "history", params(("registry" = String, Path), IncidentsQuery),
    responses((status = 200, body = [FailureGroup]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn failures(
    access: Authorized<Viewer>,
    Query(query): Query<IncidentsQuery>,
) -> Result<Json<Vec<FailureGroup>>, Problem> {
    let now = access.app.clock.now();
    let span = span_or_last_hours(query.from.as_deref(), query.to.as_deref(), DAY, now)?;
    let limit = check_limit("limit", query.limit, 50, MAX_GROUPS)?;
    let job = check_text("job", query.job)?;
    Ok(Json(access.history().await?.failures(job.as_deref(), span, limit).await?))
}

/// Fires that did not run, the last noticed first.
#[utoipa::path(get, path = "/r/{registry}/missed", tag = "history", params(("registry" = String, Path), IncidentsQuery),
    responses((status = 200, body = [MissedFires]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn missed(
    access: Authorized<Viewer>,
    Query(query): Query<IncidentsQuery>,
) -> Result<Json<Vec<MissedFires>>, Problem> {
    let now = access.app.clock.now();
    let span = span_or_last_hours(query.from.as_deref(), query.to.as_deref(), DAY, now)?;
    let limit = check_limit("limit", query.limit, 50, MAX_GROUPS)?;
    let job = check_text("job", query.job)?;
    Ok(Json(access.history().await?.missed(job.as_deref(), span, limit).await?))
}
