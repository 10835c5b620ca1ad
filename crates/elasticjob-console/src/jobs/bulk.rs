//! Applies one action to many jobs. Each is a change of its own with its own audit entry; a failure does not stop the others.

use std::collections::BTreeSet;

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{admin::TriggerRequest, job::JobName, schedule::Zone};
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

const MAX_JOBS: usize = 1_000;
/// Jobs that are changed concurrently.
const MAX_CONCURRENT: usize = 8;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(bulk))
}

/// An action and its jobs: either `jobs` or `search`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = BulkRequest)]
struct BulkBody {
    action: BulkAction,
    /// Job names.
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Option<Vec<String>>,
    /// All jobs that this search finds.
    #[schema(min_length = 1)]
    search: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum BulkAction {
    Enable,
    Disable,
    Trigger,
    Shutdown,
}

/// Results of a bulk action.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BulkResult)]
struct BulkResult {
    /// Number of jobs.
    total: usize,
    /// Number of jobs for which the action succeeded.
    done: usize,
    /// Results in the order of the request, or by name.
    items: Vec<BulkItem>,
}

/// Result for one job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BulkItem {
    job_name: String,
    /// The response of the same action on this job alone; null if it failed.
    #[schema(value_type = Value)]
    result: Value,
    /// Why it failed.
    problem: Option<Problem>,
}

/// Enables, disables, triggers or shuts down many jobs; each item has its own result. Requires an operator.
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
            let text = "exactly one of jobs and search is required";
            return Err(Problem::invalid("jobs", text));
        }
    };
    if names.is_empty() || names.len() > MAX_JOBS {
        let text = format!("the request selects {} jobs, allowed are 1 to {MAX_JOBS}", names.len());
        return Err(Problem::invalid("jobs", text).with_hint("search for fewer"));
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

/// Names of the jobs that a search finds.
async fn find_jobs(access: &Authorized<Operator>, search: &str) -> Result<Vec<String>, Problem> {
    if search.trim().is_empty() {
        // Protects against scripts with an empty variable, which would otherwise affect every job.
        return Err(Problem::invalid("search", "the search is empty").with_hint("name the jobs"));
    }
    let search: Search = search.parse()?;
    let (now, zone) = (access.app.clock.now(), Zone::from(TimeZone::system()));
    Ok(loaded_mirror(access).await?.read(|seen| {
        let matching = JobView::all(seen, now, &zone).filter(|view| search.matches(view));
        matching.map(|view| view.outline.summary.name.clone()).collect()
    }))
}

/// Applies the action to one job.
async fn apply(
    access: &Authorized<Operator>,
    action: BulkAction,
    name: &str,
) -> Result<Value, Problem> {
    let job: JobName = name
        .parse()
        .map_err(|error: elasticjob::job::InvalidValue| Problem::invalid("jobs", &error))?;
    let request = json!({ "bulk": true });
    match action {
        BulkAction::Enable => as_json(actions::enable(access, &job, request).await),
        BulkAction::Disable => as_json(actions::disable(access, &job, request).await),
        BulkAction::Trigger => {
            as_json(actions::trigger(access, &job, TriggerRequest::default(), request).await)
        }
        BulkAction::Shutdown => as_json(actions::shutdown(access, &job, request).await),
    }
}

fn as_json<T: Serialize>(done: Result<T, Problem>) -> Result<Value, Problem> {
    done.map(|done| serde_json::to_value(done).unwrap_or_default())
}
