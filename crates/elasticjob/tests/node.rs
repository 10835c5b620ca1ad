//! Nodes through their public interface, on the memory registry. Jobs fire every second, the shortest interval of a cron expression.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    job::{Job, Misfire, Shard},
    node::{Node, NodeError, NodeJob, RunningNode},
    registry::{Create, ExpectedVersion, Registry, SessionState, memory::MemoryServer},
    runtime::{CancelReason, SystemClock},
};
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(20);

async fn registry(server: &MemoryServer) -> Arc<dyn Registry> {
    Arc::new(server.join("shop".parse().unwrap()).await.unwrap())
}

fn job(shards: u32) -> Job {
    Job::named("settle")
        .unwrap()
        .cron("* * * * * ?")
        .unwrap()
        .shards(shards)
        .items("0=Beijing,1=Shanghai")
        .unwrap()
}

/// Starts a node whose handler sends every shard to the test.
async fn start_reporting_node(
    server: &MemoryServer,
    job: Job,
    host: u8,
    sender: mpsc::UnboundedSender<(u8, Shard)>,
) -> RunningNode {
    let handler = move |shard: Shard| {
        let sender = sender.clone();
        async move { sender.send((host, shard)).map_err(|_| std::io::Error::other("receiver closed")) }
    };
    let node = Node::on(registry(server).await).address([10, 0, 0, host].into()).job(job, handler);
    node.start().await.unwrap()
}

async fn next(receiver: &mut mpsc::UnboundedReceiver<(u8, Shard)>) -> (u8, Shard) {
    tokio::time::timeout(TIMEOUT, receiver.recv()).await.expect("a shard runs").expect("open")
}

#[tokio::test]
async fn two_nodes_share_every_fire_and_each_shard_runs_once() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let nodes = [
        start_reporting_node(&server, job(4), 1, sender.clone()).await,
        start_reporting_node(&server, job(4), 2, sender).await,
    ];

    // The first fires may be incomplete because of sharding; later fires are complete.
    let mut fires: BTreeMap<String, BTreeSet<(u8, u32)>> = BTreeMap::new();
    while fires.values().filter(|shards| shards.len() == 4).count() < 3 {
        let (host, shard) = next(&mut receiver).await;
        let first = fires.entry(shard.run.to_string()).or_default().insert((host, shard.item));
        assert!(first, "{} of {} ran twice on one node", shard.item, shard.run);
    }
    for node in nodes {
        node.stop().await;
    }

    for (run, shards) in &fires {
        let items: BTreeSet<u32> = shards.iter().map(|(_, item)| *item).collect();
        assert_eq!(items.len(), shards.len(), "a shard of {run} ran on both nodes: {shards:?}");
    }
    let last = fires.values().rfind(|shards| shards.len() == 4).unwrap();
    let hosts: BTreeSet<u8> = last.iter().map(|(host, _)| *host).collect();
    assert_eq!(hosts, BTreeSet::from([1, 2]), "both take part");
}

#[tokio::test]
async fn shard_carries_its_context_and_a_growing_token() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let node = start_reporting_node(&server, job(2), 1, sender).await;

    let mut tokens = Vec::new();
    while tokens.len() < 3 {
        let (_, shard) = next(&mut receiver).await;
        if shard.item == 1 {
            assert_eq!(shard.parameter.as_deref(), Some("Shanghai"));
            assert_eq!((shard.total.get(), shard.job.as_str()), (2, "settle"));
            tokens.push(shard.token);
        }
    }
    node.stop().await;

    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
}

#[tokio::test]
async fn running_node_reports_its_session_state() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = registry(&server).await;
    let node = Node::on(Arc::clone(&registry)).start().await.unwrap();

    let mut states = node.session().states();
    assert_eq!(states.next().await, Some(SessionState::Connected(registry.session().id())));
    node.stop().await;

    assert_eq!(states.next().await, None, "the session ends with the node");
}

#[tokio::test]
async fn panic_fails_its_shard_and_nothing_else() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let handler = move |shard: Shard| {
        let sender = sender.clone();
        async move {
            sender.send(shard.item).map_err(|_| std::io::Error::other("receiver closed"))?;
            assert_ne!(shard.item, 0, "shard 0 always panics");
            Ok::<(), std::io::Error>(())
        }
    };
    let node = Node::on(registry(&server).await).job(job(2), handler).start().await.unwrap();

    let mut runs = [0; 2];
    while runs[0] < 2 || runs[1] < 2 {
        let item = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();
        runs[item as usize] += 1;
    }

    node.stop().await;
}

#[tokio::test]
async fn stopped_node_finishes_its_runs_and_leaves_no_nodes() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (started_sender, mut started_receiver) = mpsc::unbounded_channel();
    let finished = Arc::new(Mutex::new(0));
    let count = Arc::clone(&finished);
    let handler = move |_: Shard| {
        let (started_sender, count) = (started_sender.clone(), Arc::clone(&count));
        async move {
            started_sender.send(()).map_err(|_| std::io::Error::other("receiver closed"))?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            *count.lock().unwrap() += 1;
            Ok::<(), std::io::Error>(())
        }
    };
    let node = Node::on(registry(&server).await).job(job(1), handler).start().await.unwrap();
    tokio::time::timeout(TIMEOUT, started_receiver.recv()).await.unwrap().unwrap();

    node.stop().await;

    assert_eq!(*finished.lock().unwrap(), 1, "the run finished, and no other started");
    let observer = registry(&server).await;
    for path in ["/shop/settle/instances", "/shop/settle/leader/election"] {
        let children = observer.children(&path.parse().unwrap()).await.unwrap().unwrap();
        assert!(children.iter().all(|child| child == "latch"), "{path}: {children:?}");
    }
    assert_eq!(
        observer.exists(&"/shop/settle/sharding/0/running".parse().unwrap()).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn misfire_during_a_run_is_compensated_once_right_after() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let handler = move |shard: Shard| {
        let sender = sender.clone();
        async move {
            sender.send(shard.due_at).map_err(|_| std::io::Error::other("receiver closed"))?;
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            Ok::<(), std::io::Error>(())
        }
    };
    let late = job(1).misfire(Misfire::RunOnce);
    let node = Node::on(registry(&server).await).job(late, handler).start().await.unwrap();

    let first = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();
    let second = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();
    node.stop().await;

    let apart = second.duration_since(first).as_secs();
    assert!((2..=3).contains(&apart), "only the newest missed fire runs: {first} and {second}");
}

#[tokio::test]
async fn job_registered_twice_is_refused_by_name() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let nothing = |_: Shard| async { Ok::<(), std::io::Error>(()) };

    let node = Node::on(registry(&server).await).job(job(1), nothing).job(job(2), nothing);

    let refused = node.start().await.err();
    assert!(
        matches!(&refused, Some(NodeError::DuplicateJob { job, .. }) if job == "settle"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn script_job_gets_the_context_as_its_last_argument() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let folder = tempfile::tempdir().unwrap();
    let (script, out) = (folder.path().join("job.sh"), folder.path().join("out"));
    std::fs::write(&script, "printf %s \"$2\" > \"$1.tmp\" && mv \"$1.tmp\" \"$1\"\n").unwrap();
    let command = format!("/bin/sh {} {}", script.display(), out.display());
    let job = job(1).prop("script.command.line", command).unwrap();

    let node = Node::on(registry(&server).await).script(job).start().await.unwrap();
    let written = tokio::time::timeout(TIMEOUT, async {
        while !out.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    node.stop().await;

    assert!(written.is_ok(), "the script never ran");
    let context: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(
        (&context["jobName"], &context["shardingTotalCount"]),
        (&"settle".into(), &1.into())
    );
    let root =
        registry(&server).await.get(&"/shop/settle".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(root.data, "SCRIPT");
}

#[tokio::test]
async fn run_is_cancelled_before_its_unrenewed_lease_expires() {
    let server = MemoryServer::new(Arc::new(SystemClock)).session_timeout(Duration::from_secs(2));
    let registry = server.join("shop".parse().unwrap()).await.unwrap();
    let link = registry.link();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let handler = move |shard: Shard| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(None);
            let _ = sender.send(Some(shard.cancel().cancelled().await));
            Ok::<(), std::io::Error>(())
        }
    };
    let node = Node::on(Arc::new(registry))
        .drain(Duration::ZERO)
        .job(job(1), handler)
        .start()
        .await
        .unwrap();
    let started = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();
    assert_eq!(started, None);

    link.cut();
    let reason = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();

    assert_eq!(reason, Some(CancelReason::LeaseLost));
    link.heal();
    node.stop().await;
}

#[tokio::test]
async fn jobs_can_be_added_and_removed_while_the_node_runs() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let node = Node::on(registry(&server).await).start().await.unwrap();
    let handler = move |shard: Shard| {
        let sender = sender.clone();
        async move { sender.send(shard.item).map_err(|_| std::io::Error::other("receiver closed")) }
    };
    let settle = || NodeJob::code(job(1), handler.clone());

    node.add(settle()).await.unwrap();
    let twice = node.add(settle()).await.unwrap_err();
    assert!(matches!(&twice, NodeError::DuplicateJob { job, .. } if job == "settle"), "{twice}");
    assert_eq!(tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap(), Some(0));
    assert_eq!(node.jobs(), [job(1).name]);

    assert!(node.remove(&job(1).name).await);
    assert!(!node.remove(&job(1).name).await, "the job is removed already");
    assert!(node.jobs().is_empty());
    let instances = "/shop/settle/instances".parse().unwrap();
    let observer = registry(&server).await;
    assert_eq!(
        observer.children(&instances).await.unwrap().unwrap_or_default(),
        Vec::<String>::new()
    );
    while receiver.try_recv().is_ok() {}
    node.add(settle()).await.unwrap();
    assert_eq!(
        tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap(),
        Some(0),
        "it runs again"
    );
    node.stop().await;
}

#[tokio::test]
async fn invalid_url_is_reported_when_the_node_starts() {
    let error =
        Node::join("zookeeper://127.0.0.1:2181/shop?colour=red").start().await.err().unwrap();

    assert!(matches!(error, NodeError::Url(_)) && error.to_string().contains("colour"), "{error}");
}

/// On two threads: an instance that retries without a pause would keep the test itself from running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_node_below_a_removed_shard_stops_no_other_shard() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let node = start_reporting_node(&server, job(3), 1, sender).await;
    next(&mut receiver).await;
    let observer = registry(&server).await;
    let foreign = "/shop/settle/sharding/2/note".parse().unwrap();
    observer.create(Create::persistent(&foreign, "of another program")).await.unwrap();
    let below = "/shop/settle/sharding/2/note/below".parse().unwrap();
    observer.create(Create::persistent(&below, "")).await.unwrap();

    let config = "/shop/settle/config".parse().unwrap();
    observer.set(&config, job(2).to_yaml().into(), ExpectedVersion::Any).await.unwrap();
    let ran = loop {
        let (_, shard) = next(&mut receiver).await;
        if shard.total.get() == 2 {
            break shard;
        }
    };

    assert!(ran.item < 2);
    let removed = "/shop/settle/sharding/2".parse().unwrap();
    assert_eq!(observer.exists(&removed).await.unwrap(), None, "deleted with all nodes below it");
    node.stop().await;
}
