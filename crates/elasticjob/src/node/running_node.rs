//! A started node: jobs are added, updated and removed while it runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;

use super::{
    clock_check,
    error::NodeError,
    job::NodeJob,
    job_loop::{JobLoop, LocalJob, NodeContext},
    lease_refresh,
};
use crate::{
    history::Recording,
    job::{Job, JobName},
    registry::{Registry, Session},
    runtime::{CancelReason, CancelToken, Tasks},
};

/// How many jobs a starting node joins concurrently.
const CONCURRENT_JOINS: usize = 128;

/// How long the delivery of pending alerts may take when the node stops.
const ALERT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long storing pending history may take when the node stops; the rest is spilled to a file.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long spilling may take after that.
const SPILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long leaving a job may take after its last run has ended.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);

/// A started node. Jobs can be added and removed while it runs. Dropping it ends it immediately; [`RunningNode::stop`] drains first.
pub struct RunningNode {
    node: Arc<NodeContext>,
    slots: Mutex<BTreeMap<JobName, JobSlot>>,
    /// Deliver alerts.
    alert_tasks: Tasks,
    recording: Option<Recording>,
    /// Write events to sinks.
    history_tasks: Tasks,
    // Dropped after the job loops, which need the timer until they end.
    _background: Tasks,
}

/// The state of one job on this node.
enum JobSlot {
    Joining,
    Active {
        tasks: Tasks,
        local: Arc<LocalJob>,
        stop: CancelToken,
        ready: watch::Receiver<bool>,
    },
    /// Running shards may finish; nothing new starts.
    Leaving,
}

impl RunningNode {
    pub(super) async fn start(
        node: Arc<NodeContext>,
        alert_tasks: Tasks,
        (recording, history_tasks): (Option<Recording>, Tasks),
        jobs: Vec<NodeJob>,
    ) -> Result<Self, NodeError> {
        let mut background = Tasks::new();
        background.spawn(node.timer.clone().run());
        background.spawn(node.history.clone().flush_output());
        background.spawn(clock_check::run(
            Arc::clone(&node.schedule_clock),
            Arc::clone(&node.registry),
            Arc::clone(&node.identity),
            Arc::clone(&node.randomness),
        ));
        background.spawn(lease_refresh::run(Arc::clone(&node.registry), Arc::clone(&node.clock)));
        let running = Self {
            node,
            slots: Mutex::default(),
            alert_tasks,
            recording,
            history_tasks,
            _background: background,
        };
        // Concurrent, so that a thousand jobs join within a few round trips; limited, so that joining does not need the memory of a thousand.
        let mut joining = stream::iter(jobs.into_iter().map(|job| running.add(job)))
            .buffer_unordered(CONCURRENT_JOINS);
        while joining.next().await.transpose()?.is_some() {}
        drop(joining);
        Ok(running)
    }

    /// Joins one more job. When this returns, the node takes part in it.
    ///
    /// ```no_run
    /// # async fn example(running: &elasticjob::node::RunningNode) -> Result<(), Box<dyn std::error::Error>> {
    /// use elasticjob::{job::{Job, Shard}, node::NodeJob};
    ///
    /// let job = Job::named("clean-up")?.cron("0 0 3 * * ?")?;
    /// let name = job.name.clone();
    /// running.add(NodeJob::code(job, |_: Shard| async { Ok::<(), std::io::Error>(()) })).await?;
    /// running.remove(&name).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add(&self, job: NodeJob) -> Result<(), NodeError> {
        let name = job.job.name.clone();
        let reservation = self.reserve(&name)?;
        let stop = self.node.stop.child();
        let (ready_sender, ready) = watch::channel(false);
        let job_loop = JobLoop::new(Arc::clone(&self.node), job, stop.clone(), ready_sender);
        let member = job_loop.join().await?;
        let local = Arc::clone(job_loop.local_job());
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(job_loop).run(member));
        reservation.fill(JobSlot::Active { tasks, local, stop, ready });
        Ok(())
    }

    /// Leaves a job: starts no more runs of it, lets running shards finish, and removes the instance from it. Returns `false` if the node does not
    /// run the job. The job itself stays in the registry, for other nodes and for a later [`RunningNode::add`].
    pub async fn remove(&self, job: &JobName) -> bool {
        let slot = {
            let mut slots = self.lock();
            match slots.get(job) {
                Some(JobSlot::Active { .. }) => slots.insert(job.clone(), JobSlot::Leaving),
                Some(JobSlot::Joining | JobSlot::Leaving) | None => None,
            }
        };
        let Some(JobSlot::Active { tasks, stop, .. }) = slot else { return false };
        let _reservation = Reservation { running: self, job };
        stop.cancel(CancelReason::ShuttingDown);
        if !tasks.finish(self.stop_timeout()).await {
            tracing::error!(%job, "job did not stop in time, aborted");
        }
        true
    }

    /// Changes the definition of a job that this node runs. As on joining, the stored configuration takes precedence and differences are logged,
    /// unless the job [overwrites](crate::job::Overwrite) it; then the change takes effect immediately on all instances. Returns `false` if the node
    /// does not run the job.
    ///
    /// ```no_run
    /// # async fn example(running: &elasticjob::node::RunningNode) -> Result<(), Box<dyn std::error::Error>> {
    /// use elasticjob::job::{Job, Overwrite};
    ///
    /// let job = Job::named("clean-up")?.cron("0 0 4 * * ?")?.overwrite(Overwrite::LocalWins);
    /// assert!(running.update(job).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update(&self, job: Job) -> Result<bool, NodeError> {
        let local = match self.lock().get(&job.name) {
            Some(JobSlot::Active { local, ready, .. }) if ready.has_changed().is_ok() => {
                Arc::clone(local)
            }
            _ => return Ok(false),
        };
        local.update(&*self.node.registry, job).await?;
        Ok(true)
    }

    /// Whether the node's part in a job was ended from outside: the instance was shut down, or the job was removed. The node keeps the job's entry
    /// until it is [removed](RunningNode::remove).
    pub fn has_ended(&self, job: &JobName) -> bool {
        // The job loop holds the sender, so the channel is closed once the loop has ended.
        matches!(self.lock().get(job), Some(JobSlot::Active { ready, .. }) if ready.has_changed().is_err())
    }

    /// The jobs this node takes part in.
    pub fn jobs(&self) -> Vec<JobName> {
        let slots = self.lock();
        let active = slots.iter().filter(|(_, slot)| matches!(slot, JobSlot::Active { .. }));
        active.map(|(name, _)| name.clone()).collect()
    }

    /// Whether every job of this node can run a fire now: the registry answers, and the owner of each shard is known. A job whose part [was
    /// ended from outside](RunningNode::has_ended) does not count.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(|slot| match slot {
            JobSlot::Active { ready, .. } => *ready.borrow() || ready.has_changed().is_err(),
            JobSlot::Leaving => true,
            JobSlot::Joining => false,
        })
    }

    /// The session with the registry: whether it is connected, and until when it is trusted.
    pub fn session(&self) -> Session {
        self.node.registry.session()
    }

    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.node.registry
    }

    /// Begins to stop: no job starts a new run, and each is left when its running shards have finished. [`RunningNode::stop`] waits for that. For
    /// programs that have something else to finish meanwhile.
    pub fn begin_stop(&self) {
        self.node.stop.cancel(CancelReason::ShuttingDown);
    }

    /// The state of the recording, if the node [records a history](super::Node::history).
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Starts nothing new, lets running shards finish, leaves every job, and ends the session.
    pub async fn stop(self) {
        self.begin_stop();
        let timeout = self.stop_timeout();
        let slots = std::mem::take(&mut *self.lock());
        let all = slots.into_iter().filter_map(|(job, slot)| match slot {
            JobSlot::Active { tasks, .. } => Some(async move {
                if !tasks.finish(timeout).await {
                    tracing::error!(%job, "job did not stop in time, aborted");
                }
            }),
            JobSlot::Joining | JobSlot::Leaving => None,
        });
        futures_util::future::join_all(all).await;
        let registry = Arc::clone(&self.node.registry);
        // Drops the last sender of alerts; the pending ones are delivered and the delivery ends.
        drop(self.node);
        if let Some(recording) = &self.recording {
            recording.close(HISTORY_TIMEOUT);
        }
        let (delivered, stored) = tokio::join!(
            self.alert_tasks.finish(ALERT_TIMEOUT),
            self.history_tasks.finish(HISTORY_TIMEOUT + SPILL_TIMEOUT)
        );
        if !delivered {
            tracing::error!("alerts not delivered in time");
        }
        if !stored {
            tracing::error!("history not stored in time");
        }
        registry.close().await;
    }

    /// The drain timeout, as long again for the grace period of cancelled runs, and the time to leave.
    fn stop_timeout(&self) -> Duration {
        self.node.drain * 2 + LEAVE_TIMEOUT
    }

    /// Reserves the job's only slot on this node while it is joined.
    fn reserve<'a>(&'a self, job: &'a JobName) -> Result<Reservation<'a>, NodeError> {
        let mut slots = self.lock();
        if slots.contains_key(job) {
            return Err(NodeError::duplicate_job(job, []));
        }
        slots.insert(job.clone(), JobSlot::Joining);
        Ok(Reservation { running: self, job })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, JobSlot>> {
        // No code panics while it holds this lock, so a poisoned map is consistent.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the slot on drop, unless it was filled.
struct Reservation<'a> {
    running: &'a RunningNode,
    job: &'a JobName,
}

impl Reservation<'_> {
    fn fill(self, slot: JobSlot) {
        self.running.lock().insert(self.job.clone(), slot);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut slots = self.running.lock();
        if matches!(slots.get(self.job), Some(JobSlot::Joining | JobSlot::Leaving)) {
            slots.remove(self.job);
        }
    }
}
