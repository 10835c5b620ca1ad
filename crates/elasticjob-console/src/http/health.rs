//! Health endpoints for process supervisors. They need no login and therefore reveal nothing but the state.

use axum::{Router, extract::State, http::StatusCode, routing::get};

use super::state::AppState;

/// Answered even when no connection is free for anything else.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

pub(super) fn is_probe(path: &str) -> bool {
    PROBES.contains(&path)
}

/// `/healthz`: the process is alive. `/readyz`: it can also write the audit file.
pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

async fn ready(State(app): State<AppState>) -> (StatusCode, &'static str) {
    // Retries the write, so that the probe turns healthy once the disk has room again.
    if app.audit.has_unwritten() {
        app.audit.flush().await;
    }
    match app.audit.problem() {
        None => (StatusCode::OK, "ready\n"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "the audit file cannot be written\n"),
    }
}
