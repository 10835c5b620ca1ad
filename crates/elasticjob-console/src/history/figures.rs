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

use super::{limit, span_of, word};
use crate::{
    auth::who::{Door, Looks},
    http::{
        extract::{Named, Query},
        problem::{Code, Problem},
        state::Shared,
    },
};

/// How far back is looked if nobody says anything: for figures, a job that runs once a day should have some.
const WEEK: i64 = 7 * 24;
const DAY: i64 = 24;
/// How many jobs may be asked about at once, and how many of their last runs.
const MOST_JOBS: usize = 200;
const MOST_LAST: usize = 100;
/// How many failures, or missed fires.
const MOST_WRONG: usize = 100;
/// Into how many pieces a span may be cut.
const MOST_BUCKETS: i64 = 2_000;

pub(super) fn router() -> OpenApiRouter<Shared> {
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
struct FiguresShown {
    job_name: String,
    /// Over the span that was asked for; nothing if it did not run then.
    figures: Option<Rated>,
    /// Its last runs, newest first, whenever they were.
    last_runs: Vec<LastRun>,
}

/// Figures, and what they amount to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Rated {
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

async fn shown(
    store: &Store,
    jobs: &[&str],
    span: Span,
    last: usize,
) -> Result<Vec<FiguresShown>, Problem> {
    let mut figures = store.figures(jobs, span).await?;
    let mut runs = store.last_runs(jobs, last).await?;
    let shown = jobs.iter().map(|job| {
        let known = figures.iter().position(|figures| figures.job_name == *job);
        let rated = known
            .map(|place| figures.swap_remove(place))
            .map(|figures| Rated { success_permille: figures.success_permille(), figures });
        let last_runs: Vec<_> = runs.extract_if(.., |run| run.job_name == *job).collect();
        FiguresShown {
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
struct FiguresAsked {
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
#[utoipa::path(get, path = "/r/{registry}/figures", tag = "history", params(("registry" = String, Path), FiguresAsked),
    responses((status = 200, body = [FiguresShown]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn figures(
    door: Door<Looks>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Json<Vec<FiguresShown>>, Problem> {
    let (mut jobs, mut from, mut to, mut last) = (Vec::new(), None, None, None);
    for (name, value) in pairs {
        match name.as_str() {
            "job" if jobs.contains(&value) => {}
            "job" => jobs.extend(word("job", Some(value))?),
            "from" => from = Some(value),
            "to" => to = Some(value),
            "last" => {
                let count = value
                    .parse()
                    .map_err(|_| Problem::new(Code::Malformed, "last is no number").of("last"))?;
                last = Some(count);
            }
            name => {
                let text = format!(
                    "the query cannot be read: {name:?} means nothing here; hint: job, from, to, last"
                );
                return Err(Problem::new(Code::Malformed, text).of(name));
            }
        }
    }
    if jobs.is_empty() || jobs.len() > MOST_JOBS {
        let text = format!("1 to {MOST_JOBS} jobs can be asked about; hint: job=a&job=b");
        return Err(Problem::invalid("job", text));
    }
    let span = span_of(from.as_deref(), to.as_deref(), WEEK, door.shared.clock.now())?;
    let last = limit("last", last, 20, MOST_LAST)?;
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    Ok(Json(shown(&door.history().await?, &jobs, span, last).await?))
}

/// When.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct JobFiguresAsked {
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
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/figures", tag = "history", params(("registry" = String, Path), ("job" = String, Path), JobFiguresAsked),
    responses((status = 200, body = FiguresShown), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn job_figures(
    door: Door<Looks>,
    Named(job): Named,
    Query(asked): Query<JobFiguresAsked>,
) -> Result<Json<FiguresShown>, Problem> {
    let now = door.shared.clock.now();
    let span = span_of(asked.from.as_deref(), asked.to.as_deref(), WEEK, now)?;
    let last = limit("last", asked.last, 20, MOST_LAST)?;
    let mut shown = shown(&door.history().await?, &[job.as_str()], span, last).await?;
    shown.pop().map(Json).ok_or_else(|| Problem::new(Code::Internal, "a job got lost"))
}

/// Of which job, and when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BucketsAsked {
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
#[utoipa::path(get, path = "/r/{registry}/buckets", tag = "history", params(("registry" = String, Path), BucketsAsked),
    responses((status = 200, body = Buckets), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn buckets(
    door: Door<Looks>,
    Query(asked): Query<BucketsAsked>,
) -> Result<Json<Buckets>, Problem> {
    let now = door.shared.clock.now();
    let mut span = span_of(asked.from.as_deref(), asked.to.as_deref(), DAY, now)?;
    let until = *span.until.get_or_insert(now);
    let since = span.since.unwrap_or(until);
    let length = until.as_millisecond().saturating_sub(since.as_millisecond()).max(1);
    let bucket_ms = asked.bucket_ms.unwrap_or((length / 96).max(1));
    if bucket_ms < 1 || length / bucket_ms > MOST_BUCKETS {
        let least = length / MOST_BUCKETS + 1;
        let text = format!("a span has at most {MOST_BUCKETS} pieces; hint: {least} or more");
        return Err(Problem::invalid("bucketMs", text));
    }
    let job = word("job", asked.job)?;
    let store = door.history().await?;
    let length = SignedDuration::from_millis(bucket_ms);
    let items = store.buckets(job.as_deref(), span, length).await?;
    Ok(Json(Buckets { from: span.since, to: until, bucket_ms, items }))
}

/// Of which job, and when.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct WrongAsked {
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
#[utoipa::path(get, path = "/r/{registry}/failures", tag = "history", params(("registry" = String, Path), WrongAsked),
    responses((status = 200, body = [FailureGroup]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn failures(
    door: Door<Looks>,
    Query(asked): Query<WrongAsked>,
) -> Result<Json<Vec<FailureGroup>>, Problem> {
    let now = door.shared.clock.now();
    let span = span_of(asked.from.as_deref(), asked.to.as_deref(), DAY, now)?;
    let limit = limit("limit", asked.limit, 50, MOST_WRONG)?;
    let job = word("job", asked.job)?;
    Ok(Json(door.history().await?.failures(job.as_deref(), span, limit).await?))
}

/// Fires that did not run, the last noticed first.
#[utoipa::path(get, path = "/r/{registry}/missed", tag = "history", params(("registry" = String, Path), WrongAsked),
    responses((status = 200, body = [MissedFires]), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn missed(
    door: Door<Looks>,
    Query(asked): Query<WrongAsked>,
) -> Result<Json<Vec<MissedFires>>, Problem> {
    let now = door.shared.clock.now();
    let span = span_of(asked.from.as_deref(), asked.to.as_deref(), DAY, now)?;
    let limit = limit("limit", asked.limit, 50, MOST_WRONG)?;
    let job = word("job", asked.job)?;
    Ok(Json(door.history().await?.missed(job.as_deref(), span, limit).await?))
}
