//! Jobs, shards, servers and instances, at `/api/v1/r/{registry}`.
//!
//! * [`routes`], [`overview`], [`search`] — lists, read from the mirror; [`shards`], [`servers`], [`instances`].
//! * [`config`] (its body: [`config_body`]), [`trigger`] (what is stored of it: [`triggers`]), [`bulk`] — changes; [`actions`] — changes that several routes share, each audited.
//! * [`tools`] — evaluate cron expressions and shard assignments without a registry.

pub(crate) mod actions;
pub(crate) mod bulk;
pub(crate) mod config;
pub(crate) mod config_body;
pub(crate) mod instances;
pub(crate) mod overview;
pub(crate) mod routes;
pub(crate) mod search;
pub(crate) mod servers;
pub(crate) mod shards;
pub(crate) mod tools;
pub(crate) mod trigger;
pub(crate) mod triggers;

use utoipa_axum::router::OpenApiRouter;

use crate::http::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(routes::router())
        .merge(bulk::router())
        .merge(overview::router())
        .merge(config::router())
        .merge(trigger::router())
        .merge(triggers::router())
        .merge(shards::router())
        .merge(servers::router())
        .merge(instances::router())
        .merge(tools::router())
}
