//! Four systems, one shard each, every two seconds. Start it several times, on one machine or on many: the instances share the shards.
//!
//! ```sh
//! make run                                                # in one terminal: a registry
//! cargo run -p elasticjob --example four_systems          # in as many others as you like; ctrl-C drains and leaves
//! ```

use elasticjob::{
    job::{Job, Shard},
    node::Node,
};

async fn settle(shard: Shard) -> Result<(), std::io::Error> {
    eprintln!(
        "{}  shard {} of {}: {}",
        shard.due_at,
        shard.item,
        shard.total,
        shard.parameter.as_deref().unwrap_or("?")
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let job = Job::named("four-systems")?
        .cron("0/2 * * * * ?")?
        .shards(4)
        .items("0=RDP, 1=CORE, 2=SIMS, 3=ECIF")?;
    Node::join(&url).job(job, settle).run().await?;
    Ok(())
}
