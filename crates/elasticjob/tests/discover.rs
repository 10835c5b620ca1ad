//! Discovery of functions with `#[elasticjob::job]`. Every node that discovers finds all functions of this file.

#![cfg(feature = "macros")]

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use elasticjob::{
    Job, Node, NodeError, Shard,
    job::{
        Failover, FencingToken, Fire, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile,
        Resharding, Strategy, ThreadPool, keys,
    },
    registry::{Registry, memory::MemoryServer},
    runtime::SystemClock,
    schedule::Dst,
};
use tokio::sync::broadcast;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Attempts of the functions in this file. A function cannot capture a channel, so the channel is static.
static ATTEMPTS: LazyLock<broadcast::Sender<Shard>> = LazyLock::new(|| broadcast::channel(1_024).0);

#[elasticjob::job(cron = "* * * * * ?", shards = 4, items = "0=Beijing,1=Shanghai", failover)]
async fn settle_orders(shard: Shard) -> Result<(), std::io::Error> {
    let _send_result = ATTEMPTS.send(shard);
    Ok(())
}

mod warehouse {
    use elasticjob::{Shard, execution::Failure};

    #[elasticjob::job(name = "count-stock", cron = "* * * * * ?", blocking)]
    pub(super) fn count(shard: Shard) -> Result<(), Failure> {
        if shard.item > 0 {
            return Err(Failure::new("there is one warehouse"));
        }
        let _send_result = super::ATTEMPTS.send(shard);
        Ok(())
    }

    #[elasticjob::job]
    #[cfg(any())]
    async fn excluded(shard: Missing) -> Missing {}
}

#[elasticjob::job(
    name = "everything",
    cron = "0 0 3 1 1 ? 2199",
    zone = "GMT+8:00",
    dst = "quartz",
    shards = 2,
    items = "0=a,1=b",
    parameter = "all",
    description = "every key there is",
    label = "test",
    failover = true,
    misfire = false,
    monitor_execution,
    overwrite,
    static_sharding,
    disabled,
    max_time_diff_seconds = -1,
    reconcile_interval_minutes = 7,
    strategy = "STICKY",
    thread_pool = "single_thread",
    alert = "EMAIL",
    timeout = "90s",
    retry_max_attempts = 3,
    retry_backoff = "2s..1m",
    catch_up = "all:2h",
    on_lease_loss = "finish-fenced",
    handler = "shop::everything",
    java_class = "com.acme.Everything",
    java_listeners("audit", "metrics"),
    props(email.host = "mail", "odd-key" = "text"),
    blocking = false
)]
async fn everything(_: Shard) -> Result<(), String> {
    Ok(())
}

/// The same job with the builder.
fn everything_built() -> Job {
    Job::named("everything")
        .unwrap()
        .cron("0 0 3 1 1 ? 2199")
        .unwrap()
        .zone("GMT+8:00")
        .unwrap()
        .dst(Dst::Quartz)
        .shards(2)
        .items("0=a,1=b")
        .unwrap()
        .parameter("all")
        .description("every key there is")
        .label("test")
        .failover(Failover::TakeOver)
        .misfire(Misfire::Skip)
        .monitor(Monitor::Executions)
        .overwrite(Overwrite::LocalWins)
        .resharding(Resharding::Static)
        .disabled()
        .max_time_diff(MaxTimeDiff::ANY)
        .reconcile(Reconcile::minutes(7))
        .strategy(&Strategy::Sticky)
        .threads(&ThreadPool::SingleThread)
        .alert("EMAIL")
        .timeout(Duration::from_secs(90))
        .prop(keys::RETRY_MAX_ATTEMPTS, "3")
        .unwrap()
        .prop(keys::RETRY_BACKOFF, "2s..1m")
        .unwrap()
        .prop(keys::CATCH_UP, "all:2h")
        .unwrap()
        .prop(keys::ON_LEASE_LOSS, "finish-fenced")
        .unwrap()
        .handler("shop::everything")
        .java_listeners(["audit", "metrics"])
        .prop("email.host", "mail")
        .unwrap()
        .prop("odd-key", "text")
        .unwrap()
}

async fn registry(server: &MemoryServer) -> Arc<dyn Registry> {
    Arc::new(server.join("shop".parse().unwrap()).await.unwrap())
}

#[tokio::test]
async fn discovered_functions_share_their_shards_across_nodes() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let hosts_of_this_test = BTreeSet::from(["10.0.0.1".to_owned(), "10.0.0.2".to_owned()]);
    let mut attempts = ATTEMPTS.subscribe();
    let mut nodes = Vec::new();
    for host in [1, 2] {
        let node = Node::on(registry(&server).await).address([10, 0, 0, host].into()).discover();
        nodes.push(node.start().await.unwrap());
    }
    let jobs: Vec<String> = nodes[0].jobs().iter().map(ToString::to_string).collect();

    let (mut items, mut hosts, mut stock) = (BTreeSet::new(), BTreeSet::new(), false);
    tokio::time::timeout(TIMEOUT, async {
        while items.len() < 4 || hosts.len() < 2 || !stock {
            let shard = attempts.recv().await.unwrap();
            let host = shard.task.instance.server().to_owned();
            // Other tests run the same functions, on other hosts.
            match shard.job.as_str() {
                _ if !hosts_of_this_test.contains(&host) => {}
                "count-stock" => stock = true,
                "settle_orders" => {
                    items.insert((shard.item, shard.parameter));
                    hosts.insert(host);
                }
                other => panic!("{other} ran"),
            }
        }
    })
    .await
    .expect("all shards run, on both nodes, within the timeout");
    for node in nodes {
        node.stop().await;
    }

    assert_eq!(jobs, ["count-stock", "everything", "settle_orders"]);
    assert!(items.contains(&(1, Some("Shanghai".to_owned()))), "{items:?}");
}

#[tokio::test]
async fn attribute_and_builder_describe_the_same_job() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let node = Node::on(registry(&server).await).discover().start().await.unwrap();

    let observer = registry(&server).await;
    let stored = |path: &str| {
        let (observer, path) = (Arc::clone(&observer), path.parse().unwrap());
        async move { observer.get(&path).await.unwrap().unwrap().data }
    };
    let config = stored("/shop/everything/config").await;
    let (class, unnamed) = (stored("/shop/everything").await, stored("/shop/settle_orders").await);
    let settle = stored("/shop/settle_orders/config").await;
    node.stop().await;

    let built = everything_built();
    assert_eq!(Job::read(&built.name, &config).unwrap(), built);
    assert_eq!((&class[..], &unnamed[..]), (&b"com.acme.Everything"[..], &b""[..]));
    let settle = Job::read(&"settle_orders".parse().unwrap(), &settle).unwrap();
    assert_eq!(
        settle.props.get(keys::HANDLER),
        None,
        "so that the function can be renamed and moved"
    );
}

#[tokio::test]
async fn job_discovered_twice_is_refused_with_both_locations() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let line = line!() + 1;
    let node = Node::on(registry(&server).await).discover().discover();

    let refused = node.start().await.err().unwrap();

    let NodeError::DuplicateJob { job, locations } = &refused else { panic!("{refused}") };
    assert_eq!((job.as_str(), locations.len()), ("settle_orders", 2));
    assert!(locations.iter().all(|place| place.line < line && place.file.ends_with("discover.rs")));
    assert!(refused.to_string().contains("discover.rs:"), "{refused}");
}

#[tokio::test]
async fn annotated_function_can_still_be_called() {
    let job = Job::named("by-hand").unwrap();
    let fire = Fire::scheduled(job.name.clone(), "2026-03-29T02:00:00Z".parse().unwrap());
    let task = "by-hand@-@0@-@READY@-@10.0.0.7@-@4711-9f86d081".parse().unwrap();
    let shard = Shard::of(&job, &fire, task, 0, FencingToken::new(1));

    assert_eq!(everything(shard.clone()).await, Ok(()));
    assert_eq!(warehouse::count(shard), Ok(()));
}
