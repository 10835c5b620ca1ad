//! Shards that cannot start for a while, or until an operator acts: what is reported of them, and what goes on beside them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use elasticjob::{
    coordination::ledger::{LedgerPage, LedgerState},
    execution::Listener,
    job::{CatchUp, InstanceId, JobName, RunId},
};

use crate::{
    cluster::{Cluster, job},
    members::with_failover,
    nodes::TestHandler,
};

/// Counts missed fires.
#[derive(Clone, Default)]
pub(crate) struct MissedFires(Arc<AtomicUsize>);

impl Listener for MissedFires {
    fn missed(&self, _: &JobName, fires: usize) {
        self.0.fetch_add(fires, Ordering::Relaxed);
    }
}

impl MissedFires {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Cluster {
    /// A live instance elsewhere runs the shard, as only the ledger shows. Returns the page.
    pub(crate) async fn hold_elsewhere(&self, shard: u32, due_at: &str) -> LedgerPage {
        let holder: InstanceId = "10.0.0.9@-@4711-00000007".parse().unwrap();
        let due_at = due_at.parse().unwrap();
        let page = LedgerPage {
            run: Some(RunId::scheduled("settle".parse().unwrap(), due_at)),
            due_at: Some(due_at),
            attempt: 1,
            state: LedgerState::Running,
            holder: Some(holder.clone()),
            ..LedgerPage::default()
        };
        self.write(&self.tree.process(&holder), "").await;
        self.write_page(shard, &page).await;
        page
    }

    pub(crate) async fn write_page(&self, shard: u32, page: &LedgerPage) {
        let text = String::from_utf8(page.to_bytes()).unwrap();
        self.write(&self.tree.ledger_page(shard), &text).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_page_is_read_once_in_each_try() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let (_node, connection) = cluster.node(1, job(2), &handler).await;
    cluster.write(&cluster.tree.ledger_page(0), "not a page").await;
    cluster.advance_seconds(6).await;
    let before = connection.requests();

    cluster.advance_seconds(5).await;

    // The fire, and what it may have missed.
    let requests = connection.requests() - before;
    assert!(requests.reads <= 2, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn misfire_of_an_unreadable_shard_counts_as_missed() {
    let cluster = Cluster::new().await;
    let (handler, missed) = (TestHandler::blocked(), MissedFires::default());
    cluster.write(&cluster.tree.ledger_page(0), "not a page").await;
    let listener = Arc::new(missed.clone());
    let (_node, _connection) =
        cluster.node_with(1, job(2), &handler, |job| job.listener(listener)).await;
    cluster.advance_seconds(6).await;
    assert_eq!(missed.count(), 1);

    // The other shard still runs when the next fire is due.
    cluster.advance_seconds(6).await;
    handler.unblock();
    cluster.advance_seconds(1).await;

    assert_eq!(handler.attempts().len(), 2);
    assert_eq!(missed.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreadable_flagged_shard_is_tried_ever_more_rarely() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    let hourly = with_failover(2).cron("5 0 * * * ?").unwrap();
    let (_node, connection) = cluster.node(1, hourly, &handler).await;
    cluster.write(&cluster.tree.ledger_page(0), "not a page").await;
    cluster.write(&cluster.tree.failover_item(0), "").await;
    cluster.advance_seconds(10).await;
    let before = connection.requests();

    cluster.advance_seconds(60).await;

    let requests = connection.requests() - before;
    assert!(requests.writes < 20, "{requests:?}: a turn in the latch takes two writes");
}

#[tokio::test(start_paused = true)]
async fn postponed_catch_up_reports_missed_fires_once() {
    let cluster = Cluster::new().await;
    let (handler, missed) = (TestHandler::immediate(), MissedFires::default());
    let page = cluster.hold_elsewhere(0, "2026-11-15T02:30:00Z").await;
    let job = job(1).cron("0 30 * * * ?").unwrap().catch_up(CatchUp::Last);
    let listener = Arc::new(missed.clone());
    let (_node, _connection) =
        cluster.node_with(1, job, &handler, |job| job.listener(listener)).await;

    cluster.advance(Duration::from_mins(3)).await;
    assert_eq!((handler.attempts().len(), missed.count()), (0, 0));

    cluster.write_page(0, &LedgerPage { state: LedgerState::Done, ..page }).await;
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(handler.attempts().len(), 1, "the fire of 05:30");
    assert_eq!(missed.count(), 2, "the fires of 03:30 and 04:30");
}

#[tokio::test(start_paused = true)]
async fn due_fire_does_not_wait_for_a_postponed_trigger() {
    let cluster = Cluster::new().await;
    let handler = TestHandler::immediate();
    cluster.hold_elsewhere(0, "2026-11-15T05:59:55Z").await;
    let (_node, _connection) = cluster.node(1, job(2), &handler).await;
    let own_id = cluster.children(&cluster.tree.instances()).await.remove(0);
    cluster.write(&cluster.tree.trigger(&own_id), "").await;

    // The trigger waits for shard 0 until the fire is due, and is postponed.
    cluster.advance(Duration::from_millis(5_300)).await;

    let due = handler.attempts().into_iter().filter(|attempt| attempt.due_at.ends_with(":05Z"));
    assert_eq!(due.map(|attempt| attempt.item).collect::<Vec<_>>(), [1]);
}
