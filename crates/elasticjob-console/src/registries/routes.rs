//! Registries as clients see them: listed, tried, added, taken away.

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

use super::connections::{LineState, Place};
use crate::{
    auth::{accounts::Role, who::Who},
    http::{
        extract::{Body, Path},
        problem::{Code, Problem},
        state::Shared,
    },
};

/// How long a registry may take to be tried.
const TRIED: std::time::Duration = std::time::Duration::from_secs(10);

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(registries, add))
        .routes(routes!(test))
        .routes(routes!(remove))
}

/// A registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryShown {
    name: String,
    /// Without the password.
    url: String,
    state: LineState,
    /// Why it is down.
    problem: Option<String>,
    /// Whether it was added while the console ran, and can be removed.
    is_added: bool,
    /// How many jobs it has, if it was looked at.
    job_count: Option<usize>,
    /// What whoever asks may there.
    role: Option<Role>,
}

impl RegistryShown {
    fn new(place: &Place, who: &Who) -> Self {
        let (state, problem) = place.state();
        Self {
            name: place.name.clone(),
            url: place.url.to_string(),
            state,
            problem,
            is_added: place.is_added,
            job_count: place.mirror.seen(|seen| seen.as_of.map(|_| seen.jobs.len())),
            role: who.role(&place.name),
        }
    }
}

/// The registries whoever asks may look at.
#[utoipa::path(get, path = "/registries", tag = "registries", responses((status = 200, body = [RegistryShown]), (status = 401, body = Problem)))]
async fn registries(State(shared): State<Shared>, who: Who) -> Json<Vec<RegistryShown>> {
    let all = shared.registries.all();
    let seen = all.iter().filter(|place| who.role(&place.name).is_some());
    Json(seen.map(|place| RegistryShown::new(place, &who)).collect())
}

/// A registry to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegistryAsked {
    name: String,
    /// `zookeeper://[user:password@]host[:2181],…/namespace`, to hosts on the list alone.
    url: String,
}

/// Adds a registry for good. Takes an admin of `*`, and that it is switched on.
#[utoipa::path(post, path = "/registries", tag = "registries", request_body = RegistryAsked,
    responses((status = 201, body = RegistryShown), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add(
    State(shared): State<Shared>,
    who: Who,
    Body(asked): Body<RegistryAsked>,
) -> Result<Response, Problem> {
    let place = add_registry(&shared, &who, &asked.name, &asked.url)?;
    Ok((StatusCode::CREATED, Json(RegistryShown::new(&place, &who))).into_response())
}

/// Adds a registry, and writes down that it was added or not.
pub(crate) fn add_registry(
    shared: &Shared,
    who: &Who,
    name: &str,
    url: &str,
) -> Result<Arc<Place>, Problem> {
    who.needs(Role::Admin)?;
    let added = shared.registries.add(name, url);
    let told = added.as_ref().map(|place| json!({ "url": place.url.to_string() }));
    who.note(shared, "registry.add", name, Value::Null, told);
    added
}

/// A registry to be tried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegistryTried {
    url: String,
}

/// How that went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RegistryTrial {
    is_reachable: bool,
    /// How many jobs are there.
    job_count: Option<usize>,
    problem: Option<String>,
}

/// Tries a registry without adding it. Takes an admin of `*`, and that adding is switched on.
#[utoipa::path(post, path = "/registries/test", tag = "registries", request_body = RegistryTried,
    responses((status = 200, body = RegistryTrial), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn test(
    State(shared): State<Shared>,
    who: Who,
    Body(asked): Body<RegistryTried>,
) -> Result<Json<RegistryTrial>, Problem> {
    who.needs(Role::Admin)?;
    let url = shared.registries.check(&asked.url)?;
    who.note(&shared, "registry.test", &url.to_string(), Value::Null, Ok(Value::Null));
    Ok(Json(try_out(&url, &shared).await))
}

async fn try_out(url: &RegistryUrl, shared: &Shared) -> RegistryTrial {
    let look = async {
        let admin = Admin::connect(url).await?;
        let names = admin.job_names().await;
        admin.close().await;
        Ok::<_, AdminError>(names?.len())
    };
    let clock = &shared.clock;
    let looked = tokio::select! {
        looked = look => looked.map_err(Problem::from),
        () = clock.sleep_until(clock.monotonic() + TRIED) => Err(Problem::new(Code::Unreachable, "it does not answer")),
    };
    match looked {
        Ok(count) => RegistryTrial { is_reachable: true, job_count: Some(count), problem: None },
        Err(problem) => {
            RegistryTrial { is_reachable: false, job_count: None, problem: Some(problem.detail) }
        }
    }
}

/// Takes a registry away that was added, and its history if that was added, too. Nothing in them changes. Takes an admin of `*`.
#[utoipa::path(delete, path = "/registries/{name}", tag = "registries", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    State(shared): State<Shared>,
    who: Who,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    remove_registry(&shared, &who, &name)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a registry away, and its history, and writes down that they were or not.
pub(crate) fn remove_registry(shared: &Shared, who: &Who, name: &str) -> Result<(), Problem> {
    who.needs(Role::Admin)?;
    let removed = shared.registries.remove(name).and_then(|()| shared.books.forget(name));
    let told = removed.as_ref().map(|()| Value::Null);
    who.note(shared, "registry.remove", name, Value::Null, told);
    removed
}
