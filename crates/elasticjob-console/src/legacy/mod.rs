//! The ancestor's paths, so that scripts written for it work: at `/api`, in the registry that each user has chosen for themselves, else the first.
//!
//! Two generations answer here. With the header `Access-Token` (which `POST /api/login` gives) it is 3.x: every answer is an envelope, with status 200 whatever
//! happened. Without, it is 2.x: bare shapes, and `DELETE …/disable` enables; whoever asks is recognised as everywhere else, and errors are problem details.
//! A GET that changes something is not done for a cookie: any page could make a browser send it.

mod history;
mod jobs;
mod login;
mod registry_center;
mod servers;
mod envelope;

use axum::{
    Router,
    routing::{get, post, put},
};

pub(crate) use self::registry_center::Choices;
use crate::http::state::Shared;

pub(crate) fn router() -> Router<Shared> {
    Router::new().merge(consoles()).merge(jobs()).merge(servers()).merge(history())
}

fn consoles() -> Router<Shared> {
    Router::new()
        .route("/api/login", post(login::login))
        .route("/api/registry-center", axum::routing::delete(registry_center::remove))
        .route("/api/registry-center/load", get(registry_center::load))
        .route("/api/registry-center/activated", get(registry_center::activated))
        .route("/api/registry-center/add", post(registry_center::add))
        .route("/api/registry-center/connect", post(registry_center::connect))
}

fn jobs() -> Router<Shared> {
    Router::new()
        .route("/api/jobs", get(jobs::list))
        .route("/api/jobs/count", get(jobs::count))
        .route("/api/jobs/getAllJobsBriefInfo", get(jobs::list))
        .route("/api/jobs/config", put(jobs::put_config))
        .route("/api/jobs/config/{job}", get(jobs::config).delete(jobs::remove))
        .route("/api/jobs/{job}/trigger", post(jobs::trigger).get(jobs::trigger_by_get))
        .route("/api/jobs/{job}/disable", post(jobs::disable).delete(jobs::enable))
        .route("/api/jobs/{job}/enable", post(jobs::enable))
        .route("/api/jobs/{job}/shutdown", post(jobs::shutdown))
        .route("/api/jobs/{job}/sharding", get(jobs::sharding))
        .route(
            "/api/jobs/{job}/sharding/{item}/disable",
            post(jobs::disable_shard).delete(jobs::enable_shard),
        )
        .route("/api/jobs/{job}/sharding/{item}/enable", post(jobs::enable_shard))
}

fn servers() -> Router<Shared> {
    Router::new()
        .route("/api/servers", get(servers::list))
        .route("/api/servers/count", get(servers::count))
        .route("/api/servers/getAllServersBriefInfo", get(servers::list))
        .route("/api/servers/{server}", axum::routing::delete(servers::remove))
        .route("/api/servers/{server}/disable", post(servers::disable).delete(servers::enable))
        .route("/api/servers/{server}/enable", post(servers::enable))
        .route("/api/servers/{server}/shutdown", post(servers::shutdown))
        .route("/api/servers/{server}/jobs", get(servers::jobs))
        .route("/api/servers/{server}/jobs/{job}", axum::routing::delete(servers::remove_in))
        .route(
            "/api/servers/{server}/jobs/{job}/disable",
            post(servers::disable_in).delete(servers::enable_in),
        )
        .route("/api/servers/{server}/jobs/{job}/enable", post(servers::enable_in))
        .route("/api/servers/{server}/jobs/{job}/shutdown", post(servers::shutdown_in))
        .route("/api/servers/{server}/{port}/jobs/{job}/dump", post(servers::dump))
}

fn history() -> Router<Shared> {
    Router::new()
        .route("/api/event-trace/execution", post(history::executions))
        .route("/api/event-trace/execution/jobNames/{prefix}", get(history::executed_jobs))
        .route("/api/event-trace/execution/ip/{prefix}", get(history::addresses))
        .route("/api/event-trace/status", post(history::traces))
        .route("/api/event-trace/status/jobNames/{prefix}", get(history::traced_jobs))
        .route("/api/data-source", axum::routing::delete(history::remove))
        .route("/api/data-source/drivers", get(history::drivers))
        .route("/api/data-source/load", get(history::load))
        .route("/api/data-source/activated", get(history::activated))
        .route("/api/data-source/add", post(history::add))
        .route("/api/data-source/connectTest", post(history::test))
        .route("/api/data-source/connect", post(history::connect))
}
