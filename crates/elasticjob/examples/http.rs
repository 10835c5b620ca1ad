//! A job that is an HTTP request: the work is done by a service elsewhere, in this example by the same program.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example http            # in another; ctrl-C drains and leaves
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`, and `LISTEN` to use another address for the
//! service than `127.0.0.1:8081`.

use axum::{Router, http::HeaderMap, routing::post};
use elasticjob::{Job, Node, job::Overwrite, runtime::Tasks};

/// The service. A header names the shard to settle, as JSON.
async fn settle(headers: HeaderMap, body: String) -> &'static str {
    let context = headers.get("shardingContext").and_then(|value| value.to_str().ok());
    eprintln!("asked to {body}: {}", context.unwrap_or("?"));
    "settled"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let listen = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8081".into());
    let listener = tokio::net::TcpListener::bind(&listen).await?;
    let address = listener.local_addr()?;
    let mut tasks = Tasks::new();
    tasks.spawn(async move {
        let service = Router::new().route("/orders", post(settle));
        if let Err(error) = axum::serve(listener, service).await {
            eprintln!("the service ended: {error}");
        }
    });

    let job = Job::named("http")?
        .cron("0/2 * * * * ?")?
        .shards(2)
        .items("0=Beijing,1=Shanghai")?
        .prop("http.uri", format!("http://{address}/orders"))?
        .prop("http.method", "POST")?
        .prop("http.data", "settle")?
        .prop("http.content.type", "text/plain")?
        // The local configuration wins, because the address may change with every start.
        .overwrite(Overwrite::LocalWins);
    Node::join(&url).http(job).run().await?;
    Ok(())
}
