//! A job without a cron: it runs when somebody asks for it. Here the program itself asks, as the console does. It waits for its
//! shards and ends.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example one_off         # in another
//! ```
//!
//! `ELASTICJOB_REGISTRY` is another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use std::{error::Error, time::Duration};

use elasticjob::{Job, Node, Shard, admin::Admin, coordination::trigger::TriggerRequest, registry};
use tokio::sync::mpsc;

const SHARDS: u32 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let job = Job::named("one-off")?.shards(SHARDS).items("0=2024,1=2025,2=2026")?;
    let name = job.name.clone();
    let (tell, mut ended) = mpsc::unbounded_channel();
    let archive = move |shard: Shard| {
        let tell = tell.clone();
        async move {
            eprintln!("the orders of {} are archived", shard.parameter.unwrap_or_default());
            tell.send(shard.item)
        }
    };
    let node = Node::join(&url).job(job, archive).start().await?;
    let registry = registry::connect(&url.parse()?).await?;

    Admin::on(registry.clone()).trigger(&name, TriggerRequest::default()).await?;
    for _ in 0..SHARDS {
        // Other instances may have their share: then this one gets fewer.
        if tokio::time::timeout(Duration::from_secs(30), ended.recv()).await.is_err() {
            eprintln!("the rest ran elsewhere");
            break;
        }
    }

    registry.close().await;
    node.stop().await;
    eprintln!("done");
    Ok(())
}
