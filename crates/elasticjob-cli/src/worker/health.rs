//! Health checks and metrics over HTTP.

use std::sync::{Arc, PoisonError};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    routing::get,
};
use elasticjob::runtime::Tasks;
use tokio::net::TcpListener;

use super::{SharedNode, metrics::Metrics};

/// The content type of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/healthz` (the process is alive), `/readyz` (every job can run its fires) and `/metrics` (Prometheus).
pub(super) fn serve(
    listener: TcpListener,
    shared_node: SharedNode,
    metrics: Arc<Metrics>,
    tasks: &mut Tasks,
) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "health endpoint listening");
    }
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(shared_node): State<SharedNode>| async move {
                ([(header::CONTENT_TYPE, TEXT_FORMAT)], page(&shared_node, &metrics))
            }),
        )
        .with_state(shared_node);
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "health endpoint failed");
        }
    });
}

fn page(shared_node: &SharedNode, metrics: &Metrics) -> String {
    let running = shared_node.lock().unwrap_or_else(PoisonError::into_inner);
    let history = running.as_ref().and_then(|running| running.recording());
    metrics.text(running.as_ref().is_some_and(|running| running.is_ready()), history)
}

async fn ready(State(shared_node): State<SharedNode>) -> (StatusCode, &'static str) {
    if is_ready(&shared_node) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

fn is_ready(shared_node: &SharedNode) -> bool {
    let running = shared_node.lock().unwrap_or_else(PoisonError::into_inner);
    running.as_ref().is_some_and(|running| running.is_ready())
}
