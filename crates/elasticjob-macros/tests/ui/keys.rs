use elasticjob_macros::job;

struct Shard;

#[job(crom = "0 0 2 * * ?", sharding_total_count = 3, colour = "red")]
async fn unknown(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(shards = 2, failover, shards = 3)]
async fn twice(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(cron = 5, shards = "3", failover = "yes", name, props = "a=b", java_listeners(a = "b"))]
async fn other_kinds_of_values(_: Shard) -> Result<(), String> {
    Ok(())
}

const NIGHTLY: &str = "0 0 2 * * ?";

#[job(cron = NIGHTLY)]
async fn not_written_out(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(failover shards = 3)]
async fn no_comma(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job("0 0 2 * * ?")]
async fn no_key(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(props(email.host: "mail"))]
async fn no_property(_: Shard) -> Result<(), String> {
    Ok(())
}

fn main() {}
