//! Runs: the list, one run, and the recent runs of a job by shard.

use std::collections::BTreeMap;

use crate::http::handler::routes;
use axum::{Json, extract::FromRequestParts, http::request::Parts};
use elasticjob::{
    history::{AttemptState, Cursor, Execution, Run, RunDetails, RunFilter, RunState, StoreError},
    job::RunReason,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{MAX_PAGE_SIZE, check_limit, check_text, parse_span};
use crate::{
    auth::caller::{Authorized, Viewer},
    http::{
        extract::{PathJob, Query, path_param},
        problem::{Code, Problem},
        state::AppState,
    },
};

/// Runs in one response of the matrix.
const MAX_MATRIX_RUNS: usize = 100;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(runs)).routes(routes!(run)).routes(routes!(matrix))
}

/// The path parameter `run`. A tilde stands for the slash of a run id, because not every proxy passes `%2F`.
pub(super) struct PathRun(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = path_param(parts, state, "run").await?;
        check_text("run", Some(text.clone()))?;
        Ok(Self(run_id(&text)))
    }
}

/// Turns `settle~1774785600000` into `settle/1774785600000`; other text stays unchanged.
fn run_id(text: &str) -> String {
    match text.rsplit_once('~') {
        Some((job, millis)) if !text.contains('/') && millis.parse::<i64>().is_ok() => {
            format!("{job}/{millis}")
        }
        _ => text.to_owned(),
    }
}

pub(super) fn no_such_run(run: &str) -> Problem {
    let hint = "GET …/runs lists them; old runs are deleted after a while";
    Problem::new(Code::NotFound, format!("there is no run {run}")).with_hint(hint)
}

/// Parses the cursor `after`.
pub(super) fn parse_cursor(text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let cursor = text.map(str::parse).transpose();
    let cursor = cursor.map_err(|error: StoreError| Problem::from(error).with_field("after"))?;
    check_text("after", text.map(ToOwned::to_owned))?;
    Ok(cursor)
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    job: Option<String>,
    /// `running`, `done`, `incomplete`, `failed` or `cancelled`.
    #[param(pattern = "^(running|done|incomplete|failed|cancelled)$")]
    state: Option<String>,
    /// `schedule` or `trigger`.
    #[param(pattern = "^(schedule|trigger)$")]
    source: Option<String>,
    /// Runs in which this instance took part.
    instance: Option<String>,
    /// Earliest start, inclusive.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Latest start, exclusive.
    #[param(format = DateTime)]
    to: Option<String>,
    /// The `next` of the previous page.
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
struct RunPage {
    items: Vec<Run>,
    /// The value of `after` for the next page; null if this is the last.
    next: Option<String>,
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/r/{registry}/runs", tag = "history", params(("registry" = String, Path), RunsQuery),
    responses((status = 200, body = RunPage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn runs(
    access: Authorized<Viewer>,
    Query(query): Query<RunsQuery>,
) -> Result<Json<RunPage>, Problem> {
    let state = query.state.as_deref().map(str::parse::<RunState>).transpose();
    let state = state.map_err(|error| Problem::from(error).with_field("state"))?;
    if let Some(source) = query.source.as_deref()
        && !["schedule", "trigger"].contains(&source)
    {
        let text = format!("{source:?} is not a source of runs");
        return Err(Problem::invalid("source", text).with_hint("schedule or trigger"));
    }
    let filter = RunFilter {
        job: check_text("job", query.job)?,
        state,
        instance: check_text("instance", query.instance)?,
        source: query.source,
        span: parse_span(query.from.as_deref(), query.to.as_deref())?,
        after: parse_cursor(query.after.as_deref())?,
        limit: Some(check_limit("limit", query.limit, 50, MAX_PAGE_SIZE)?),
    };
    let page = access.history().await?.runs(&filter).await?;
    Ok(Json(RunPage { items: page.rows, next: page.next.map(|next| next.to_string()) }))
}

/// A run with all details.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RunWithShards)]
struct RunWithShards {
    #[serde(flatten)]
    details: RunDetails,
    /// State of each shard.
    items: Vec<ShardState>,
}

/// State of a shard in a run: that of its last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RunShard)]
struct ShardState {
    item: i64,
    state: AttemptState,
    /// Number of attempts.
    attempts: usize,
    /// Reason of the last attempt.
    reason: Option<RunReason>,
    instance: Option<String>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    duration_ms: Option<i64>,
}

impl ShardState {
    /// Derives the shards of a run from its attempts, which are in order.
    fn all<'a>(executions: impl IntoIterator<Item = &'a Execution>) -> Vec<Self> {
        let mut shards: BTreeMap<i64, Self> = BTreeMap::new();
        for execution in executions {
            let attempts = shards.get(&execution.sharding_item).map_or(0, |shard| shard.attempts);
            let shard = Self {
                item: execution.sharding_item,
                state: execution.state,
                attempts: attempts + 1,
                reason: execution.reason,
                instance: execution.instance.clone(),
                started_at: execution.start_time,
                ended_at: execution.complete_time,
                duration_ms: execution.duration_ms,
            };
            shards.insert(execution.sharding_item, shard);
        }
        shards.into_values().collect()
    }
}

/// Returns a run: its state, every attempt of every shard, and the instances' messages. In the path a tilde stands for the slash of the run id.
#[utoipa::path(get, path = "/r/{registry}/runs/{run}", tag = "history", params(("registry" = String, Path), ("run" = String, Path, description = "`settle~1774785600000`, or a UUID")),
    responses((status = 200, body = RunWithShards), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn run(
    access: Authorized<Viewer>,
    PathRun(run): PathRun,
) -> Result<Json<RunWithShards>, Problem> {
    let details = access.history().await?.run(&run).await?.ok_or_else(|| no_such_run(&run))?;
    let items = ShardState::all(&details.executions);
    Ok(Json(RunWithShards { details, items }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MatrixQuery {
    /// The `next` of the previous page.
    after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// The last runs of a job by shard.
#[derive(Debug, Serialize, ToSchema)]
struct Matrix {
    runs: Vec<MatrixRun>,
    /// The value of `after` for earlier runs; null if there are none.
    next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MatrixRun)]
struct MatrixRun {
    run: Run,
    items: Vec<ShardState>,
}

/// Returns the last runs of a job, newest first, with the state of each shard.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/matrix", tag = "history", params(("registry" = String, Path), ("job" = String, Path), MatrixQuery),
    responses((status = 200, body = Matrix), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn matrix(
    access: Authorized<Viewer>,
    PathJob(job): PathJob,
    Query(query): Query<MatrixQuery>,
) -> Result<Json<Matrix>, Problem> {
    let filter = RunFilter {
        job: Some(job.to_string()),
        after: parse_cursor(query.after.as_deref())?,
        limit: Some(check_limit("limit", query.limit, 30, MAX_MATRIX_RUNS)?),
        ..RunFilter::default()
    };
    let store = access.history().await?;
    let page = store.runs(&filter).await?;
    let mut attempts: BTreeMap<String, Vec<Execution>> = BTreeMap::new();
    for execution in store.attempts(&page.rows).await? {
        let run = execution.run_id.clone().unwrap_or_else(|| execution.id.clone());
        attempts.entry(run).or_default().push(execution);
    }
    let runs = page.rows.into_iter().map(|run| {
        let items = ShardState::all(attempts.get(&run.run_id).into_iter().flatten());
        MatrixRun { run, items }
    });
    Ok(Json(Matrix { runs: runs.collect(), next: page.next.map(|next| next.to_string()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilde_before_a_time_stands_for_the_slash_of_a_run_id() {
        for (path, id) in [
            ("settle~1774785600000", "settle/1774785600000"),
            ("a~5~7", "a~5/7"),
            ("a~5/7", "a~5/7"),
            ("0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e"),
            (
                "long~0f8fad5b-d9cb-469f-a165-70867728950e",
                "long~0f8fad5b-d9cb-469f-a165-70867728950e",
            ),
        ] {
            assert_eq!(run_id(path), id);
        }
    }
}
