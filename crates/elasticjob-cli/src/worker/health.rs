//! How a worker tells whoever started it how it goes.

use std::sync::{Arc, PoisonError};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    routing::get,
};
use elasticjob::runtime::Tasks;
use tokio::net::TcpListener;

use super::{Shown, metrics::Metrics};

/// The content type of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers `/healthz` (the process lives), `/readyz` (every job of it can run what is due) and `/metrics` (what it has done).
pub(super) fn serve(listener: TcpListener, shown: Shown, metrics: Arc<Metrics>, tasks: &mut Tasks) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "health is told");
    }
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(shown): State<Shown>| async move {
                ([(header::CONTENT_TYPE, TEXT_FORMAT)], page(&shown, &metrics))
            }),
        )
        .with_state(shown);
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "health is not told any more");
        }
    });
}

fn page(shown: &Shown, metrics: &Metrics) -> String {
    let running = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let history = running.as_ref().and_then(|running| running.recording());
    metrics.text(running.as_ref().is_some_and(|running| running.is_ready()), history)
}

async fn ready(State(shown): State<Shown>) -> (StatusCode, &'static str) {
    if is_ready(&shown) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

fn is_ready(shown: &Shown) -> bool {
    let running = shown.lock().unwrap_or_else(PoisonError::into_inner);
    running.as_ref().is_some_and(|running| running.is_ready())
}
