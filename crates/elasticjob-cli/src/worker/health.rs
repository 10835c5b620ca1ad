//! Health checks and metrics over HTTP.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    routing::get,
};
use elasticjob::runtime::Tasks;
use tokio::net::TcpListener;

use super::{metrics::Metrics, shared_node::SharedNode};

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
    let is_ready = shared_node.is_ready();
    shared_node.with_recording(|history| metrics.text(is_ready, history))
}

async fn ready(State(shared_node): State<SharedNode>) -> (StatusCode, &'static str) {
    if shared_node.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}
