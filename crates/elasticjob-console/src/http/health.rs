//! How the console tells whoever started it how it goes. Nobody has to log in for it, so it says no more than that.

use axum::{Router, extract::State, http::StatusCode, routing::get};

use super::state::AppState;

/// `/healthz`: the process lives. `/readyz`: it also can write down what is changed.
pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

async fn ready(State(app): State<AppState>) -> (StatusCode, &'static str) {
    // Whoever has made room finds out by asking.
    if app.audit.has_unwritten() {
        app.audit.flush().await;
    }
    match app.audit.problem() {
        None => (StatusCode::OK, "ready\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the audit file cannot be written\n"),
    }
}
