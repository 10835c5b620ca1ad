//! Lists, tests, adds and removes registries.

use std::sync::Arc;

use crate::http::handler::routes;
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use elasticjob::{
    admin::{Admin, AdminError},
    registry::RegistryUrl,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::connections::{ConnectionStatus, RegistryConnection};
use crate::{
    auth::{accounts::Role, caller::Caller},
    http::{
        extract::{Body, Path},
        problem::{Code, Problem},
        state::AppState,
    },
};

const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(registries, add))
        .routes(routes!(test))
        .routes(routes!(remove))
}

/// A registry and the state of its connection.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Registry)]
pub(crate) struct RegistryInfo {
    name: String,
    /// The password is masked.
    url: String,
    state: ConnectionStatus,
    /// Why the connection is down.
    problem: Option<String>,
    /// Added at run time; can be removed.
    is_added: bool,
    /// Number of jobs; null before the first read.
    job_count: Option<usize>,
    /// The caller's role in this registry.
    role: Option<Role>,
}

impl RegistryInfo {
    fn new(registry: &RegistryConnection, caller: &Caller) -> Self {
        let (state, problem) = registry.status();
        Self {
            name: registry.name.clone(),
            url: registry.url.to_string(),
            state,
            problem,
            is_added: registry.is_added,
            job_count: registry.mirror.read(|seen| seen.as_of.map(|_| seen.jobs.len())),
            role: caller.role(&registry.name),
        }
    }
}

/// Lists the registries that the caller may see.
#[utoipa::path(get, path = "/registries", tag = "registries", responses((status = 200, body = [RegistryInfo]), (status = 401, body = Problem)))]
async fn registries(State(app): State<AppState>, caller: Caller) -> Json<Vec<RegistryInfo>> {
    let visible = app.registries.visible_to(&caller);
    Json(visible.iter().map(|registry| RegistryInfo::new(registry, &caller)).collect())
}

/// A registry to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RegistryRequest)]
struct RegistryBody {
    name: String,
    /// `zookeeper://[user:password@]host[:2181],…/namespace`, allowed hosts only.
    url: String,
}

/// Adds a registry and stores it. Requires an admin of `*`, and that additions are enabled.
#[utoipa::path(post, path = "/registries", tag = "registries", request_body = RegistryBody,
    responses((status = 201, body = RegistryInfo), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<RegistryBody>,
) -> Result<Response, Problem> {
    let registry = add_registry(&app, &caller, &request.name, &request.url)?;
    Ok((StatusCode::CREATED, Json(RegistryInfo::new(&registry, &caller))).into_response())
}

/// Adds a registry and audits the result.
pub(crate) fn add_registry(
    app: &AppState,
    caller: &Caller,
    name: &str,
    url: &str,
) -> Result<Arc<RegistryConnection>, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let added = app.registries.add(name, url);
    let outcome = added.as_ref().map(|registry| json!({ "url": registry.url.to_string() }));
    caller.audit(app, "registry.add", name, Value::Null, outcome);
    added
}

/// A registry to test.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RegistryTestRequest)]
struct RegistryTestBody {
    url: String,
}

/// Result of a test.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RegistryTest)]
struct RegistryTestResult {
    is_reachable: bool,
    /// Number of jobs.
    job_count: Option<usize>,
    problem: Option<String>,
}

/// Tests the connection to a registry without adding it. Requires an admin of `*`, and that additions are enabled.
#[utoipa::path(post, path = "/registries/test", tag = "registries", request_body = RegistryTestBody,
    responses((status = 200, body = RegistryTestResult), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn test(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<RegistryTestBody>,
) -> Result<Json<RegistryTestResult>, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let url = app.registries.check_addable(&request.url)?;
    caller.audit(&app, "registry.test", &url.to_string(), Value::Null, Ok(Value::Null));
    Ok(Json(test_connection(&url, &app).await))
}

async fn test_connection(url: &RegistryUrl, app: &AppState) -> RegistryTestResult {
    let read_jobs = async {
        let admin = Admin::connect(url).await?;
        let names = admin.job_names().await;
        admin.close().await;
        Ok::<_, AdminError>(names?.len())
    };
    let clock = &app.clock;
    let result = tokio::select! {
        result = read_jobs => result.map_err(Problem::from),
        () = clock.sleep_until(clock.monotonic() + TEST_TIMEOUT) => Err(Problem::new(Code::Unreachable, "no answer from the registry")),
    };
    match result {
        Ok(count) => {
            RegistryTestResult { is_reachable: true, job_count: Some(count), problem: None }
        }
        Err(problem) => RegistryTestResult {
            is_reachable: false,
            job_count: None,
            problem: Some(problem.detail),
        },
    }
}

/// Removes an added registry, and its history if that was added too. Their data stays untouched. Requires an admin of `*`.
#[utoipa::path(delete, path = "/registries/{name}", tag = "registries", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    State(app): State<AppState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    remove_registry(&app, &caller, &name)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a registry and its added history, and audits the result.
pub(crate) fn remove_registry(app: &AppState, caller: &Caller, name: &str) -> Result<(), Problem> {
    caller.require_everywhere(Role::Admin)?;
    let removed = app.registries.remove(name).and_then(|()| app.histories.remove_if_added(name));
    let outcome = removed.as_ref().map(|()| Value::Null);
    caller.audit(app, "registry.remove", name, Value::Null, outcome);
    removed
}
