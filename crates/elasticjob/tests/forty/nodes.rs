//! Whole nodes, with handlers that note what they are given and end when they are let.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    execution::Failure,
    history::{Recorder, Sink},
    job::{FencingToken, Job, Reason, Shard},
    node::{Node, NodeJob, Running},
    registry::Registry,
    runtime::{CancelReason, Clock},
    schedule::Zone,
    testing::ManualClock,
};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::stage::{Line, Stage};

/// One try of a shard.
#[derive(Debug, Clone)]
pub(crate) struct Try {
    pub(crate) item: u32,
    pub(crate) due_at: String,
    pub(crate) run: String,
    pub(crate) reason: Reason,
    pub(crate) token: FencingToken,
    pub(crate) parameter: String,
    /// Why it was told to end, and when.
    pub(crate) cancelled: Option<(CancelReason, Timestamp)>,
}

/// What one node ran.
#[derive(Clone)]
pub(crate) struct Book {
    tries: Arc<Mutex<Vec<Try>>>,
    open: Arc<watch::Sender<bool>>,
    fails: bool,
}

impl Book {
    /// Shards end at once.
    pub(crate) fn open() -> Self {
        Self { tries: Arc::default(), open: Arc::new(watch::Sender::new(true)), fails: false }
    }

    /// Shards end when they are let.
    pub(crate) fn closed() -> Self {
        let book = Self::open();
        book.close();
        book
    }

    /// Shards fail at once.
    pub(crate) fn failing() -> Self {
        Self { fails: true, ..Self::open() }
    }

    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn let_end(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn tries(&self) -> Vec<Try> {
        self.tries.lock().unwrap().clone()
    }

    /// The shards and reasons, sorted.
    pub(crate) fn what(&self) -> Vec<(u32, Reason)> {
        let mut what: Vec<_> = self.tries().iter().map(|one| (one.item, one.reason)).collect();
        what.sort_by_key(|(item, reason)| (*item, format!("{reason:?}")));
        what
    }

    pub(crate) fn clear(&self) {
        self.tries.lock().unwrap().clear();
    }

    async fn run(self, shard: Shard, clock: ManualClock) -> Result<(), Failure> {
        let place = {
            let mut tries = self.tries.lock().unwrap();
            tries.push(Try {
                item: shard.item,
                due_at: shard.due_at.to_string(),
                run: shard.run.to_string(),
                reason: shard.attempt.reason,
                token: shard.token,
                parameter: shard.job_parameter.clone(),
                cancelled: None,
            });
            tries.len() - 1
        };
        let mut open = self.open.subscribe();
        tokio::select! {
            _ = open.wait_for(|open| *open) => {}
            reason = shard.cancel().cancelled() => {
                self.tries.lock().unwrap()[place].cancelled = Some((reason, clock.now()));
                return Err(Failure::new("told to end"));
            }
        }
        if self.fails { Err(Failure::new("always")) } else { Ok(()) }
    }
}

impl Stage {
    /// A node on this host that runs the job; on return everybody has come to rest.
    pub(crate) async fn node(&self, host: u8, job: Job, book: &Book) -> (Running, Line) {
        self.node_with(host, job, book, |job| job).await
    }

    pub(crate) async fn node_with(
        &self,
        host: u8,
        job: Job,
        book: &Book,
        with: impl FnOnce(NodeJob) -> NodeJob,
    ) -> (Running, Line) {
        self.start(host, job, book, |node, job| node.with(with(job))).await
    }

    /// The same, and what happens on it is told to this one.
    pub(crate) async fn node_told(
        &self,
        host: u8,
        job: Job,
        book: &Book,
        sink: Arc<dyn Sink>,
    ) -> (Running, Line) {
        let recorder = Recorder::new().sink("told", sink);
        self.start(host, job, book, |node, job| node.history(recorder).with(job)).await
    }

    async fn start(
        &self,
        host: u8,
        job: Job,
        book: &Book,
        with: impl FnOnce(Node, NodeJob) -> Node,
    ) -> (Running, Line) {
        let line = self.line().await;
        let (book, clock) = (book.clone(), self.clock.clone());
        let handler = move |shard: Shard| book.clone().run(shard, clock.clone());
        let node = Node::on(Arc::clone(&line.registry) as Arc<dyn Registry>)
            .address([10, 0, 0, host].into())
            .clock(Arc::new(self.clock.clone()))
            .zone(Zone::utc());
        let node = with(node, NodeJob::code(job, handler)).start().await.unwrap();
        self.settle().await;
        (node, line)
    }

    /// Stops a node while time passes; says how long that took.
    pub(crate) async fn stop(&self, node: Running) -> Duration {
        let before = self.clock.monotonic();
        let stop = node.stop();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return self.clock.monotonic().saturating_since(before),
                () = self.pass_seconds(1) => {}
            }
            let took = self.clock.monotonic().saturating_since(before);
            assert!(took < Duration::from_mins(10), "the node does not stop");
        }
    }
}
