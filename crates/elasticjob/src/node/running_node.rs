//! A started node: jobs are added, updated and removed while it runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::stream::{self, StreamExt};
use tokio::sync::{oneshot, watch};

use super::{
    clock_check,
    error::NodeError,
    job::NodeJob,
    job_loop::{FirstJoin, IfRefused, JobLoop, LocalJob, NodeContext},
};
use crate::{
    coordination::member::JoinError,
    history::Recording,
    job::{Job, JobName},
    registry::{Error, Registry, Session},
    runtime::{CancelReason, CancelToken, Tasks},
};

/// How many jobs a starting node joins concurrently: enough for several full batches of the combiner.
const CONCURRENT_JOINS: usize = 512;

/// Time between two reports of a node that is joining its jobs.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

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
    Joining(ActiveJob),
    Active(ActiveJob),
    /// Nothing new starts. The job loop goes on until its runs have ended and nothing is left behind in the registry; then `ended` is closed.
    Leaving {
        tasks: Tasks,
        ended: watch::Receiver<bool>,
    },
}

/// A job whose loop runs.
struct ActiveJob {
    tasks: Tasks,
    local: Arc<LocalJob>,
    stop: CancelToken,
    /// Closed once the loop has ended.
    ready: watch::Receiver<bool>,
    /// Why what is stored for the job cannot be used, while it cannot.
    config_problem: watch::Receiver<Option<String>>,
}

impl ActiveJob {
    fn has_ended(&self) -> bool {
        self.ready.has_changed().is_err()
    }

    /// Ends the job loop.
    fn leave(self) -> JobSlot {
        self.stop.cancel(CancelReason::ShuttingDown);
        JobSlot::Leaving { tasks: self.tasks, ended: self.ready }
    }
}

impl JobSlot {
    /// Whether the job loop is over and the job was left.
    fn has_left(&self) -> bool {
        matches!(self, Self::Leaving { ended, .. } if ended.has_changed().is_err())
    }
}

impl RunningNode {
    /// Joins the jobs. If none could be joined because of what is stored for it, returns why; the node waits until that is mended.
    pub(super) async fn start(
        node: Arc<NodeContext>,
        alert_tasks: Tasks,
        (recording, history_tasks): (Option<Recording>, Tasks),
        jobs: Vec<NodeJob>,
    ) -> Result<(Self, Option<JoinError>), NodeError> {
        let mut background = Tasks::new();
        background.spawn(node.timer.clone().run());
        background.spawn(node.history.clone().flush_output());
        background.spawn(clock_check::run(
            Arc::clone(&node.schedule_clock),
            Arc::clone(node.sessions.first()),
            Arc::clone(&node.randomness),
        ));
        let running = Self {
            node,
            slots: Mutex::default(),
            alert_tasks,
            recording,
            history_tasks,
            _background: background,
        };
        let of = jobs.len();
        let clock = Arc::clone(&running.node.clock);
        let (mut joined, mut reported_at) = (0_usize, clock.monotonic());
        // Concurrent, so that thousands of jobs join within a few round trips; limited, so that joining does not need the memory of thousands.
        let mut joining =
            stream::iter(jobs.into_iter().map(|job| running.join(job, IfRefused::Wait)))
                .buffer_unordered(CONCURRENT_JOINS);
        let (mut is_any_joined, mut refusal) = (false, None);
        while let Some(first) = joining.next().await.transpose()? {
            match first {
                FirstJoin::Joined => is_any_joined = true,
                // Left alone, and waited for even if it is the only job.
                FirstJoin::Waiting(JoinError::Unreadable(_)) => {}
                FirstJoin::Waiting(error) => refusal = refusal.or(Some(error)),
            }
            joined += 1;
            if clock.monotonic() >= reported_at + PROGRESS_INTERVAL {
                reported_at = clock.monotonic();
                tracing::info!(joined, of, "joining jobs");
            }
        }
        drop(joining);
        Ok((running, refusal.filter(|_| !is_any_joined)))
    }

    /// Joins one more job. When this returns, the node takes part in it. If it fails or the future is dropped, the node does not; what was written
    /// is deleted in the background, and until then the job cannot be added again.
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
        self.join(job, IfRefused::Fail).await.map(drop)
    }

    async fn join(&self, job: NodeJob, if_refused: IfRefused) -> Result<FirstJoin, NodeError> {
        let name = job.job.name.clone();
        let (reservation, joined) = self.reserve(&name, job, if_refused)?;
        // Closed if the node is dropped meanwhile.
        let closed = || JoinError::Registry { job: name.to_string(), source: Error::Closed };
        let first = joined.await.unwrap_or_else(|_| Err(closed()))?;
        reservation.fill();
        Ok(first)
    }

    /// Leaves a job: starts no more runs of it and gives its other shards to other instances at once, lets running shards finish, and removes the
    /// instance from it. Returns `false` if the node does not run the job. The job itself stays in the registry, for other nodes and for a later
    /// [`RunningNode::add`].
    ///
    /// Waits at most until running shards had the time to finish and to be cancelled. If a handler or listener does not end even then, or if the
    /// registry is unreachable, the node goes on leaving in the background: only shards that still run stay held, and the job cannot be added
    /// again before they end.
    pub async fn remove(&self, job: &JobName) -> bool {
        let Some(mut ended) = self.begin_leaving(job) else { return false };
        let over = async { while ended.changed().await.is_ok() {} };
        if tokio::time::timeout(self.stop_timeout(), over).await.is_err() {
            tracing::error!(%job, "job is not left yet, leaving goes on in the background");
        }
        self.lock().retain(|name, slot| name != job || !slot.has_left());
        true
    }

    /// Ends the job loop of a job; the returned channel closes once the job is left. `None` if the node does not run the job.
    fn begin_leaving(&self, job: &JobName) -> Option<watch::Receiver<bool>> {
        let mut slots = self.lock();
        if !matches!(slots.get(job), Some(JobSlot::Active(_))) {
            return None;
        }
        let Some(JobSlot::Active(active)) = slots.remove(job) else { return None };
        let ended = active.ready.clone();
        slots.insert(job.clone(), active.leave());
        Some(ended)
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
            Some(JobSlot::Active(active)) if !active.has_ended() => Arc::clone(&active.local),
            _ => return Ok(false),
        };
        local.update(&**self.registry(), job, self.node.shard_limit).await?;
        Ok(true)
    }

    /// Whether the node's part in a job was ended from outside: the instance was shut down, or the job was removed. The node keeps the job's entry
    /// until it is [removed](RunningNode::remove).
    pub fn has_ended(&self, job: &JobName) -> bool {
        matches!(self.lock().get(job), Some(JobSlot::Active(active)) if active.has_ended())
    }

    /// The jobs this node takes part in.
    pub fn jobs(&self) -> Vec<JobName> {
        let slots = self.lock();
        let active = slots.iter().filter(|(_, slot)| matches!(slot, JobSlot::Active(_)));
        active.map(|(name, _)| name.clone()).collect()
    }

    /// Jobs that cannot be joined because of what is stored for them, and why: their configuration cannot be read, they belong to another handler, or
    /// the registry gives no access to their nodes. A job that ran before goes on with its last valid configuration until its session ends; the
    /// others are not joined. Each is joined again as soon as that is mended.
    pub fn invalid_jobs(&self) -> BTreeMap<JobName, String> {
        let slots = self.lock();
        let active = slots.iter().filter_map(|(name, slot)| match slot {
            JobSlot::Active(active) if !active.has_ended() => Some((name, active)),
            _ => None,
        });
        active
            .filter_map(|(name, active)| {
                Some((name.clone(), active.config_problem.borrow().clone()?))
            })
            .collect()
    }

    /// Whether every job of this node can run a fire now: the registry answers, and the owner of each shard is known. A job whose part [was
    /// ended from outside](RunningNode::has_ended) does not count, nor does one that [cannot be
    /// joined](RunningNode::invalid_jobs) because of what is stored for it, as long as another job can run.
    pub fn is_ready(&self) -> bool {
        let slots = self.lock();
        let (mut can_any_run, mut is_any_refused) = (false, false);
        for slot in slots.values() {
            match slot {
                JobSlot::Active(active) if active.has_ended() => {}
                JobSlot::Active(active) if *active.ready.borrow() => can_any_run = true,
                JobSlot::Active(active) if active.config_problem.borrow().is_some() => {
                    is_any_refused = true;
                }
                JobSlot::Active(_) | JobSlot::Joining(_) => return false,
                JobSlot::Leaving { .. } => {}
            }
        }
        can_any_run || !is_any_refused
    }

    /// The registry sessions of this node, each with its own connection. A node with few jobs has one; it opens another one when the ephemeral nodes
    /// of its jobs become too many for one session. They stay open until the node stops.
    pub fn sessions(&self) -> Vec<Session> {
        self.node.sessions.sessions().iter().map(|session| session.registry.session()).collect()
    }

    /// The session that the node started with: whether it is connected, and until when it is trusted.
    pub fn session(&self) -> Session {
        self.registry().session()
    }

    /// The connection that the node started with.
    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.node.sessions.first().registry
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
        let all = slots.into_iter().map(|(job, slot)| async move {
            let (JobSlot::Joining(ActiveJob { tasks, .. })
            | JobSlot::Active(ActiveJob { tasks, .. })
            | JobSlot::Leaving { tasks, .. }) = slot;
            if !tasks.finish(timeout).await {
                tracing::error!(%job, "job did not stop in time, aborted");
            }
        });
        futures_util::future::join_all(all).await;
        let sessions = Arc::clone(&self.node.sessions);
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
        sessions.close().await;
    }

    /// The drain timeout, as long again for the grace period of cancelled runs, and the time to leave.
    fn stop_timeout(&self) -> Duration {
        self.node.drain * 2 + LEAVE_TIMEOUT
    }

    /// Reserves the job's only slot on this node and begins to join the job; the channel says whether that succeeded.
    fn reserve<'a>(
        &'a self,
        name: &'a JobName,
        job: NodeJob,
        if_refused: IfRefused,
    ) -> Result<(Reservation<'a>, oneshot::Receiver<Result<FirstJoin, JoinError>>), NodeError> {
        let mut slots = self.lock();
        match slots.get(name) {
            Some(slot @ JobSlot::Leaving { .. }) if !slot.has_left() => {
                return Err(NodeError::StillLeaving { job: name.to_string() });
            }
            Some(JobSlot::Joining(_) | JobSlot::Active(_)) => {
                return Err(NodeError::duplicate_job(name, []));
            }
            Some(JobSlot::Leaving { .. }) | None => {}
        }
        let stop = self.node.stop.child();
        let (ready_sender, ready) = watch::channel(false);
        let node = Arc::clone(&self.node);
        let job_loop = JobLoop::new(node, job, stop.clone(), ready_sender, if_refused);
        let (local, config_problem) = (Arc::clone(job_loop.local_job()), job_loop.config_problem());
        let (answer, joined) = oneshot::channel();
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(job_loop).run(answer));
        let active = ActiveJob { tasks, local, stop, ready, config_problem };
        slots.insert(name.clone(), JobSlot::Joining(active));
        Ok((Reservation { running: self, job: name }, joined))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, JobSlot>> {
        // No code panics while it holds this lock, so a poisoned map is consistent.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that is being joined. On drop the join is undone, unless it has succeeded.
struct Reservation<'a> {
    running: &'a RunningNode,
    job: &'a JobName,
}

impl Reservation<'_> {
    fn fill(self) {
        let mut slots = self.running.lock();
        if let Some(JobSlot::Joining(active)) = slots.remove(self.job) {
            slots.insert(self.job.clone(), JobSlot::Active(active));
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut slots = self.running.lock();
        if !matches!(slots.get(self.job), Some(JobSlot::Joining(_))) {
            return;
        }
        if let Some(JobSlot::Joining(active)) = slots.remove(self.job) {
            let leaving = active.leave();
            if !leaving.has_left() {
                slots.insert(self.job.clone(), leaving);
            }
        }
    }
}
