//! Ten thousand jobs as workers leave them in a registry, and their last runs.

use std::{path::Path as Folder, sync::Arc, time::Duration};

use bytes::Bytes;
use elasticjob::{
    history::{AttemptEnded, AttemptStarted, Event, HistoryUrl, Sink, Store},
    job::{FencingToken, Fire, Job, Outcome, Shard},
    registry::{Create, ExpectedVersion, Op, Path, Registry, ensure_path},
    runtime::{Clock, SystemClock},
};
use jiff::SignedDuration;

use crate::BoxError;

/// Jobs per request.
const BATCH: usize = 40;
/// Number of servers, with two workers each.
const SERVERS: usize = 50;
/// Runs of each job in the history store.
const RUNS: usize = 5;
const SHARDS: u32 = 3;
const AREAS: [&str; 5] = ["settle", "report", "import", "mail", "clean"];
const LABELS: [&str; 4] = ["billing", "orders", "warehouse", "people"];
const CRONS: [&str; 5] =
    ["0/5 * * * * ?", "0 0/5 * * * ?", "0 30 2 * * ?", "0 0 * * * ?", "0 0 8 ? * MON-FRI"];

fn name(number: usize) -> String {
    format!("job-{number:05}-{}", AREAS[number % AREAS.len()])
}

fn job(number: usize) -> Result<Job, BoxError> {
    let mut job = Job::named(&name(number))?
        .cron(CRONS[number % CRONS.len()])?
        .shards(SHARDS)
        .label(LABELS[number % LABELS.len()])
        .description(format!("job of {} for shop {}", AREAS[number % AREAS.len()], number / 100));
    job.disabled = number % 50 == 49;
    Ok(job)
}

fn instance(number: usize) -> (String, String) {
    let address = format!("10.0.{}.{}", number % SERVERS / 10, 10 + number % SERVERS);
    let id = format!("{address}@-@{}-{:08x}", 4_000 + number % 2, number % (2 * SERVERS));
    (address, id)
}

/// Creates the jobs, each with assigned shards and two instances; some jobs have no live instance.
pub(super) async fn create_jobs(registry: &dyn Registry, jobs: usize) -> Result<(), BoxError> {
    let namespace = registry.namespace().path().clone();
    ensure_path(registry, &namespace).await?;
    let numbers: Vec<usize> = (0..jobs).collect();
    for batch in numbers.chunks(BATCH) {
        let mut ops = Vec::new();
        for number in batch {
            write(&namespace, *number, &mut ops)?;
        }
        registry.multi(ops).await?;
    }
    Ok(())
}

fn write(namespace: &Path, number: usize, ops: &mut Vec<Op>) -> Result<(), BoxError> {
    let root = namespace.join(name(number))?;
    let mut put = |path: &str, data: String| -> Result<(), BoxError> {
        let path = if path.is_empty() { root.clone() } else { root.join(path)? };
        ops.push(Op::Create(Create::persistent(&path, Bytes::from(data))));
        Ok(())
    };
    put("", ["", "SCRIPT", "HTTP", "com.acme.shop.OrderJob"][number % 4].to_owned())?;
    let config = match number % 1_000 {
        999 => "jobName: broken\nshardingTotalCount: many\n".to_owned(),
        _ => job(number)?.to_yaml(),
    };
    put("config", config)?;
    put("servers", String::new())?;
    put("instances", String::new())?;
    put("sharding", String::new())?;
    let is_alive = number % 40 != 39;
    for member in 0..2 {
        let (address, id) = instance(number + member * 7);
        put(&format!("servers/{address}"), String::new())?;
        if is_alive {
            let data = format!("jobInstanceId: {id}\nserverIp: {address}\n");
            put(&format!("instances/{id}"), data)?;
        }
    }
    for shard in 0..SHARDS {
        let (_, id) = instance(number + shard as usize % 2 * 7);
        put(&format!("sharding/{shard}"), String::new())?;
        put(&format!("sharding/{shard}/instance"), id)?;
    }
    Ok(())
}

/// Creates a history store with the last runs; one of fifty failed.
pub(super) async fn create_history(folder: &Folder, jobs: usize) -> Result<HistoryUrl, BoxError> {
    let url = HistoryUrl::sqlite(folder.join("history.db"));
    let store = Store::open(&url).await?;
    let now = SystemClock.now();
    let numbers: Vec<usize> = (0..jobs * RUNS).collect();
    for batch in numbers.chunks(500) {
        let events: Result<Vec<Event>, BoxError> = batch
            .iter()
            .map(|number| {
                let job = job(number % jobs)?;
                let ago = SignedDuration::from_secs(60 + 300 * i64::try_from(number / jobs)?);
                let fire = Fire::scheduled(job.name.clone(), now - ago);
                let (_, id) = instance(*number);
                let task = format!("{}@-@0@-@READY@-@{id}", job.name).parse()?;
                let shard = Shard::of(&job, &fire, task, 0, FencingToken::new(1));
                let at = fire.due_at + SignedDuration::from_millis(3);
                let started = Arc::new(AttemptStarted::of(&shard, "machine".into(), at));
                let (outcome, message) = match number % 50 {
                    0 => (Outcome::Failed, Some("no such order")),
                    _ => (Outcome::Succeeded, None),
                };
                let took = SignedDuration::from_millis(20 + i64::try_from(number * 31 % 400)?);
                Ok(Event::Ended(AttemptEnded {
                    started,
                    at: at + took,
                    outcome,
                    message: message.map(ToOwned::to_owned),
                }))
            })
            .collect();
        store.store(&events?).await?;
    }
    store.close().await;
    Ok(url)
}

/// Starts and ends shards, a thousand per second, for as long as this is polled.
pub(super) async fn change_continuously(
    registry: &dyn Registry,
    jobs: usize,
) -> Result<(), BoxError> {
    let namespace = registry.namespace().path().clone();
    for round in 0.. {
        let paths: Result<Vec<Path>, BoxError> = (0..BATCH + 10)
            .map(|index| {
                let number = (round / 2 * 53 + index * 17) % jobs;
                Ok(namespace.join(format!("{}/sharding/0/running", name(number)))?)
            })
            .collect();
        let ops = paths?.into_iter().map(|path| match round % 2 {
            0 => Op::Create(Create::persistent(&path, "")),
            _ => Op::Delete { path, expected: ExpectedVersion::Any },
        });
        registry.multi(ops.collect()).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
