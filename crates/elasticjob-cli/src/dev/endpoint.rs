//! What the demonstration's HTTP job asks.

use std::net::Ipv4Addr;

use axum::{Router, http::HeaderMap, routing::get};
use elasticjob::runtime::Tasks;
use serde_json::Value;
use tokio::net::TcpListener;

use super::voice::tell;
use crate::error::{Code, Error};

/// Answers on a free port of this machine; says where.
pub(super) async fn serve(tasks: &mut Tasks) -> Result<String, Error> {
    let cannot = |error| Error::new(Code::Internal, format!("cannot listen on 127.0.0.1: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let router = Router::new().route("/ping", get(pong));
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the endpoint does not answer any more");
        }
    });
    Ok(format!("http://{address}/ping"))
}

async fn pong(headers: HeaderMap) -> &'static str {
    let context = headers.get("shardingContext").and_then(|context| context.to_str().ok());
    let context: Option<Value> = context.and_then(|context| serde_json::from_str(context).ok());
    if let Some(item) = context.as_ref().and_then(|context| context["shardingItem"].as_u64()) {
        tell(&format!("ping: {item}  is a request, and it is answered"));
    }
    "pong\n"
}
