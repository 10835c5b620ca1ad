//! Triggers and cancellations that meet something else: a member that joins or dies, a claim that is withdrawn, an answer that is lost, a clock
//! that is wrong, a job that is replaced.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use elasticjob::{
    admin::{AdminError, TriggerResponse},
    coordination::{
        member::{ClaimError, ClaimScope, Release, ShardClaim},
        shard_ranges::ShardRanges,
        tree::ShardNode,
        trigger::{ShardEntry, SkipReason, Trigger, TriggerRequest},
    },
    job::{Fire, JobName, Outcome, RunId, ShardSelection},
    node::RunningNode,
    registry::{Create, Digest, Op, Registry},
    runtime::Clock,
    testing::ManualClock,
};
use tokio::task::JoinSet;

use crate::{
    cluster::{BlockedWrite, Cluster, JavaInstance, RECHECK_SECONDS, job},
    members::{TestInstance, items, with_failover},
    nodes::TestHandler,
    stopped_shards::MissedFires,
    triggers::{accept, admin, entry, on_demand, outcome, shards_of},
};

fn settle() -> JobName {
    "settle".parse().unwrap()
}

fn stores_trigger(ops: &[Op]) -> bool {
    let mut ops = ops.iter();
    ops.any(|op| matches!(op, Op::Create(create) if create.path.as_str().contains("/triggers/")))
}

fn only(shards: &[u32]) -> TriggerRequest {
    let shards = ShardSelection::only(shards.iter().copied()).unwrap();
    TriggerRequest { shards, ..TriggerRequest::default() }
}

impl TestInstance {
    /// Claims the shards of a trigger that are this member's.
    async fn claim_triggered(&self, run: &str) -> Result<ShardClaim, ClaimError> {
        let at = "2026-11-15T06:00:00Z".parse().unwrap();
        let fire = Fire::triggered(settle(), at, run.parse().unwrap());
        let scope = ClaimScope::Triggered(ShardSelection::All);
        self.try_claim(&fire, scope, Duration::ZERO).await
    }

    async fn withdraw(&self, claimed: ShardClaim) {
        let shards = items(&claimed).into_iter().map(|shard| (shard, Release::Withdrawn));
        self.member.claims().release(shards.collect()).await.unwrap();
    }
}

async fn cancel(cluster: &Cluster, run: &str) {
    let console = cluster.connect().await;
    let run: RunId = run.parse().unwrap();
    let cancelled =
        admin(cluster, &console).cancel_run(&settle(), &run, &ShardSelection::All).await;
    cluster.settle().await;
    cancelled.unwrap();
}

/// The claim was refused, or it is cancelled: in both cases the shard does not run.
fn is_cancelled(claim: &Result<ShardClaim, ClaimError>) -> bool {
    claim
        .as_ref()
        .is_ok_and(|claim| claim.shards.iter().all(|shard| shard.status.cancel().is_cancelled()))
        || matches!(claim, Err(ClaimError::NothingToRun))
}

#[tokio::test(start_paused = true)]
async fn cancel_outlives_a_withdrawn_claim() {
    let cluster = Cluster::new().await;
    let member = cluster.join(1, on_demand(job(1))).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    let claimed = member.claim_triggered(&run).await.unwrap();

    cancel(&cluster, &run).await;
    assert!(claimed.shards[0].status.cancel().is_cancelled());
    member.withdraw(claimed).await;
    let again = member.claim_triggered(&run).await;

    assert!(is_cancelled(&again), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn cancel_follows_a_shard_that_moves_before_it_runs() {
    let cluster = Cluster::new().await;
    let first = cluster.join(1, on_demand(job(1))).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    let claimed = first.claim_triggered(&run).await.unwrap();
    let mut second = cluster.join(2, on_demand(job(1))).await;

    cancel(&cluster, &run).await;
    first.withdraw(claimed).await;
    first.die().await;
    cluster.advance_seconds(5).await;
    let moved = second.claim_triggered(&run).await;
    cluster.settle().await;

    assert!(is_cancelled(&moved), "{moved:?}");
    assert!(second.take_over().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_every_member_that_may_claim_the_shard_next() {
    let cluster = Cluster::new().await;
    let first = cluster.join(1, on_demand(job(2))).await;
    let second = cluster.join(2, on_demand(job(2))).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    let claimed = first.claim_triggered(&run).await.unwrap();
    let [shard] = items(&claimed)[..] else { panic!("{claimed:?}") };
    // The other member is about to own the shard, and knows nothing of the cancellation by itself.
    cancel(&cluster, &run).await;
    first.withdraw(claimed).await;
    cluster.write(&cluster.tree.shard(shard, ShardNode::Owner), &second.id()).await;
    cluster.settle().await;
    let moved = second.claim_triggered(&run).await;
    cluster.settle().await;

    assert!(is_cancelled(&moved), "{moved:?}");
}

#[tokio::test(start_paused = true)]
async fn cancel_of_a_lost_shard_reaches_its_takeover() {
    let cluster = Cluster::new().await;
    let first = cluster.join(1, on_demand(with_failover(1))).await;
    let second = cluster.join(2, on_demand(with_failover(1))).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    let is_first = cluster.owners(1).await == [first.id()];
    let (dying, mut survivor) = if is_first { (first, second) } else { (second, first) };
    dying.claim_triggered(&run).await.unwrap();
    dying.die().await;
    cluster.advance_seconds(5).await;
    assert!(cluster.is_flagged(0).await);

    cancel(&cluster, &run).await;
    let taken = survivor.take_over().await.unwrap();
    cluster.settle().await;

    assert!(taken.shards[0].status.cancel().is_cancelled());
}

/// Starts to trigger the job; the trigger is about to be stored when this returns.
async fn begin_to_accept(
    cluster: &Cluster,
    request: TriggerRequest,
) -> (BlockedWrite, JoinSet<Result<TriggerResponse, AdminError>>) {
    let console = cluster.connect().await;
    let mut storing = console.block_next(stores_trigger);
    let admin = admin(cluster, &console);
    let mut accepting = JoinSet::new();
    accepting.spawn(async move { admin.trigger(&settle(), request).await });
    storing.reached().await;
    (storing, accepting)
}

#[tokio::test(start_paused = true)]
async fn trigger_reaches_an_instance_that_joins_while_it_is_accepted() {
    for stays in [true, false] {
        let cluster = Cluster::new().await;
        let (first, second) = (TestHandler::immediate(), TestHandler::immediate());
        let (node, connection) = cluster.node(1, on_demand(job(2)), &first).await;
        let (storing, mut accepting) = begin_to_accept(&cluster, TriggerRequest::default()).await;
        let (_second_node, _second) = cluster.node(2, on_demand(job(2)), &second).await;
        let _node = if stays {
            Some(node)
        } else {
            drop(node);
            connection.die().await;
            None
        };
        cluster.advance_seconds(5).await;
        storing.unblock();
        let run = accepting.join_next().await.unwrap().unwrap().unwrap().run.to_string();
        cluster.advance_seconds(5).await;

        assert_eq!(shards_of(&run, &[&first, &second]), [0, 1], "the first stays: {stays}");
    }
}

#[tokio::test(start_paused = true)]
async fn trigger_is_accepted_once_although_its_answer_is_lost() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    let console = cluster.connect().await;
    let mut storing = console.block_next(stores_trigger);
    let admin = admin(&cluster, &console);
    let mut accepting = JoinSet::new();
    accepting.spawn(async move { admin.trigger(&settle(), TriggerRequest::default()).await });
    storing.reached().await;
    console.link.cut_after_next_request();
    storing.unblock();
    cluster.settle().await;
    console.link.heal();
    cluster.advance_seconds(5).await;

    let accepted = accepting.join_next().await.unwrap().unwrap();
    let run = accepted.expect("the registry answers again").run.to_string();
    assert_eq!(shards_of(&run, &[&handler]), [0]);
    assert_eq!(handler.attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn java_is_told_in_the_transaction_that_stores_the_trigger() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(2)), &handler).await;
    let ids = cluster.children(&cluster.tree.instances()).await;
    let ours = ids.iter().find(|id| *id != java.id).unwrap();
    cluster.assign_as_java_leader(&[ours, java.id]).await;
    cluster.settle().await;
    let console = cluster.connect().await;
    let mut storing = console.block_next(stores_trigger);
    let admin = admin(&cluster, &console);
    let mut accepting = JoinSet::new();
    accepting.spawn(async move { admin.trigger(&settle(), TriggerRequest::default()).await });
    storing.reached().await;
    // The console dies right after it has stored the trigger.
    console.link.cut_after_next_request();
    storing.unblock();
    cluster.settle().await;
    drop(accepting);
    cluster.advance_seconds(5).await;

    assert_eq!(shards_of(&handler.attempts()[0].run, &[&handler]), [0]);
    assert!(cluster.exists(&cluster.tree.trigger(java.id)).await, "Java runs the other shard");
}

#[tokio::test(start_paused = true)]
async fn shard_of_a_java_instance_that_dies_meanwhile_is_not_delegated() {
    let cluster = Cluster::new().await;
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, on_demand(job(2)), &handler).await;
    let ids = cluster.children(&cluster.tree.instances()).await;
    let ours = ids.iter().find(|id| *id != java.id).unwrap();
    cluster.assign_as_java_leader(&[ours, java.id]).await;
    cluster.settle().await;
    let (storing, mut accepting) = begin_to_accept(&cluster, TriggerRequest::default()).await;
    java.die().await;
    cluster.advance_seconds(10).await;

    storing.unblock();
    cluster.settle().await;
    let run = accepting.join_next().await.unwrap().unwrap().unwrap().run.to_string();
    cluster.advance_seconds(10).await;

    assert_eq!(shards_of(&run, &[&handler]), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn trigger_that_waits_holds_up_no_other_trigger() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    cluster.hold_elsewhere(0, "2026-11-15T05:59:55Z").await;
    let (_node, _connection) = cluster.node(1, on_demand(job(2)), &handler).await;

    for _ in 0..5 {
        accept(&cluster, only(&[0])).await;
    }
    let run = accept(&cluster, only(&[1])).await;
    cluster.advance_seconds(40).await;

    assert_eq!(shards_of(&run, &[&handler]), [1]);
}

#[tokio::test(start_paused = true)]
async fn misfire_is_compensated_while_a_trigger_waits() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let hourly = |shards| job(shards).cron("5 0 * * * ?").unwrap();
    cluster.hold_elsewhere(0, "2026-11-15T05:00:05Z").await;
    let (_node, _connection) = cluster.node(1, hourly(2), &handler).await;
    cluster.advance_seconds(6).await;
    assert_eq!(handler.attempts().len(), 1);
    accept(&cluster, only(&[0])).await;
    cluster.advance(Duration::from_hours(1)).await;
    handler.unblock();
    cluster.advance_seconds(120).await;

    let misfires: Vec<u32> = handler
        .attempts()
        .iter()
        .filter(|attempt| attempt.due_at == "2026-11-15T07:00:05Z")
        .map(|attempt| attempt.item)
        .collect();
    assert_eq!(misfires, [1]);
}

#[tokio::test(start_paused = true)]
async fn triggered_shard_that_no_instance_takes_over_is_reported_as_lost() {
    let cluster = Cluster::new().await;
    let dying = TestHandler::blocked();
    let (node, connection) = cluster.node(1, on_demand(with_failover(1)), &dying).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    drop(node);
    connection.die().await;
    // Another program deletes the node that shows what was lost.
    cluster.remove(&cluster.tree.shard(0, ShardNode::Running)).await;

    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(2, on_demand(with_failover(1)), &handler).await;
    cluster.advance_seconds(90).await;

    assert_eq!(outcome(entry(&cluster, &run, 0).await.as_ref()), Some(Outcome::Lost));
    assert!(is_closed(&cluster, &run).await);
    assert!(handler.attempts().is_empty());
}

async fn is_closed(cluster: &Cluster, run: &str) -> bool {
    let stored = cluster.text(&cluster.tree.accepted_trigger(run)).await.unwrap();
    Trigger::read(stored.as_bytes()).unwrap().ended_at.is_some()
}

#[tokio::test(start_paused = true)]
async fn trigger_expires_by_the_clock_of_the_registry() {
    for (hours, outlives) in [(-2, true), (2, false)] {
        let cluster = Cluster::new().await;
        let handler = TestHandler::blocked();
        let (_node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
        accept(&cluster, TriggerRequest::default()).await;
        let console = cluster.connect().await;
        let wrong = cluster.clock.now() + jiff::SignedDuration::from_hours(hours);
        let admin = admin(&cluster, &console).clock(Arc::new(ManualClock::at(wrong)));
        let expires_in = Some(Duration::from_mins(if outlives { 60 } else { 1 }));
        let request = TriggerRequest { expires_in, ..TriggerRequest::default() };

        let run = admin.trigger(&settle(), request).await.unwrap().run.to_string();
        cluster.advance_seconds(100).await;
        handler.unblock();
        cluster.advance_seconds(60).await;

        let entry = entry(&cluster, &run, 0).await;
        if outlives {
            assert_eq!(outcome(entry.as_ref()), Some(Outcome::Succeeded), "{hours} h: {entry:?}");
        } else {
            assert_eq!(entry, Some(ShardEntry::Skipped(SkipReason::Expired)), "{hours} h");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_trigger_costs_the_same_however_many_are_open() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    for _ in 0..100 {
        accept(&cluster, TriggerRequest::default()).await;
    }
    let before = connection.requests();

    accept(&cluster, TriggerRequest::default()).await;

    let cost = connection.requests() - before;
    assert!(cost.reads <= 6 && cost.writes <= 2, "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn open_triggers_run_in_the_order_in_which_they_were_accepted() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (node, _connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    handler.block();
    let mut runs = Vec::new();
    for minutes in [0, 50, 10, 40, 20, 30] {
        let console = cluster.connect().await;
        let shown = cluster.clock.now() + jiff::SignedDuration::from_mins(minutes);
        let admin = admin(&cluster, &console).clock(Arc::new(ManualClock::at(shown)));
        let accepted = admin.trigger(&settle(), TriggerRequest::default()).await.unwrap();
        runs.push(accepted.run.to_string());
        cluster.settle().await;
    }
    let next = TestHandler::immediate();
    let (_next, _connection) = cluster.node(2, on_demand(job(1)), &next).await;
    cluster.stop(node).await;
    cluster.advance_seconds(60).await;

    let ran: Vec<String> = next.attempts().into_iter().map(|attempt| attempt.run).collect();
    assert_eq!(ran, runs[1..]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_page_of_a_triggered_shard_is_reported_once() {
    let cluster = Cluster::new().await;
    let (handler, missed) = (TestHandler::immediate(), MissedFires::default());
    let listener = Arc::new(missed.clone());
    let (_node, _connection) =
        cluster.node_with(1, on_demand(job(2)), &handler, |job| job.listener(listener)).await;
    cluster.write(&cluster.tree.ledger_page(0), "not a page").await;

    accept(&cluster, TriggerRequest::default()).await;
    cluster.advance_seconds(300).await;

    assert_eq!(handler.attempts().len(), 1);
    assert_eq!(missed.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn trigger_of_a_removed_job_never_runs_in_the_next_job_of_that_name() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (node, connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    accept(&cluster, TriggerRequest::default()).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    drop(node);
    connection.die().await;
    // Java ElasticJob's console removes a job and knows nothing of stored triggers.
    cluster.remove(cluster.tree.root()).await;

    let next = TestHandler::immediate();
    let (_node, _connection) = cluster.node(2, on_demand(job(1)), &next).await;
    cluster.advance_seconds(60).await;

    assert!(next.attempts().is_empty(), "{:?}", next.attempts());
    assert_eq!(entry(&cluster, &run, 0).await, Some(ShardEntry::Skipped(SkipReason::Vanished)));
    assert!(is_closed(&cluster, &run).await);
}

#[tokio::test(start_paused = true)]
async fn trigger_of_another_user_stops_no_fire() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, _connection) = cluster.node(1, job(1), &handler).await;
    let run = accept(&cluster, TriggerRequest::default()).await;
    cluster.advance_seconds(2).await;
    let text = cluster.text(&cluster.tree.accepted_trigger(&run)).await.unwrap();
    let stranger = Digest { user: "stranger".to_owned(), password: "secret".to_owned() };
    let stranger = cluster.server.join_as("shop".parse().unwrap(), Some(stranger)).await.unwrap();
    let foreign = RunId::triggered(7);
    let path = cluster.tree.accepted_trigger(&foreign);
    stranger.create(Create::persistent(&path, text)).await.unwrap();
    handler.clear();

    let own_id = cluster.children(&cluster.tree.instances()).await.remove(0);
    cluster.write(&cluster.tree.trigger(own_id), r#"{"v":1,"look":""}"#).await;
    cluster.advance_seconds(61).await;

    let fires: BTreeSet<String> =
        handler.attempts().into_iter().map(|attempt| attempt.due_at).collect();
    assert!(fires.len() >= 12, "{fires:?}");
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_triggers_run_once_each_in_order_at_a_fixed_cost() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, on_demand(job(1)), &handler).await;
    handler.block();
    let mut runs = Vec::new();
    let console = cluster.connect().await;
    let admin = admin(&cluster, &console);
    for number in 0..300_u128 {
        let run = RunId::triggered(number);
        let request = TriggerRequest { run: Some(run.clone()), ..TriggerRequest::default() };
        admin.trigger(&settle(), request).await.unwrap();
        runs.push(run.to_string());
    }
    cluster.settle().await;
    let before = connection.requests();
    handler.unblock();
    cluster.advance_seconds(60).await;

    let ran: Vec<String> = handler.attempts().into_iter().map(|attempt| attempt.run).collect();
    assert_eq!(ran, runs);
    // Two for each run, one that says that it has ended, and those that remove all but the last hundred.
    let cost = connection.requests() - before;
    assert!(cost.writes <= 2 * 300 + 300 + 200 + 10, "{cost:?}");
    assert!(cost.reads <= 5 * 300, "{cost:?}");
    assert_eq!(cluster.children(&cluster.tree.accepted_triggers()).await.len(), 100);
}

/// Stores a trigger for all shards as a console does that dies before it has rung any doorbell.
async fn store_silently(cluster: &Cluster, run: &RunId, shards: u32, is_ended: bool) {
    let now = cluster.clock.now();
    let none = ShardRanges::default();
    let request = TriggerRequest::default();
    let mut trigger = Trigger::new(&request, 0, (0..shards).collect(), none, now);
    trigger.ended_at = is_ended.then_some(now);
    let data = String::from_utf8(trigger.to_bytes()).unwrap();
    cluster.write(&cluster.tree.accepted_trigger(run), &data).await;
}

#[tokio::test(start_paused = true)]
async fn owner_without_a_doorbell_is_reminded_by_the_steward() {
    let cluster = Cluster::new().await;
    let (first, second) = (TestHandler::immediate(), TestHandler::immediate());
    let (_first_node, _first) = cluster.node(1, on_demand(job(2)), &first).await;
    let (_second_node, _second) = cluster.node(2, on_demand(job(2)), &second).await;
    let run = RunId::triggered(7);
    store_silently(&cluster, &run, 2, false).await;
    let leader = cluster.text(&cluster.tree.leader()).await.unwrap();

    cluster.write(&cluster.tree.trigger(leader), r#"{"v":1,"look":""}"#).await;
    cluster.advance_seconds(70).await;

    assert_eq!(shards_of(&run.to_string(), &[&first, &second]), [0, 1]);
}

/// A Rust instance that owns both shards, beside a Java leader.
async fn beside_java(
    cluster: &Cluster,
    handler: &TestHandler,
) -> (RunningNode, JavaInstance, String) {
    let java = cluster.java("10.0.0.3@-@4711").await;
    java.become_leader(&cluster.tree).await;
    let (node, _connection) = cluster.node(1, on_demand(job(2)), handler).await;
    let ids = cluster.children(&cluster.tree.instances()).await;
    let ours = ids.into_iter().find(|id| *id != java.id).unwrap();
    cluster.assign_as_java_leader(&[&ours, &ours]).await;
    cluster.settle().await;
    (node, java, ours)
}

#[tokio::test(start_paused = true)]
async fn shard_that_moves_to_java_before_it_runs_is_reported() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, java, ours) = beside_java(&cluster, &handler).await;
    accept(&cluster, TriggerRequest::default()).await;
    let run = accept(&cluster, TriggerRequest::default()).await;

    handler.unblock_shard(1);
    cluster.advance_seconds(2).await;
    cluster.assign_as_java_leader(&[&ours, java.id]).await;
    cluster.advance_seconds(5).await;
    handler.unblock();
    cluster.advance_seconds(40).await;

    assert_eq!(shards_of(&run, &[&handler]), [0]);
    assert_eq!(entry(&cluster, &run, 1).await, Some(ShardEntry::Skipped(SkipReason::MovedToJava)));
    assert!(is_closed(&cluster, &run).await);
}

#[tokio::test(start_paused = true)]
async fn trigger_of_java_deletes_no_pending_trigger() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::blocked();
    let (_node, java, ours) = beside_java(&cluster, &handler).await;
    accept(&cluster, TriggerRequest::default()).await;
    let by = Some("ann".to_owned());
    let run = accept(&cluster, TriggerRequest { by, ..TriggerRequest::default() }).await;

    // Java's console deletes all doorbells, then rings all of them.
    cluster.remove(&cluster.tree.triggers()).await;
    for id in [java.id, &ours] {
        cluster.write(&cluster.tree.trigger(id), "").await;
    }
    cluster.advance_seconds(5).await;
    handler.unblock();
    cluster.advance_seconds(40).await;

    assert_eq!(shards_of(&run, &[&handler]), [0, 1]);
    let runs: BTreeSet<String> =
        handler.attempts().into_iter().map(|attempt| attempt.run).collect();
    assert_eq!((runs.len(), handler.attempts().len()), (3, 6), "Java's own trigger runs, too");
}

#[tokio::test(start_paused = true)]
async fn doorbell_of_a_dead_java_instance_is_removed() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, java, ours) = beside_java(&cluster, &handler).await;
    cluster.assign_as_java_leader(&[&ours, java.id]).await;
    cluster.settle().await;
    let doorbell = cluster.tree.trigger(java.id);

    let run = accept(&cluster, TriggerRequest::default()).await;
    assert!(cluster.exists(&doorbell).await);
    java.die().await;
    cluster.advance_seconds(RECHECK_SECONDS).await;

    assert!(!cluster.exists(&doorbell).await);
    assert_eq!(shards_of(&run, &[&handler]), [0]);
    let stored = cluster.text(&cluster.tree.accepted_trigger(&run)).await.unwrap();
    let delegated = Trigger::read(stored.as_bytes()).unwrap().delegated;
    assert_eq!(delegated.iter().collect::<Vec<_>>(), [1], "the answer says so");
}

#[tokio::test(start_paused = true)]
async fn fire_costs_two_requests_beside_open_and_closed_triggers() {
    for has_open in [false, true] {
        let cluster = Cluster::new().await;
        let handler = TestHandler::immediate();
        for number in 0..100 {
            store_silently(&cluster, &RunId::triggered(number), 2, true).await;
        }
        cluster.hold_elsewhere(1, "2026-11-15T05:59:55Z").await;
        let (_node, connection) = cluster.node(1, job(2), &handler).await;
        cluster.advance_seconds(7).await;
        if has_open {
            accept(&cluster, only(&[1])).await;
        }
        cluster.advance_seconds(60).await;
        let (before, ran) = (connection.requests(), handler.attempts().len());

        cluster.advance_seconds(60).await;

        let (cost, fires) = (connection.requests() - before, handler.attempts().len() - ran);
        assert_eq!(fires, 12);
        assert_eq!(cost.writes, 2 * fires, "open: {has_open}, {cost:?}");
    }
}
