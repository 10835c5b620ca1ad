//! ElasticJob 2.x triggers an instance by writing into its node. Its documents describe that as a way to trigger by hand, so it works here, too.

use elasticjob::job::RunReason;

use crate::{
    cluster::{Cluster, job},
    nodes::TestHandler,
};

const TRIGGER: &str = "TRIGGER";

/// The job with a schedule that never fires, so that it runs only when triggered.
fn on_demand(shards: u32) -> elasticjob::Job {
    job(shards).cron("0 0 0 1 1 ? 2099").unwrap()
}

async fn data_of(cluster: &Cluster, id: &str) -> String {
    cluster.text(&cluster.tree.instance(id)).await.unwrap()
}

async fn set_data(cluster: &Cluster, id: &str, data: &str) {
    cluster.write(&cluster.tree.instance(id), data).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn trigger_written_into_an_instance_node_runs_its_shards_once() {
    let cluster = Cluster::new().await;
    let (handler, other) = (TestHandler::immediate(), TestHandler::immediate());
    let (_node, _connection) = cluster.node(1, on_demand(4), &handler).await;
    let ours = cluster.children(&cluster.tree.instances()).await.remove(0);
    let (_other, _connection) = cluster.node(2, on_demand(4), &other).await;
    cluster.advance_seconds(5).await;
    let document = data_of(&cluster, &ours).await;

    set_data(&cluster, &ours, " TRIGGER\n").await;
    cluster.advance_seconds(5).await;

    assert_eq!(handler.shards_and_reasons().len(), 2, "{:?}", handler.attempts());
    assert!(handler.attempts().iter().all(|attempt| attempt.reason == RunReason::Trigger));
    assert!(other.attempts().is_empty(), "only the instance of this node was triggered");
    assert_eq!(data_of(&cluster, &ours).await, document, "the document is there again");
    set_data(&cluster, &ours, TRIGGER).await;
    cluster.advance_seconds(5).await;
    assert_eq!(handler.attempts().len(), 4, "it can be triggered again");
}

#[tokio::test(start_paused = true)]
async fn trigger_in_an_instance_node_waits_while_a_doorbell_rings() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let (_node, _connection) = cluster.node(1, on_demand(1), &handler).await;
    let ids = cluster.children(&cluster.tree.instances()).await;
    let ours = ids.iter().find(|id| **id != java.id).unwrap();

    // Not assigned yet, so the doorbell cannot be answered.
    cluster.write(&cluster.tree.trigger(ours), "").await;
    cluster.settle().await;
    set_data(&cluster, ours, TRIGGER).await;
    cluster.advance_seconds(5).await;
    assert_eq!(data_of(&cluster, ours).await, TRIGGER);
    assert!(handler.attempts().is_empty());
    cluster.assign_as_java_leader(&[ours]).await;
    cluster.advance_seconds(5).await;

    assert!(!handler.attempts().is_empty(), "it runs");
    assert_ne!(data_of(&cluster, ours).await, TRIGGER);
}

#[tokio::test(start_paused = true)]
async fn other_text_in_an_instance_node_triggers_nothing_and_stays() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(1), &handler).await;
    let ours = cluster.children(&cluster.tree.instances()).await.remove(0);

    for text in ["trigger", "TRIGGER: now", "TRIGGERED", ""] {
        set_data(&cluster, &ours, text).await;
        cluster.advance_seconds(5).await;

        assert_eq!(data_of(&cluster, &ours).await, text);
        assert!(handler.attempts().is_empty(), "{text:?}");
    }
}
