//! The paths of ElasticJob's own consoles at `/api`, so that scripts written for them work. They act on the registry that each user has selected,
//! else the first.
//!
//! Two generations share the paths. With the header `Access-Token` (from `POST /api/login`) it is 3.x: every response is an envelope with status
//! 200, whatever happened. Without it is 2.x: bare shapes, and `DELETE …/disable` enables; the caller is authenticated as everywhere else, and
//! errors are problem details. A GET that changes something is refused for a cookie, and for another site: any page could make a browser send it.

mod envelope;
mod history;
mod jobs;
mod login;
mod registry_center;
mod servers;

use axum::{
    Router,
    routing::{delete, get, post, put},
};

pub(crate) use self::{envelope::ResponseFormat, registry_center::SelectedRegistries};
use crate::http::{handler::boxed, state::AppState};

pub(crate) fn router() -> Router<AppState> {
    Router::new().merge(consoles()).merge(jobs()).merge(servers()).merge(history())
}

fn consoles() -> Router<AppState> {
    Router::new()
        .route("/api/login", post(boxed(login::login)))
        .route("/api/registry-center", delete(boxed(registry_center::remove)))
        .route("/api/registry-center/load", get(boxed(registry_center::load)))
        .route("/api/registry-center/activated", get(boxed(registry_center::activated)))
        .route("/api/registry-center/add", post(boxed(registry_center::add)))
        .route("/api/registry-center/connect", post(boxed(registry_center::connect)))
}

fn jobs() -> Router<AppState> {
    Router::new()
        .route("/api/jobs", get(boxed(jobs::list)))
        .route("/api/jobs/count", get(boxed(jobs::count)))
        .route("/api/jobs/getAllJobsBriefInfo", get(boxed(jobs::list)))
        .route("/api/jobs/config", put(boxed(jobs::put_config)))
        .route("/api/jobs/config/{job}", get(boxed(jobs::config)).delete(boxed(jobs::remove)))
        .route(
            "/api/jobs/{job}/trigger",
            post(boxed(jobs::trigger)).get(boxed(jobs::trigger_by_get)),
        )
        .route("/api/jobs/{job}/disable", post(boxed(jobs::disable)).delete(boxed(jobs::enable)))
        .route("/api/jobs/{job}/enable", post(boxed(jobs::enable)))
        .route("/api/jobs/{job}/shutdown", post(boxed(jobs::shutdown)))
        .route("/api/jobs/{job}/sharding", get(boxed(jobs::sharding)))
        .route(
            "/api/jobs/{job}/sharding/{item}/disable",
            post(boxed(jobs::disable_shard)).delete(boxed(jobs::enable_shard)),
        )
        .route("/api/jobs/{job}/sharding/{item}/enable", post(boxed(jobs::enable_shard)))
}

fn servers() -> Router<AppState> {
    Router::new()
        .route("/api/servers", get(boxed(servers::list)))
        .route("/api/servers/count", get(boxed(servers::count)))
        .route("/api/servers/getAllServersBriefInfo", get(boxed(servers::list)))
        .route("/api/servers/{server}", delete(boxed(servers::remove)))
        .route(
            "/api/servers/{server}/disable",
            post(boxed(servers::disable)).delete(boxed(servers::enable)),
        )
        .route("/api/servers/{server}/enable", post(boxed(servers::enable)))
        .route("/api/servers/{server}/shutdown", post(boxed(servers::shutdown)))
        .route("/api/servers/{server}/jobs", get(boxed(servers::jobs)))
        .route("/api/servers/{server}/jobs/{job}", delete(boxed(servers::remove_in)))
        .route(
            "/api/servers/{server}/jobs/{job}/disable",
            post(boxed(servers::disable_in)).delete(boxed(servers::enable_in)),
        )
        .route("/api/servers/{server}/jobs/{job}/enable", post(boxed(servers::enable_in)))
        .route("/api/servers/{server}/jobs/{job}/shutdown", post(boxed(servers::shutdown_in)))
        .route("/api/servers/{server}/{port}/jobs/{job}/dump", post(boxed(servers::dump)))
}

fn history() -> Router<AppState> {
    Router::new()
        .route("/api/event-trace/execution", post(boxed(history::executions)))
        .route("/api/event-trace/execution/jobNames/{prefix}", get(boxed(history::executed_jobs)))
        .route("/api/event-trace/execution/ip/{prefix}", get(boxed(history::addresses)))
        .route("/api/event-trace/status", post(boxed(history::traces)))
        .route("/api/event-trace/status/jobNames/{prefix}", get(boxed(history::traced_jobs)))
        .route("/api/data-source", delete(boxed(history::remove)))
        .route("/api/data-source/drivers", get(boxed(history::drivers)))
        .route("/api/data-source/load", get(boxed(history::load)))
        .route("/api/data-source/activated", get(boxed(history::activated)))
        .route("/api/data-source/add", post(boxed(history::add)))
        .route("/api/data-source/connectTest", post(boxed(history::test)))
        .route("/api/data-source/connect", post(boxed(history::connect)))
}
