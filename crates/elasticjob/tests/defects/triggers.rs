//! No trigger is lost: it is stored until every shard has run or a reason is stored, whatever happens to the instances.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    admin::Admin,
    coordination::{
        tree::ShardNode,
        trigger::{ShardEntry, SkipReason, Trigger, TriggerRequest},
    },
    job::{Job, LeaseLoss, Outcome, RunId, RunReason, ShardSelection},
    registry::{Op, Registry},
    runtime::CancelReason,
};
use tokio::task::JoinSet;

use crate::{
    cluster::{Cluster, Connection, job},
    members::with_failover,
    nodes::TestHandler,
};

/// The job with a schedule that never fires, so that it runs only when triggered.
pub(crate) fn on_demand(job: Job) -> Job {
    job.cron("0 0 0 1 1 ? 2099").unwrap()
}

/// Rings the doorbell of the only Rust instance, as Java ElasticJob does.
async fn trigger_as_java(cluster: &Cluster) {
    let ids = cluster.children(&cluster.tree.instances()).await;
    let id = ids.iter().find(|id| id.contains("@-@1")).or(ids.first()).unwrap();
    cluster.write(&cluster.tree.trigger(id), "").await;
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
    accept(&cluster, TriggerRequest { run: Some(run.clone()), ..TriggerRequest::default() }).await;
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

    trigger_as_java(&cluster).await;
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
    accept(&cluster, TriggerRequest::default()).await;
    assert_eq!(handler.attempts().len(), 1);
    // The second trigger waits for the first run.
    let second = accept(&cluster, TriggerRequest::default()).await;

    connection.link.expire();
    cluster.advance_seconds(2).await;
    handler.unblock();
    cluster.advance_seconds(5).await;

    let runs: Vec<String> = handler.attempts().iter().map(|attempt| attempt.run.clone()).collect();
    assert!(runs.contains(&second), "{runs:?}");
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
    accept(&cluster, request).await;
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

pub(crate) fn admin(cluster: &Cluster, connection: &Connection) -> Admin {
    let registry = Arc::clone(&connection.registry) as Arc<dyn Registry>;
    Admin::new(registry).clock(Arc::new(cluster.clock.clone()))
}

/// Triggers the job as the console does; returns the run.
pub(crate) async fn accept(cluster: &Cluster, request: TriggerRequest) -> String {
    let console = cluster.connect().await;
    let accepted = admin(cluster, &console).trigger(&"settle".parse().unwrap(), request).await;
    cluster.settle().await;
    accepted.unwrap().run.to_string()
}

/// The shards that ran as part of this run, once for each attempt, sorted.
pub(crate) fn shards_of(run: &str, handlers: &[&TestHandler]) -> Vec<u32> {
    let attempts = handlers.iter().flat_map(|handler| handler.attempts());
    let mut shards: Vec<u32> =
        attempts.filter(|attempt| attempt.run == run).map(|attempt| attempt.item).collect();
    shards.sort_unstable();
    shards
}

#[tokio::test(start_paused = true)]
async fn trigger_reaches_every_shard_while_shards_wait_to_move() {
    for total in [1, 4] {
        let cluster = Cluster::new().await;
        let (first, second) = (TestHandler::blocked(), TestHandler::immediate());
        let (first_node, _first) = cluster.node(1, on_demand(job(total)), &first).await;
        accept(&cluster, TriggerRequest::default()).await;
        assert_eq!(first.attempts().len(), total as usize);
        let (_second_node, _second) = cluster.node(2, on_demand(job(total)), &second).await;
        // Of a single shard nothing moves before its owner leaves.
        let (stays, leaves) =
            if total == 1 { (None, Some(first_node)) } else { (Some(first_node), None) };
        let mut stopping = JoinSet::new();
        if let Some(node) = leaves {
            stopping.spawn(node.stop());
        }
        cluster.settle().await;

        let run = accept(&cluster, TriggerRequest::default()).await;
        cluster.advance_seconds(5).await;
        first.unblock();
        cluster.advance_seconds(60).await;

        let all: Vec<u32> = (0..total).collect();
        assert_eq!(shards_of(&run, &[&first, &second]), all, "of {total}");
        drop((stays, stopping));
    }
}

#[tokio::test(start_paused = true)]
async fn trigger_runs_elsewhere_if_its_addressee_stops_gracefully() {
    let cluster = Cluster::new().await;
    let (first, second) = (TestHandler::blocked(), TestHandler::immediate());
    let (node, _first) = cluster.node(1, on_demand(job(2)), &first).await;
    let (_second_node, _second) = cluster.node(2, on_demand(job(2)), &second).await;
    accept(&cluster, TriggerRequest::default()).await;
    // It waits behind the run that blocks.
    let run = accept(&cluster, TriggerRequest::default()).await;

    cluster.stop(node).await;
    cluster.advance_seconds(60).await;

    assert_eq!(shards_of(&run, &[&first, &second]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn trigger_runs_elsewhere_if_its_addressee_dies() {
    let cluster = Cluster::new().await;
    let (first, second) = (TestHandler::blocked(), TestHandler::immediate());
    let (node, connection) = cluster.node(1, on_demand(job(2)), &first).await;
    let (_second_node, _second) = cluster.node(2, on_demand(job(2)), &second).await;
    accept(&cluster, TriggerRequest::default()).await;
    let run = accept(&cluster, TriggerRequest::default()).await;

    drop(node);
    connection.die().await;
    cluster.advance_seconds(60).await;

    assert_eq!(shards_of(&run, &[&first, &second]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn large_parameter_is_stored_once_and_reaches_every_shard() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(20)), &handler).await;
    let parameter = "p".repeat(64 * 1024);

    let request =
        TriggerRequest { parameter: Some(parameter.clone()), ..TriggerRequest::default() };
    let run = accept(&cluster, request).await;
    cluster.advance_seconds(5).await;

    let all: Vec<u32> = (0..20).collect();
    assert_eq!(shards_of(&run, &[&handler]), all);
    assert!(handler.attempts().iter().all(|attempt| attempt.parameter == parameter));
    for shard in 0..20 {
        let page = cluster.text(&cluster.tree.ledger_page(shard)).await.unwrap();
        assert!(page.len() < 1_000, "{} bytes in the page of shard {shard}", page.len());
    }
}

/// What became of a shard of a trigger.
pub(crate) async fn entry(cluster: &Cluster, run: &str, shard: u32) -> Option<ShardEntry> {
    let text = cluster.text(&cluster.tree.trigger_entry(run, shard)).await?;
    Some(ShardEntry::read(text.as_bytes()).unwrap())
}

pub(crate) fn outcome(entry: Option<&ShardEntry>) -> Option<Outcome> {
    match entry {
        Some(ShardEntry::Ended { outcome, .. }) => Some(*outcome),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn trigger_tells_how_every_shard_ended_and_is_removed_after_a_day() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::failing();
    let (_node, _connection) = cluster.node(1, on_demand(job(3)), &handler).await;
    cluster.write(&cluster.tree.shard(2, ShardNode::Disabled), "").await;
    cluster.settle().await;

    let run = accept(&cluster, TriggerRequest::default()).await;
    cluster.advance_seconds(60).await;

    let skipped = ShardEntry::Skipped(SkipReason::Disabled);
    assert_eq!(outcome(entry(&cluster, &run, 0).await.as_ref()), Some(Outcome::Failed));
    assert_eq!(entry(&cluster, &run, 2).await, Some(skipped));
    let stored = cluster.text(&cluster.tree.accepted_trigger(&run)).await.unwrap();
    assert!(Trigger::read(stored.as_bytes()).unwrap().ended_at.is_some(), "{stored}");
    cluster.clock.advance(Duration::from_hours(25));
    cluster.advance_seconds(60).await;
    assert_eq!(cluster.children(&cluster.tree.accepted_triggers()).await, [""; 0]);
    assert_eq!(handler.attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn trigger_that_cannot_start_in_time_is_reported_as_expired() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    accept(&cluster, TriggerRequest::default()).await;

    let expires_in = Some(Duration::from_mins(1));
    let run = accept(&cluster, TriggerRequest { expires_in, ..TriggerRequest::default() }).await;
    cluster.advance_seconds(100).await;
    handler.unblock();
    cluster.advance_seconds(60).await;

    let expired = ShardEntry::Skipped(SkipReason::Expired);
    assert_eq!(entry(&cluster, &run, 0).await, Some(expired));
    assert_eq!(handler.attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn triggered_shard_lost_without_failover_is_reported() {
    let cluster = Cluster::new().await;
    let (dying, other) = (TestHandler::blocked(), TestHandler::immediate());
    let (node, connection) = cluster.node(1, on_demand(job(2)), &dying).await;
    let (_other_node, _other) = cluster.node(2, on_demand(job(2)), &other).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    let [lost] = shards_of(&run, &[&dying])[..] else { panic!("one shard is running") };

    drop(node);
    connection.die().await;
    cluster.advance_seconds(60).await;

    assert_eq!(outcome(entry(&cluster, &run, lost).await.as_ref()), Some(Outcome::Lost));
    assert_eq!(outcome(entry(&cluster, &run, 1 - lost).await.as_ref()), Some(Outcome::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn repeated_trigger_of_the_same_run_runs_once() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(2)), &handler).await;
    let request = || TriggerRequest { run: Some(RunId::triggered(7)), ..TriggerRequest::default() };

    for _ in 0..3 {
        accept(&cluster, request()).await;
        cluster.advance_seconds(40).await;
    }

    assert_eq!(handler.attempts().len(), 2);
    let console = cluster.connect().await;
    let other = TriggerRequest { parameter: Some("p".into()), ..request() };
    let refused = admin(&cluster, &console).trigger(&"settle".parse().unwrap(), other).await;
    assert!(refused.unwrap_err().to_string().contains("other shards, time or parameter"));
}

#[tokio::test(start_paused = true)]
async fn unreadable_trigger_runs_nothing_and_stops_no_other() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    let id = cluster.children(&cluster.tree.instances()).await.remove(0);
    let newer = RunId::triggered(1);
    let newer = cluster.tree.accepted_trigger(newer);
    cluster.write(&newer, r#"{"v":9,"shards":[[0,0]]}"#).await;
    cluster.write(&cluster.tree.accepted_trigger("not-a-run"), "").await;

    cluster.write(&cluster.tree.trigger(&id), r#"{"run":7"#).await;
    cluster.advance_seconds(5).await;
    assert!(!cluster.exists(&cluster.tree.trigger(&id)).await, "the doorbell is answered");
    assert!(handler.attempts().is_empty(), "{:?}", handler.attempts());
    let run = accept(&cluster, TriggerRequest::default()).await;

    assert_eq!(shards_of(&run, &[&handler]), [0]);
    assert!(cluster.exists(&newer).await, "it is left alone");
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_pending_shards_and_never_the_next_run() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    let first = accept(&cluster, TriggerRequest::default()).await;
    let second = accept(&cluster, TriggerRequest::default()).await;
    let third = accept(&cluster, TriggerRequest::default()).await;
    let console = cluster.connect().await;
    let admin = admin(&cluster, &console);
    let settle = "settle".parse().unwrap();
    let cancel = async |run: &String| {
        let run = run.parse().unwrap();
        let cancelled = admin.cancel_run(&settle, &run, &ShardSelection::All).await;
        cluster.settle().await;
        cancelled
    };

    assert_eq!(cancel(&second).await.unwrap().withdrawn, [0]);
    assert_eq!(cancel(&first).await.unwrap().requested.len(), 1);
    cluster.advance_seconds(5).await;

    let cancelled = handler.attempts()[0].cancelled.map(|(reason, _)| reason);
    assert_eq!(cancelled, Some(CancelReason::Requested));
    assert!(shards_of(&second, &[&handler]).is_empty());
    assert_eq!(shards_of(&third, &[&handler]), [0]);
    let late = cancel(&first).await.unwrap_err().to_string();
    assert!(late.contains("is not running"), "{late}");
    cluster.advance_seconds(5).await;
    assert!(handler.attempts()[1].cancelled.is_none(), "the next run goes on");
    assert_eq!(outcome(entry(&cluster, &first, 0).await.as_ref()), Some(Outcome::Cancelled));
    let skipped = ShardEntry::Skipped(SkipReason::Cancelled);
    assert_eq!(entry(&cluster, &second, 0).await, Some(skipped));
    handler.unblock();
}
