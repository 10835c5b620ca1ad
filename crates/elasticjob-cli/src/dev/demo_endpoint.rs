//! The HTTP endpoint that the demo job `ping` calls.

use std::net::Ipv4Addr;

use axum::{Router, http::HeaderMap, routing::get};
use elasticjob::runtime::Tasks;
use serde_json::Value;
use tokio::net::TcpListener;

use super::print::print_event;
use crate::error::{Code, Error};

/// Serves on a free local port; returns the URL.
pub(super) async fn serve(tasks: &mut Tasks) -> Result<String, Error> {
    let cannot = |error| Error::new(Code::Internal, format!("cannot listen on 127.0.0.1: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let router = Router::new().route("/ping", get(pong));
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "demo endpoint failed");
        }
    });
    Ok(format!("http://{address}/ping"))
}

async fn pong(headers: HeaderMap) -> &'static str {
    let context = headers.get("shardingContext").and_then(|context| context.to_str().ok());
    let context: Option<Value> = context.and_then(|context| serde_json::from_str(context).ok());
    if let Some(item) = context.as_ref().and_then(|context| context["shardingItem"].as_u64()) {
        print_event(&format!("ping: {item}  request answered"));
    }
    "pong\n"
}
