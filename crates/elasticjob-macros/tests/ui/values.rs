use elasticjob_macros::job;

struct Shard;

#[job(cron = "*/5 * * * *", shards = 0, items = "0=Beijing,Shanghai")]
async fn three_at_once(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(shards = 4294967296, retry_max_attempts = 0, reconcile_interval_minutes = -5)]
async fn numbers(_: Shard) -> Result<(), String> {
    Ok(())
}

fn main() {}
