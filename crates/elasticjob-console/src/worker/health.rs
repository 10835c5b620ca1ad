//! How a worker tells whoever started it how it goes.

use std::sync::PoisonError;

use axum::{Router, extract::State, http::StatusCode, routing::get};
use elasticjob::{node::Running, runtime::Tasks};
use tokio::net::TcpListener;

use super::Shown;

/// Answers `/healthz` (the process lives) and `/readyz` (every job of it can run what is due).
pub(super) fn serve(listener: TcpListener, shown: Shown, tasks: &mut Tasks) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "health is told");
    }
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(shown);
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "health is not told any more");
        }
    });
}

async fn ready(State(shown): State<Shown>) -> (StatusCode, &'static str) {
    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.as_ref().is_some_and(Running::is_ready) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}
