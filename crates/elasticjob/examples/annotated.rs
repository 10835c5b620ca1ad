//! Jobs declared at their functions. Start it several times: the instances share the shards.
//!
//! ```sh
//! make run                                      # in one terminal: a registry
//! cargo run -p elasticjob --example annotated   # in as many others as you like; ctrl-C drains and leaves
//! ```

use std::{io, thread, time::Duration};

use elasticjob::{Node, Shard};

/// Four systems, one shard each, every two seconds.
#[elasticjob::job(
    name = "four-systems-annotated",
    cron = "0/2 * * * * ?",
    shards = 4,
    items = "0=RDP, 1=CORE, 2=SIMS, 3=ECIF",
    failover
)]
async fn settle(shard: Shard) -> Result<(), io::Error> {
    eprintln!("{}  {}", shard.due_at, shard.parameter.as_deref().unwrap_or("?"));
    Ok(())
}

/// Blocking code is marked with `blocking` and runs on its own thread.
#[elasticjob::job(cron = "0/10 * * * * ?", blocking, timeout = "5s")]
fn count_slowly(shard: Shard) -> Result<(), io::Error> {
    for number in 1..=3 {
        if shard.cancel().is_cancelled() {
            break;
        }
        eprintln!("{}  {number}", shard.due_at);
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> elasticjob::Result<()> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    Node::join(&url).discover().run().await
}
