//! The registries a console looks at.
//!
//! * [`catalog`] — registries and histories that were named at the start or added by an admin.
//! * [`connections`] — the connection to each registry; [`live`] — the stream of what happens there.
//! * [`routes`] — registries listed, tried, added, removed; [`doctor_routes`] — what is wrong in one.

pub(crate) mod catalog;
pub(crate) mod connections;
pub(crate) mod doctor_routes;
#[cfg(test)]
mod golden;
pub(crate) mod live;
pub(crate) mod routes;

use utoipa_axum::router::OpenApiRouter;

use crate::http::state::Shared;

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(routes::router())
        .merge(live::router())
        .merge(doctor_routes::router())
}
