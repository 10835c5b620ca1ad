//! Runs the code of docs/testing.md.

use std::{collections::BTreeSet, sync::Arc};

use elasticjob::{
    job::{Job, Shard},
    testing::Cluster,
};
use tokio::sync::Mutex;

// The program under test.
fn nightly() -> Job {
    let job = Job::named("settle-orders").unwrap().cron("0 0 2 * * ?").unwrap();
    job.shards(3).items("0=Beijing,1=Shanghai,2=Guangzhou").unwrap()
}

#[derive(Clone, Default)]
struct Orders {
    settled: Arc<Mutex<BTreeSet<(String, String)>>>,
}

async fn settle(orders: Orders, shard: Shard) -> Result<(), std::io::Error> {
    let (city, server) = (shard.parameter.unwrap_or_default(), shard.task.instance.server());
    let first = orders.settled.lock().await.insert((city, server.to_owned()));
    if first { Ok(()) } else { Err(std::io::Error::other("settled already")) }
}

// The test.
#[tokio::test(start_paused = true)]
async fn every_city_is_settled_once_a_night() {
    let orders = Orders::default();
    let handler_orders = orders.clone();
    let mut cluster = Cluster::at("2026-11-15T00:00:00Z").await;
    let handler = move |shard| settle(handler_orders.clone(), shard);
    let _node = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:00:00Z").await;

    let settled = orders.settled.lock().await.clone();
    let cities: Vec<&str> = settled.iter().map(|(city, _)| city.as_str()).collect();
    assert_eq!(cities, ["Beijing", "Guangzhou", "Shanghai"]);
}

#[tokio::test(start_paused = true)]
async fn survivor_runs_all_shards_after_a_node_dies() {
    let orders = Orders::default();
    let handler_orders = orders.clone();
    let handler = move |shard| settle(handler_orders.clone(), shard);
    let mut cluster = Cluster::at("2026-11-15T00:00:00Z").await;
    let first = cluster.node(|node| node.job(nightly(), handler.clone())).await.unwrap();
    let _second = cluster.node(|node| node.job(nightly(), handler)).await.unwrap();

    cluster.advance_to("2026-11-15T02:00:00Z").await;
    let tonight = std::mem::take(&mut *orders.settled.lock().await);
    drop(first);
    cluster.settle().await;
    cluster.advance_to("2026-11-16T02:00:00Z").await;
    let tomorrow = std::mem::take(&mut *orders.settled.lock().await);

    let servers: BTreeSet<&str> = tonight.iter().map(|(_, server)| server.as_str()).collect();
    assert_eq!((tonight.len(), servers), (3, BTreeSet::from(["10.0.0.1", "10.0.0.2"])));
    assert_eq!(tomorrow.len(), 3);
    assert!(tomorrow.iter().all(|(_, server)| server == "10.0.0.2"), "{tomorrow:?}");
}

#[test]
fn code_of_the_testing_page_is_in_this_file() {
    let (page, here) = (include_str!("../../../docs/testing.md"), include_str!("testing_page.rs"));

    let shown: Vec<&str> = page.split("```rust\n").skip(1).collect();

    assert_eq!(shown.len(), 2);
    for block in shown {
        let block = block.split("```").next().unwrap().trim_end();
        assert!(here.contains(block), "not in this file:\n{block}");
    }
}
