//! Lists, tests, adds and removes history stores.

use crate::http::handler::routes;
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::stores::{HistoryConnection, open_store};
use crate::{
    auth::{accounts::Role, caller::Caller},
    http::{
        extract::{Body, Path},
        problem::Problem,
        state::AppState,
    },
    registries::connections::no_such_registry,
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(histories, add_history))
        .routes(routes!(test_history))
        .routes(routes!(remove_history))
}

/// The history store of a registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryStore)]
struct HistoryInfo {
    registry: String,
    /// The password is masked.
    url: String,
    /// The database was opened successfully.
    is_open: bool,
    /// Why opening it failed.
    problem: Option<String>,
    /// Added at run time; can be removed.
    is_added: bool,
}

impl HistoryInfo {
    fn new(history: &HistoryConnection) -> Self {
        let (is_open, problem) = history.status();
        Self {
            registry: history.name.clone(),
            url: history.url.to_string(),
            is_open,
            problem,
            is_added: history.is_added,
        }
    }
}

/// Lists the histories of the registries that the caller may see.
#[utoipa::path(get, path = "/histories", tag = "history", responses((status = 200, body = [HistoryInfo]), (status = 401, body = Problem)))]
async fn histories(State(app): State<AppState>, caller: Caller) -> Json<Vec<HistoryInfo>> {
    let visible = app.histories.visible_to(&caller);
    Json(visible.iter().map(|history| HistoryInfo::new(history)).collect())
}

/// A history to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HistoryStoreRequest)]
struct HistoryBody {
    /// Name of the registry.
    registry: String,
    /// `postgres://user:password@host:5432/database` or `mysql://…`, allowed hosts only.
    url: String,
}

/// Adds the history of a registry and stores it. Requires an admin of `*`, and that additions are enabled.
#[utoipa::path(post, path = "/histories", tag = "history", request_body = HistoryBody,
    responses((status = 201, body = HistoryInfo), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add_history(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<HistoryBody>,
) -> Result<Response, Problem> {
    let history = add(&app, &caller, &request.registry, &request.url)?;
    Ok((StatusCode::CREATED, Json(HistoryInfo::new(&history))).into_response())
}

/// Adds a history and audits the result.
pub(crate) fn add(
    app: &AppState,
    caller: &Caller,
    registry: &str,
    url: &str,
) -> Result<std::sync::Arc<HistoryConnection>, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let added = match app.registries.get(registry) {
        Some(_) => app.histories.add(registry, url),
        None => Err(no_such_registry(registry)),
    };
    let outcome = added.as_ref().map(|history| json!({ "url": history.url.to_string() }));
    caller.audit(app, "history.add", registry, Value::Null, outcome);
    added
}

/// A history to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HistoryTestRequest)]
struct HistoryTestBody {
    url: String,
}

/// Result of a test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryTest)]
pub(crate) struct HistoryTestResult {
    pub(crate) is_reachable: bool,
    /// Number of jobs with runs.
    job_count: Option<usize>,
    problem: Option<String>,
}

/// Tests the connection to a history without adding it; creates missing tables. Requires an admin of `*`, and that additions are enabled.
#[utoipa::path(post, path = "/histories/test", tag = "history", request_body = HistoryTestBody,
    responses((status = 200, body = HistoryTestResult), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn test_history(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<HistoryTestBody>,
) -> Result<Json<HistoryTestResult>, Problem> {
    Ok(Json(test_connection(&app, &caller, &request.url).await?))
}

/// Tests a history and audits the test.
pub(crate) async fn test_connection(
    app: &AppState,
    caller: &Caller,
    url: &str,
) -> Result<HistoryTestResult, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let url = app.histories.check_addable(url)?;
    caller.audit(app, "history.test", &url.to_string(), Value::Null, Ok(Value::Null));
    let read_jobs = async {
        let store = open_store(&url, &*app.clock).await?;
        let jobs = store.jobs().await;
        store.close().await;
        Ok::<_, Problem>(jobs?.len())
    };
    Ok(match read_jobs.await {
        Ok(count) => {
            HistoryTestResult { is_reachable: true, job_count: Some(count), problem: None }
        }
        Err(problem) => HistoryTestResult {
            is_reachable: false,
            job_count: None,
            problem: Some(problem.detail),
        },
    })
}

/// Removes an added history. The database stays untouched. Requires an admin of `*`.
#[utoipa::path(delete, path = "/histories/{registry}", tag = "history", params(("registry" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove_history(
    State(app): State<AppState>,
    caller: Caller,
    Path(registry): Path<String>,
) -> Result<StatusCode, Problem> {
    remove(&app, &caller, &registry)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a history and audits the result.
pub(crate) fn remove(app: &AppState, caller: &Caller, registry: &str) -> Result<(), Problem> {
    caller.require_everywhere(Role::Admin)?;
    let removed = app.histories.remove(registry);
    let outcome = removed.as_ref().map(|()| Value::Null);
    caller.audit(app, "history.remove", registry, Value::Null, outcome);
    removed
}
