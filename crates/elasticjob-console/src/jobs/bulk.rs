//! The same done to many jobs: each is a change of its own, with its own entry in the audit, and one that fails keeps none of the others from being done.

use std::collections::BTreeSet;

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{admin::Ask, job::JobName, schedule::Zone};
use futures_util::{StreamExt, stream};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::{actions, routes::JobView, search::Search};
use crate::{
    auth::caller::{Authorized, Operator},
    http::{extract::Body, paging::loaded_mirror, problem::Problem, state::AppState},
};

/// How many jobs may be meant.
const MAX_JOBS: usize = 1_000;
/// How many are worked on at the same time.
const MAX_CONCURRENT: usize = 8;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(bulk))
}

/// What is to be done, and to which jobs: either `jobs` or `search`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = BulkAsked)]
struct BulkBody {
    action: BulkAction,
    /// By name.
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Option<Vec<String>>,
    /// Those that a list with this `search` shows.
    #[schema(min_length = 1)]
    search: Option<String>,
}

/// What can be done to many jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum BulkAction {
    Enable,
    Disable,
    Trigger,
    Shutdown,
}

/// How that went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BulkDone)]
struct BulkResult {
    /// How many jobs were meant.
    total: usize,
    /// How many of them it was done to.
    done: usize,
    /// One by one, in the order they were named, or by name.
    items: Vec<BulkItem>,
}

/// How it went with one job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BulkItem {
    job_name: String,
    /// What the same action on this job alone answers; null if there is a problem.
    #[schema(value_type = Value)]
    result: Value,
    /// Why it came to nothing.
    problem: Option<Problem>,
}

/// Enables, disables, triggers or shuts down many jobs, one by one: look at each item for how it went. Takes an operator.
#[utoipa::path(post, path = "/r/{registry}/bulk", tag = "jobs", request_body = BulkBody, params(("registry" = String, Path)),
    responses((status = 200, body = BulkResult)))]
async fn bulk(
    access: Authorized<Operator>,
    Body(BulkBody { action, jobs, search }): Body<BulkBody>,
) -> Result<Json<BulkResult>, Problem> {
    let names = match (jobs, search) {
        (Some(jobs), None) => {
            let mut seen = BTreeSet::new();
            jobs.into_iter().filter(|name| seen.insert(name.clone())).collect()
        }
        (None, Some(search)) => find_jobs(&access, &search).await?,
        _ => {
            let text = "which jobs are meant is said either by jobs or by search";
            return Err(Problem::invalid("jobs", text));
        }
    };
    if names.is_empty() || names.len() > MAX_JOBS {
        let text = format!(
            "{} jobs are meant, and it may be 1 to {MAX_JOBS}; hint: search for fewer",
            names.len()
        );
        return Err(Problem::invalid("jobs", text));
    }
    let items: Vec<BulkItem> = stream::iter(names)
        .map(|name| async {
            let result = apply(&access, action, &name).await;
            let (result, problem) = match result {
                Ok(result) => (result, None),
                Err(problem) => (Value::Null, Some(problem)),
            };
            BulkItem { job_name: name, result, problem }
        })
        .buffered(MAX_CONCURRENT)
        .collect()
        .await;
    let done = items.iter().filter(|item| item.problem.is_none()).count();
    Ok(Json(BulkResult { total: items.len(), done, items }))
}

/// The names that a search finds.
async fn find_jobs(access: &Authorized<Operator>, search: &str) -> Result<Vec<String>, Problem> {
    if search.trim().is_empty() {
        // A script whose variable is empty means something else than every job there is.
        return Err(Problem::invalid("search", "nothing is searched for; hint: name the jobs"));
    }
    let search: Search = search.parse()?;
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    Ok(loaded_mirror(access).await?.seen(|seen| {
        let matching = JobView::all(seen, now, &zone).filter(|view| search.matches(view));
        matching.map(|view| view.outline.summary.name.clone()).collect()
    }))
}

/// The same as the action on this job alone.
async fn apply(
    access: &Authorized<Operator>,
    action: BulkAction,
    name: &str,
) -> Result<Value, Problem> {
    let job: JobName = name
        .parse()
        .map_err(|error: elasticjob::job::Invalid| Problem::invalid("jobs", error.to_string()))?;
    let request = json!({ "bulk": true });
    match action {
        BulkAction::Enable => as_json(actions::enable(access, &job, request).await),
        BulkAction::Disable => as_json(actions::disable(access, &job, request).await),
        BulkAction::Trigger => {
            as_json(actions::trigger(access, &job, Ask::default(), request).await)
        }
        BulkAction::Shutdown => as_json(actions::shutdown(access, &job, request).await),
    }
}

fn as_json<T: Serialize>(done: Result<T, Problem>) -> Result<Value, Problem> {
    done.map(|done| serde_json::to_value(done).unwrap_or_default())
}
