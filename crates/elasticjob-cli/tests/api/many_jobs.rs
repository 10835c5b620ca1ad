//! A registry with many jobs.

use elasticjob::{
    Job,
    registry::{Create, Op, ensure_path},
    runtime::{Clock, SystemClock},
};

use crate::{console::Console, scene::Scene};

const JOBS: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_jobs_are_listed_without_the_registry() {
    let scene = Scene::with("").await;
    let registry = scene.connect().await;
    let namespace = registry.namespace().path().clone();
    ensure_path(&*registry, &namespace).await.unwrap();
    let numbers: Vec<usize> = (0..JOBS).collect();
    for batch in numbers.chunks(500) {
        let ops = batch.iter().flat_map(|number| {
            let name = format!("job-{number:05}");
            let job = Job::named(&name).unwrap().cron("0 0/5 * * * ?").unwrap().shards(4);
            let root = namespace.join(&name).unwrap();
            let config = root.join("config").unwrap();
            [
                Op::Create(Create::persistent(&root, "")),
                Op::Create(Create::persistent(&config, job.to_yaml())),
            ]
        });
        registry.multi(ops.collect()).await.unwrap();
    }
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let began = SystemClock.monotonic();
    admin.wait_until("/api/v1/r/shop/jobs", |page| page["total"] == JOBS);
    let first = SystemClock.monotonic().saturating_since(began);

    // With the registry stopped, every list comes from the mirror.
    scene.registry.unwrap().shutdown().await.unwrap();
    let mut times = Vec::new();
    for page in 1..=50 {
        let began = SystemClock.monotonic();
        let page = admin.data(&format!(
            "/api/v1/r/shop/jobs?sort=nextFireTime&search=job&page={page}&pageSize=50"
        ));
        times.push(SystemClock.monotonic().saturating_since(began));
        assert_eq!(page["total"], JOBS);
    }
    times.sort_unstable();
    eprintln!(
        "{JOBS} jobs: first list {first:?}, then {:?} (median), {:?} (worst of {})",
        times[25],
        times[49],
        times.len()
    );
}
