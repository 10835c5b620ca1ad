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

use super::stores::{Book, opened};
use crate::{
    auth::{accounts::Role, who::Who},
    http::{
        extract::{Body, Path},
        problem::Problem,
        state::Shared,
    },
    registries::connections::unknown,
};

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(histories, add_history))
        .routes(routes!(test_history))
        .routes(routes!(remove_history))
}

/// The history of a registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryShown {
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

impl HistoryShown {
    fn new(book: &Book) -> Self {
        let (is_open, problem) = book.state();
        Self {
            registry: book.name.clone(),
            url: book.url.to_string(),
            is_open,
            problem,
            is_added: book.is_added,
        }
    }
}

/// The histories of the registries whoever asks may look at.
#[utoipa::path(get, path = "/histories", tag = "history", responses((status = 200, body = [HistoryShown]), (status = 401, body = Problem)))]
async fn histories(State(shared): State<Shared>, who: Who) -> Json<Vec<HistoryShown>> {
    let all = shared.books.all();
    let seen = all.iter().filter(|book| who.role(&book.name).is_some());
    Json(seen.map(|book| HistoryShown::new(book)).collect())
}

/// A history to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistoryAsked {
    /// Whose it is.
    registry: String,
    /// `postgres://user:password@host:5432/database` or `mysql://…`, on hosts on the list alone.
    url: String,
}

/// Adds the history of a registry for good. Takes an admin of `*`, and that it is switched on.
#[utoipa::path(post, path = "/histories", tag = "history", request_body = HistoryAsked,
    responses((status = 201, body = HistoryShown), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add_history(
    State(shared): State<Shared>,
    who: Who,
    Body(asked): Body<HistoryAsked>,
) -> Result<Response, Problem> {
    let book = add(&shared, &who, &asked.registry, &asked.url)?;
    Ok((StatusCode::CREATED, Json(HistoryShown::new(&book))).into_response())
}

/// Adds a history, and writes down that it was added or not.
pub(crate) fn add(
    shared: &Shared,
    who: &Who,
    registry: &str,
    url: &str,
) -> Result<std::sync::Arc<Book>, Problem> {
    who.needs(Role::Admin)?;
    let added = match shared.registries.get(registry) {
        Some(_) => shared.books.add(registry, url),
        None => Err(unknown(registry)),
    };
    let told = added.as_ref().map(|book| json!({ "url": book.url.to_string() }));
    who.note(shared, "history.add", registry, Value::Null, told);
    added
}

/// A history to be tried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistoryTried {
    url: String,
}

/// How that went.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryTrial {
    pub(crate) is_reachable: bool,
    /// How many jobs have runs there.
    job_count: Option<usize>,
    problem: Option<String>,
}

/// Tries a history without adding it; what is missing in the database is made there. Takes an admin of `*`, and that adding is switched on.
#[utoipa::path(post, path = "/histories/test", tag = "history", request_body = HistoryTried,
    responses((status = 200, body = HistoryTrial), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn test_history(
    State(shared): State<Shared>,
    who: Who,
    Body(asked): Body<HistoryTried>,
) -> Result<Json<HistoryTrial>, Problem> {
    Ok(Json(try_out(&shared, &who, &asked.url).await?))
}

/// Tries a history, and writes down that it was tried.
pub(crate) async fn try_out(
    shared: &Shared,
    who: &Who,
    url: &str,
) -> Result<HistoryTrial, Problem> {
    who.needs(Role::Admin)?;
    let url = shared.books.check(url)?;
    who.note(shared, "history.test", &url.to_string(), Value::Null, Ok(Value::Null));
    let look = async {
        let store = opened(&url, &*shared.clock).await?;
        let jobs = store.jobs().await;
        store.close().await;
        Ok::<_, Problem>(jobs?.len())
    };
    Ok(match look.await {
        Ok(count) => HistoryTrial { is_reachable: true, job_count: Some(count), problem: None },
        Err(problem) => {
            HistoryTrial { is_reachable: false, job_count: None, problem: Some(problem.detail) }
        }
    })
}

/// Takes the history of a registry away that was added. The database stays as it is. Takes an admin of `*`.
#[utoipa::path(delete, path = "/histories/{registry}", tag = "history", params(("registry" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove_history(
    State(shared): State<Shared>,
    who: Who,
    Path(registry): Path<String>,
) -> Result<StatusCode, Problem> {
    remove(&shared, &who, &registry)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a history away, and writes down that it was or not.
pub(crate) fn remove(shared: &Shared, who: &Who, registry: &str) -> Result<(), Problem> {
    who.needs(Role::Admin)?;
    let removed = shared.books.remove(registry);
    let told = removed.as_ref().map(|()| Value::Null);
    who.note(shared, "history.remove", registry, Value::Null, told);
    removed
}
