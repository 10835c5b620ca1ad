//! Shared test fixtures.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    execution::{AttemptContext, AttemptPolicy, Failure, Handler, RunSettings, Work},
    job::{FencingToken, Fire, Job, Retry, Shard},
    runtime::SystemClock,
};

/// Longer than any step takes; reached only by a test that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn job(props: &[(&str, &str)]) -> Job {
    let job =
        Job::named("报表").unwrap().shards(4).items("1=Shang hai").unwrap().parameter("<all>");
    props.iter().fold(job, |job, (key, value)| job.prop(*key, *value).unwrap())
}

pub(crate) fn shard(job: &Job, item: u32) -> Shard {
    let fire = Fire::scheduled(job.name.clone(), "2026-03-29T02:00:00Z".parse().unwrap());
    // Stragglers are recognized by this number, so every test uses another one.
    let process =
        std::process::id() + COUNT.fetch_add(100_000, std::sync::atomic::Ordering::Relaxed);
    let task = format!("{}@-@0,1,2,3@-@READY@-@10.0.0.7@-@{process}-9f86d081", job.name);
    Shard::of(job, &fire, task.parse().unwrap(), item, FencingToken::new(77))
}

static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

pub(crate) fn handler(work: &dyn Work, setting: &RunSettings<'_>) -> Arc<dyn Handler> {
    work.prepare(setting).unwrap()
}

pub(crate) async fn run(work: &dyn Work, job: &Job, item: u32) -> Result<(), Failure> {
    let handler = work.prepare(&RunSettings::of(job))?;
    tokio::time::timeout(PATIENCE, handler.run(shard(job, item))).await.expect("the handler ends")
}

pub(crate) fn around() -> AttemptContext {
    AttemptContext { clock: Arc::new(SystemClock), dice: Arc::new(|| 0.0), observer: Arc::new(()) }
}

pub(crate) fn rules(timeout: Duration) -> AttemptPolicy {
    AttemptPolicy { timeout: Some(timeout), retry: Retry::NEVER, grace: PATIENCE }
}
