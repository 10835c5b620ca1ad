//! Whole nodes whose handlers record their attempts and block until the test unblocks them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    execution::Failure,
    history::{Recorder, Sink},
    job::{FencingToken, Job, RunReason, Shard},
    node::{Node, NodeJob, RunningNode},
    registry::Registry,
    runtime::{CancelReason, Clock},
    schedule::Zone,
    testing::ManualClock,
};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cluster::{Cluster, Connection};

/// One attempt, as the handler saw it.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) item: u32,
    pub(crate) due_at: String,
    pub(crate) run: String,
    pub(crate) reason: RunReason,
    pub(crate) token: FencingToken,
    pub(crate) parameter: String,
    /// Why and when the attempt was cancelled.
    pub(crate) cancelled: Option<(CancelReason, Timestamp)>,
}

/// A handler that records its attempts. Clones share the record.
#[derive(Clone)]
pub(crate) struct TestHandler {
    attempts: Arc<Mutex<Vec<Attempt>>>,
    may_finish: Arc<watch::Sender<bool>>,
    /// Shards that may finish although others may not.
    may_finish_alone: Arc<watch::Sender<BTreeSet<u32>>>,
    is_failing: bool,
}

impl TestHandler {
    /// Every attempt succeeds at once.
    pub(crate) fn immediate() -> Self {
        Self {
            attempts: Arc::default(),
            may_finish: Arc::new(watch::Sender::new(true)),
            may_finish_alone: Arc::default(),
            is_failing: false,
        }
    }

    /// Every attempt blocks until [`unblock`](Self::unblock) is called.
    pub(crate) fn blocked() -> Self {
        let handler = Self::immediate();
        handler.block();
        handler
    }

    /// Every attempt fails at once.
    pub(crate) fn failing() -> Self {
        Self { is_failing: true, ..Self::immediate() }
    }

    pub(crate) fn block(&self) {
        self.may_finish.send_replace(false);
    }

    pub(crate) fn unblock(&self) {
        self.may_finish.send_replace(true);
    }

    /// Lets the attempts of one shard finish.
    pub(crate) fn unblock_shard(&self, shard: u32) {
        self.may_finish_alone.send_if_modified(|shards| shards.insert(shard));
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }

    /// Shard and reason of every attempt, sorted.
    pub(crate) fn shards_and_reasons(&self) -> Vec<(u32, RunReason)> {
        let mut shards_and_reasons: Vec<_> =
            self.attempts().iter().map(|attempt| (attempt.item, attempt.reason)).collect();
        shards_and_reasons.sort_by_key(|(item, reason)| (*item, format!("{reason:?}")));
        shards_and_reasons
    }

    pub(crate) fn clear(&self) {
        self.attempts.lock().unwrap().clear();
    }

    async fn run(self, shard: Shard, clock: ManualClock) -> Result<(), Failure> {
        let index = {
            let mut attempts = self.attempts.lock().unwrap();
            attempts.push(Attempt {
                item: shard.item,
                due_at: shard.due_at.to_string(),
                run: shard.run.to_string(),
                reason: shard.attempt.reason,
                token: shard.token,
                parameter: shard.job_parameter.clone(),
                cancelled: None,
            });
            attempts.len() - 1
        };
        let mut may_finish = self.may_finish.subscribe();
        let mut may_finish_alone = self.may_finish_alone.subscribe();
        tokio::select! {
            _ = may_finish.wait_for(|may_finish| *may_finish) => {}
            _ = may_finish_alone.wait_for(|shards| shards.contains(&shard.item)) => {}
            reason = shard.cancel().cancelled() => {
                self.attempts.lock().unwrap()[index].cancelled = Some((reason, clock.now()));
                return Err(Failure::new("cancelled"));
            }
        }
        if self.is_failing { Err(Failure::new("always")) } else { Ok(()) }
    }
}

impl Cluster {
    /// Starts a node on this host that runs the job; returns when all tasks are idle.
    pub(crate) async fn node(
        &self,
        host: u8,
        job: Job,
        handler: &TestHandler,
    ) -> (RunningNode, Connection) {
        self.node_with(host, job, handler, |job| job).await
    }

    pub(crate) async fn node_with(
        &self,
        host: u8,
        job: Job,
        handler: &TestHandler,
        with: impl FnOnce(NodeJob) -> NodeJob,
    ) -> (RunningNode, Connection) {
        self.start(host, job, handler, |node, job| node.with(with(job))).await
    }

    /// Starts a node that sends its history to `sink`.
    pub(crate) async fn node_with_sink(
        &self,
        host: u8,
        job: Job,
        handler: &TestHandler,
        sink: Arc<dyn Sink>,
    ) -> (RunningNode, Connection) {
        let recorder = Recorder::new().sink("test", sink);
        self.start(host, job, handler, |node, job| node.history(recorder).with(job)).await
    }

    /// Starts a node that has a clock of its own.
    pub(crate) async fn node_with_clock(
        &self,
        host: u8,
        job: Job,
        handler: &TestHandler,
        clock: Arc<dyn Clock>,
    ) -> (RunningNode, Connection) {
        self.start(host, job, handler, |node, job| node.clock(clock).with(job)).await
    }

    async fn start(
        &self,
        host: u8,
        job: Job,
        handler: &TestHandler,
        with: impl FnOnce(Node, NodeJob) -> Node,
    ) -> (RunningNode, Connection) {
        let connection = self.connect().await;
        let (test_handler, clock) = (handler.clone(), self.clock.clone());
        let handler = move |shard: Shard| test_handler.clone().run(shard, clock.clone());
        let node = Node::on(Arc::clone(&connection.registry) as Arc<dyn Registry>)
            .address([10, 0, 0, host].into())
            .clock(Arc::new(self.clock.clone()))
            .zone(Zone::utc());
        let node = with(node, NodeJob::code(job, handler)).start().await.unwrap();
        self.settle().await;
        (node, connection)
    }

    /// Stops a node while the clock advances; returns how long that took.
    pub(crate) async fn stop(&self, node: RunningNode) -> Duration {
        let before = self.clock.monotonic();
        let stop = node.stop();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return self.clock.monotonic().saturating_since(before),
                () = self.advance_seconds(1) => {}
            }
            let took = self.clock.monotonic().saturating_since(before);
            assert!(took < Duration::from_mins(10), "the node did not stop");
        }
    }
}
