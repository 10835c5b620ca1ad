//! Jobs inside a web service: one process, one shutdown that drains both. The service stops accepting requests first, then the node lets running
//! shards finish.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example embedded        # in another; ctrl-C drains and leaves
//! curl http://127.0.0.1:8080/settled                # in a third
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`, and `LISTEN` to use another address for the
//! service than `127.0.0.1:8080`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{Router, extract::State, routing::get};
use elasticjob::{Job, Node, Shard};
use tokio::signal::unix::{SignalKind, signal};

/// The state that the service and the job share.
#[derive(Clone, Default)]
struct Shop {
    settled: Arc<AtomicU64>,
}

async fn settled(State(shop): State<Shop>) -> String {
    format!("{} orders settled\n", shop.settled.load(Ordering::Relaxed))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let listen = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".into());
    let shop = Shop::default();

    let job = Job::named("embedded")?.cron("* * * * * ?")?.shards(2);
    let settle = {
        let shop = shop.clone();
        move |shard: Shard| {
            let shop = shop.clone();
            async move {
                shop.settled.fetch_add(1, Ordering::Relaxed);
                eprintln!("{}  shard {} settled an order", shard.due_at, shard.item);
                Ok::<(), std::io::Error>(())
            }
        }
    };
    let (mut interrupted, mut terminated) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let jobs = Node::join(&url).job(job, settle).start().await?;

    let listener = tokio::net::TcpListener::bind(&listen).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let service = Router::new().route("/settled", get(settled)).with_state(shop);
    axum::serve(listener, service)
        .with_graceful_shutdown(async move {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        })
        .await?;
    eprintln!("the service is drained");
    jobs.stop().await;
    eprintln!("the jobs are drained");
    Ok(())
}
