//! How the console tells whoever started it how it goes. Nobody has to log in for it, so it says no more than that.

use axum::{Router, extract::State, http::StatusCode, routing::get};

use super::state::Shared;

/// `/healthz`: the process lives. `/readyz`: it also can write down what is changed.
pub(crate) fn router() -> Router<Shared> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

async fn ready(State(shared): State<Shared>) -> (StatusCode, &'static str) {
    // Whoever has made room finds out by asking.
    if shared.audit.is_behind() {
        shared.audit.keep().await;
    }
    match shared.audit.problem() {
        None => (StatusCode::OK, "ready\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the audit file cannot be written\n"),
    }
}
