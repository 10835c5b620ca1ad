//! No trigger is lost: it waits until it can run, and a takeover keeps its parameters.

use std::time::Duration;

use elasticjob::{
    coordination::{
        tree::ShardNode,
        trigger::{InstanceRequest, TriggerRequest},
    },
    job::{Job, LeaseLoss, RunId, RunReason},
    registry::Op,
    runtime::CancelReason,
};

use crate::{
    cluster::{Cluster, job},
    members::with_failover,
    nodes::TestHandler,
};

/// The job with a schedule that never fires, so that it runs only when triggered.
fn on_demand(job: Job) -> Job {
    job.cron("0 0 0 1 1 ? 2099").unwrap()
}

/// Triggers the only Rust instance.
async fn trigger(cluster: &Cluster, ask: TriggerRequest) {
    let ids = cluster.children(&cluster.tree.instances()).await;
    let id = ids.iter().find(|id| id.contains("@-@1")).or(ids.first()).unwrap();
    let data = String::from_utf8(InstanceRequest::Run(ask).to_bytes()).unwrap();
    cluster.write(&cluster.tree.trigger(id), &data).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn trigger_runs_all_shards_including_those_held_elsewhere() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(2)), &handler).await;
    let ids = cluster.children(&cluster.tree.instances()).await;
    let ours = ids.iter().find(|id| *id != java.id).unwrap();
    cluster.assign_as_java_leader(&[ours, ours]).await;
    cluster.settle().await;
    java.mark_running(&cluster.tree, 1).await;

    let run = RunId::triggered(7);
    let data = InstanceRequest::Run(TriggerRequest {
        run: Some(run.clone()),
        ..TriggerRequest::default()
    })
    .to_bytes();
    cluster.write(&cluster.tree.trigger(ours), &String::from_utf8(data).unwrap()).await;
    cluster.advance_seconds(5).await;
    assert_eq!(
        handler.shards_and_reasons(),
        [(0, RunReason::Trigger)],
        "the other shard is still held"
    );
    cluster.remove(&cluster.tree.shard(1, ShardNode::Running)).await;
    cluster.advance_seconds(5).await;

    assert_eq!(handler.shards_and_reasons(), [(0, RunReason::Trigger), (1, RunReason::Trigger)]);
    assert!(
        handler.attempts().iter().all(|attempt| attempt.run == run.to_string()),
        "{:?}",
        handler.attempts()
    );
}

#[tokio::test(start_paused = true)]
async fn trigger_runs_once_if_its_deletion_is_not_answered() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    let deletes_trigger = |ops: &[Op]| {
        let mut ops = ops.iter();
        ops.any(|op| matches!(op, Op::Delete { path, .. } if path.as_str().contains("/trigger/")))
    };
    let mut deletion = connection.block_next(deletes_trigger);

    trigger(&cluster, TriggerRequest::default()).await;
    deletion.reached().await;
    connection.link.cut_after_next_request();
    deletion.unblock();
    cluster.settle().await;
    connection.link.heal();
    cluster.advance_seconds(5).await;

    assert_eq!(handler.shards_and_reasons(), [(0, RunReason::Trigger)]);
}

#[tokio::test(start_paused = true)]
async fn trigger_pending_at_session_end_runs_in_the_next_session() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    trigger(
        &cluster,
        TriggerRequest { run: Some(RunId::triggered(1)), ..TriggerRequest::default() },
    )
    .await;
    assert_eq!(handler.attempts().len(), 1);
    // The second trigger waits for the first run.
    let second = RunId::triggered(2);
    trigger(&cluster, TriggerRequest { run: Some(second.clone()), ..TriggerRequest::default() })
        .await;

    connection.link.expire();
    cluster.advance_seconds(2).await;
    handler.unblock();
    cluster.advance_seconds(5).await;

    let runs: Vec<String> = handler.attempts().iter().map(|attempt| attempt.run.clone()).collect();
    assert!(runs.contains(&second.to_string()), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn takeover_of_a_triggered_run_keeps_its_parameters() {
    let cluster = Cluster::new().await;
    let (dying, successor) = (TestHandler::blocked(), TestHandler::immediate());
    let (dying_node, connection) = cluster.node(1, on_demand(with_failover(1)), &dying).await;
    let at = "2026-01-31T12:00:00Z".parse().unwrap();
    let run = Some(RunId::triggered(7));
    let request = TriggerRequest {
        run,
        at: Some(at),
        parameter: Some("42".into()),
        ..TriggerRequest::default()
    };
    trigger(&cluster, request).await;
    let (_successor_node, _connection) =
        cluster.node(2, on_demand(with_failover(1)), &successor).await;

    drop(dying_node);
    connection.die().await;
    cluster.advance_seconds(5).await;

    let (lost, again) = (dying.attempts(), successor.attempts());
    assert_eq!((lost.len(), again.len()), (1, 1));
    assert_eq!((again[0].reason, &again[0].run), (RunReason::Failover, &lost[0].run));
    assert_eq!((again[0].due_at.as_str(), &*again[0].parameter), ("2026-01-31T12:00:00Z", "42"));
    assert_eq!(lost[0].parameter, "42");
}

#[tokio::test(start_paused = true)]
async fn run_of_an_earlier_session_is_cancelled_when_the_node_stops() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let job = job(1).cron("5 0 * * * ?").unwrap().on_lease_loss(LeaseLoss::Continue);
    let (node, connection) = cluster.node(1, job, &handler).await;
    cluster.advance_seconds(6).await;
    assert_eq!(handler.attempts().len(), 1);
    connection.link.expire();
    cluster.advance_seconds(5).await;
    assert!(handler.attempts()[0].cancelled.is_none(), "the run continues without its lease");

    assert!(cluster.stop(node).await < Duration::from_mins(2));

    let cancelled = handler.attempts()[0].cancelled;
    assert_eq!(cancelled.map(|(reason, _)| reason), Some(CancelReason::ShuttingDown));
}
