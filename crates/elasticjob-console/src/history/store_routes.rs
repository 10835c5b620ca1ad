//! Histories as clients see them: listed, tried, added, taken away.

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

/// The history of a registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryShown)]
struct HistoryInfo {
    /// Whose.
    registry: String,
    /// Without the password.
    url: String,
    /// Whether the database was asked, and answered.
    is_open: bool,
    /// Why it did not.
    problem: Option<String>,
    /// Whether it was added while the console ran, and can be removed.
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

/// The histories of the registries whoever asks may look at.
#[utoipa::path(get, path = "/histories", tag = "history", responses((status = 200, body = [HistoryInfo]), (status = 401, body = Problem)))]
async fn histories(State(app): State<AppState>, caller: Caller) -> Json<Vec<HistoryInfo>> {
    let all = app.histories.all();
    let visible = all.iter().filter(|history| caller.role(&history.name).is_some());
    Json(visible.map(|history| HistoryInfo::new(history)).collect())
}

/// A history to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HistoryAsked)]
struct HistoryBody {
    /// Whose it is.
    registry: String,
    /// `postgres://user:password@host:5432/database` or `mysql://…`, on hosts on the list alone.
    url: String,
}

/// Adds the history of a registry for good. Takes an admin of `*`, and that it is switched on.
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

/// Adds a history, and writes down that it was added or not.
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

/// A history to be tried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HistoryTried)]
struct HistoryTestBody {
    url: String,
}

/// How that went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryTrial)]
pub(crate) struct HistoryTestResult {
    pub(crate) is_reachable: bool,
    /// How many jobs have runs there.
    job_count: Option<usize>,
    problem: Option<String>,
}

/// Tries a history without adding it; what is missing in the database is made there. Takes an admin of `*`, and that adding is switched on.
#[utoipa::path(post, path = "/histories/test", tag = "history", request_body = HistoryTestBody,
    responses((status = 200, body = HistoryTestResult), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn test_history(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<HistoryTestBody>,
) -> Result<Json<HistoryTestResult>, Problem> {
    Ok(Json(test_connection(&app, &caller, &request.url).await?))
}

/// Tries a history, and writes down that it was tried.
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

/// Takes the history of a registry away that was added. The database stays as it is. Takes an admin of `*`.
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

/// Takes a history away, and writes down that it was or not.
pub(crate) fn remove(app: &AppState, caller: &Caller, registry: &str) -> Result<(), Problem> {
    caller.require_everywhere(Role::Admin)?;
    let removed = app.histories.remove(registry);
    let outcome = removed.as_ref().map(|()| Value::Null);
    caller.audit(app, "history.remove", registry, Value::Null, outcome);
    removed
}
