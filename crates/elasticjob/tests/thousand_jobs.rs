//! A thousand jobs in one process, on a real ZooKeeper. The only test in its file, because it measures the whole process.

use std::{collections::BTreeMap, fs, sync::Arc, thread, time::Duration};

use elasticjob::{
    job::{Job, Shard},
    node::Node,
    registry::{ZooKeeperSettings, zookeeper},
};
use jiff::Timestamp;
use testbed::ZooKeeper;
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_mins(1);
const JOBS: usize = 1_000;
/// Twice the documented limit, because a test build takes more memory. `make bench` checks the limit itself.
const MAX_RESIDENT_KIB: usize = 2 * 50_000_000 / 1024;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn thousand_jobs_take_few_threads_and_little_memory() {
    let server = ZooKeeper::start();
    let settings = ZooKeeperSettings::new([server.address().into()], "shop".parse().unwrap());
    let registry = zookeeper::ZooKeeper::connect(&settings).await.unwrap();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut node = Node::on(Arc::new(registry));
    for number in 0..JOBS {
        let name = format!("job-{number}");
        let job = Job::named(&name).unwrap().cron("0/5 * * * * ?").unwrap().shards(4);
        let sender = sender.clone();
        node = node.job(job, move |shard: Shard| {
            let result = sender.send(shard.due_at);
            async move { result.map_err(|_| std::io::Error::other("receiver closed")) }
        });
    }

    let node = node.start().await.unwrap();
    // Two complete fires of all jobs.
    let mut fires: BTreeMap<Timestamp, usize> = BTreeMap::new();
    while fires.values().filter(|shards| **shards == 4 * JOBS).count() < 2 {
        let next = tokio::time::timeout(TIMEOUT, receiver.recv()).await;
        let due_at = next.unwrap_or_else(|_| panic!("timed out; fires so far: {fires:?}")).unwrap();
        *fires.entry(due_at).or_default() += 1;
    }
    let (threads, resident) = (status("Threads"), status("VmRSS"));
    node.stop().await;

    let processors = thread::available_parallelism().map_or(1, usize::from);
    assert!(threads <= 2 * processors + 4, "{threads} threads on {processors} processors");
    assert!(resident < MAX_RESIDENT_KIB, "{resident} KiB resident");
}

/// A number from `/proc/self/status`.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|line| line.0 == name).unwrap();
    value.trim().trim_end_matches(" kB").parse().unwrap()
}
