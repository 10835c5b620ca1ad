//! The registries of the console.
//!
//! * [`catalog`] — registries and histories from the configuration, and those added by an admin.
//! * [`connections`] — the connection to each registry; [`live`] — its event stream.
//! * [`routes`] — list, test, add and remove registries; [`doctor_routes`] — examine one.

pub(crate) mod catalog;
pub(crate) mod connections;
pub(crate) mod doctor_routes;
#[cfg(test)]
mod golden;
pub(crate) mod live;
pub(crate) mod routes;

use utoipa_axum::router::OpenApiRouter;

use crate::http::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(routes::router())
        .merge(live::router())
        .merge(doctor_routes::router())
}
