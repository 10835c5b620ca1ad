//! Reconciles the jobs that run with the jobs that should run.
//!
//! ```text
//!   files ─────┐ desired jobs      running jobs ──▶ join | revise | leave (and prune)
//!              ├────────────▶ reconcile ──▲             │
//!   registry ──┘                          └─────────────┘ one operation at a time for each job
//! ```
//!
//! Decisions are level-triggered: after every change, and whenever an operation ends, the desired jobs are compared with the running ones.
//! A job of the files takes precedence over a registry job of the same name.
//!
//! When a job is removed from the files, the worker leaves it: running shards may finish, and the job stays in the registry for other instances and,
//! if the permissions of this worker allow it, for this one. With `--prune` the last instance that leaves also removes it from the registry; a job
//! that has instances is never removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    admin::{Admin, AdminError},
    execution::Listener,
    job::{JobName, ShardLimit},
    node::{JoinError, NodeError, NodeJob, RunningNode},
    registry::{self, Zxid},
    runtime::{Clock, Monotonic, SystemClock, Tasks},
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{
    metrics::Metrics,
    namespace_changes::NamespaceChanges,
    permissions::Permissions,
    registry_jobs::{RegistryJob, RegistryJobs},
    watched_files::WatchedFiles,
};
use crate::error::Error;
use elasticjob_jobfile::{Entry, Kind};

/// How often files are polled, and how often the namespace is listed at most.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a failed operation on a job is retried.
const RETRY_DELAY: Duration = Duration::from_secs(5);

const CONCURRENT_JOINS: usize = 128;

/// What the worker needs to turn definitions into node jobs.
#[derive(Clone)]
pub(super) struct WorkerContext {
    pub(super) permissions: Permissions,
    pub(super) metrics: Arc<Metrics>,
    /// Remove jobs from the registry when they are removed from the files.
    pub(super) prune: bool,
    /// How many shards a job may have.
    pub(super) max_shards: ShardLimit,
}

impl WorkerContext {
    pub(super) fn file_job(&self, entry: &Entry) -> Option<NodeJob> {
        self.node_job(entry.job.clone(), &entry.kind)
    }

    fn node_job(&self, job: elasticjob::Job, kind: &Kind) -> Option<NodeJob> {
        let job = match kind {
            Kind::Script => NodeJob::script(job),
            Kind::Http => NodeJob::http(job),
            Kind::Java(_) => return None,
        };
        let metrics = Arc::clone(&self.metrics) as Arc<dyn Listener>;
        Some(job.only_if(self.permissions.guard(kind)).listener(metrics))
    }
}

/// A job that should run, by where it is defined.
#[derive(Debug, Clone)]
enum DesiredJob {
    File(Arc<Entry>),
    Registry(Arc<RegistryJob>),
}

/// How a desired job differs from the running one.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Same,
    /// The same job with changed properties in the file.
    Revised,
    Different,
}

impl DesiredJob {
    fn kind(&self) -> &Kind {
        match self {
            Self::File(entry) => &entry.kind,
            Self::Registry(registry_job) => &registry_job.kind,
        }
    }

    fn change_to(&self, new: &Self) -> Change {
        match (self, new) {
            (Self::File(old), Self::File(new)) if old.kind == new.kind => {
                if old.job == new.job {
                    Change::Same
                } else {
                    Change::Revised
                }
            }
            // The node follows changes of the stored configuration by itself.
            (Self::Registry(old), Self::Registry(new))
                if (&old.kind, old.created) == (&new.kind, new.created) =>
            {
                Change::Same
            }
            _ => Change::Different,
        }
    }
}

/// State of a job in this worker.
enum JobState {
    /// An operation is under way.
    Busy,
    /// Joined. `retry_at` is set if the last change of its configuration failed.
    Running { desired: DesiredJob, retry_at: Option<Monotonic> },
    /// Joining failed.
    Failed {
        desired: DesiredJob,
        retry_at: Monotonic,
        /// Its stored configuration cannot be read.
        is_invalid: bool,
    },
}

/// Result of an operation on a job.
enum TaskResult {
    Joined {
        desired: DesiredJob,
        failed: Option<NodeError>,
    },
    Revised {
        desired: DesiredJob,
        failed: Option<NodeError>,
    },
    /// The job was left. `still_stored` is set if it should have been removed from the registry and was not; it tells which job of that name.
    Left {
        still_stored: Option<Zxid>,
    },
}

/// Keeps the jobs of a running node as files and registry define them.
pub(super) struct Reconciler {
    running: Arc<RunningNode>,
    context: WorkerContext,
    files: Option<WatchedFiles>,
    /// Set while the files cannot be used; this was logged.
    has_invalid_files: bool,
    file_jobs: BTreeMap<JobName, Arc<Entry>>,
    registry_jobs: RegistryJobs,
    namespace_changes: NamespaceChanges,
    /// Number of registry sessions of the node that the metrics track.
    tracked_sessions: usize,
    session_tracking: Tasks,
    /// Jobs that this worker pruned but other instances still run, by creation zxid of their configuration; it does not join them again.
    pruned: BTreeMap<JobName, Zxid>,
    states: BTreeMap<JobName, JobState>,
    /// The failure last logged for each job, so that it is logged only once.
    reported: BTreeMap<JobName, String>,
    tasks: JoinSet<(JobName, TaskResult)>,
    /// Limits how many jobs are joined at a time: each join needs memory, and anyone with write access to the registry can define thousands of jobs.
    joins: Arc<Semaphore>,
}

impl Reconciler {
    /// For a node that has already joined these jobs of the files.
    pub(super) fn new(
        running: Arc<RunningNode>,
        context: WorkerContext,
        files: Option<WatchedFiles>,
        entries: Vec<Entry>,
    ) -> Self {
        let file_jobs: BTreeMap<JobName, Arc<Entry>> =
            entries.into_iter().map(|entry| (entry.job.name.clone(), Arc::new(entry))).collect();
        let states = file_jobs
            .iter()
            .map(|(name, entry)| {
                let desired = DesiredJob::File(Arc::clone(entry));
                (name.clone(), JobState::Running { desired, retry_at: None })
            })
            .collect();
        let namespace_changes = NamespaceChanges::watch(Arc::clone(running.registry()));
        Self {
            running,
            context,
            files,
            has_invalid_files: false,
            file_jobs,
            registry_jobs: RegistryJobs::default(),
            namespace_changes,
            tracked_sessions: 0,
            session_tracking: Tasks::new(),
            pruned: BTreeMap::new(),
            states,
            reported: BTreeMap::new(),
            tasks: JoinSet::new(),
            joins: Arc::new(Semaphore::new(CONCURRENT_JOINS)),
        }
    }

    /// Runs until `stop`. Operations may still be under way then; [`Reconciler::finish`] waits for them.
    pub(super) async fn run(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                Some(done) = self.tasks.join_next() => {
                    if let Ok((name, done)) = done {
                        self.record(name, done);
                    }
                    // All that have ended meanwhile: each comparison below looks at every job.
                    while let Some(done) = self.tasks.try_join_next() {
                        if let Ok((name, done)) = done {
                            self.record(name, done);
                        }
                    }
                }
                // Safe to drop half way: the next tick reads everything again.
                () = async {
                    ticks.tick().await;
                    reload_files(
                        &mut self.files,
                        &mut self.has_invalid_files,
                        &mut self.file_jobs,
                        &self.context.permissions,
                    )
                    .await;
                    if self.namespace_changes.take() {
                        self.registry_jobs.list_again();
                    }
                    let (running, file_jobs) = (&self.running, &self.file_jobs);
                    let refreshed = self.registry_jobs.refresh(
                        running.registry(),
                        &self.context.permissions,
                        self.context.max_shards,
                        |name| file_jobs.contains_key(name),
                        |name| running.has_ended(name),
                    );
                    // Only at debug level: the node itself reports outages.
                    if let Err(error) = refreshed.await {
                        tracing::debug!(%error, "cannot list registry jobs");
                    }
                } => {}
            }
            self.reconcile();
        }
    }

    /// Waits for operations that are under way.
    pub(super) async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Starts the operations that bring the running jobs to the desired state.
    fn reconcile(&mut self) {
        self.track_sessions();
        self.context.metrics.set_refused(self.registry_jobs.refused());
        let failed = self.states.values();
        let failed =
            failed.filter(|state| matches!(state, JobState::Failed { is_invalid: true, .. }));
        let running = self.running.invalid_jobs().len();
        self.context.metrics.set_invalid(running + failed.count() + self.registry_jobs.invalid());
        let now = SystemClock.monotonic();
        let names = self.file_jobs.keys().chain(self.states.keys());
        let names = names.chain(self.registry_jobs.runnable().map(|(name, _)| name));
        let names: BTreeSet<JobName> = names.cloned().collect();
        for name in names {
            let desired = self.desired(&name);
            match (self.states.get(&name), desired) {
                (Some(JobState::Busy), _) | (None, None) => {}
                (None, Some(desired)) => self.join(name, desired),
                (Some(JobState::Running { desired: DesiredJob::File(_), .. }), new)
                    if self.context.prune && !matches!(new, Some(DesiredJob::File(_))) =>
                {
                    self.leave(name, true);
                }
                (Some(JobState::Running { .. }), None) => self.leave(name, false),
                (Some(JobState::Running { desired: old, retry_at }), Some(new)) => {
                    match old.change_to(&new) {
                        Change::Same if retry_at.is_none_or(|retry_at| retry_at > now) => {}
                        Change::Same => self.revise(name, new),
                        Change::Revised if !self.running.has_ended(&name) => self.revise(name, new),
                        // Joined again once it has been left.
                        Change::Revised | Change::Different => self.leave(name, false),
                    }
                }
                (Some(JobState::Failed { .. }), None) => {
                    self.states.remove(&name);
                    self.reported.remove(&name);
                }
                (Some(JobState::Failed { desired: old, retry_at, .. }), Some(new)) => {
                    if *retry_at <= now || old.change_to(&new) != Change::Same {
                        self.join(name, new);
                    }
                }
            }
        }
    }

    /// Lets the metrics track the sessions that the node has opened since.
    fn track_sessions(&mut self) {
        let sessions = self.running.sessions();
        for session in &sessions[self.tracked_sessions.min(sessions.len())..] {
            let metrics = Arc::clone(&self.context.metrics);
            self.session_tracking.spawn(metrics.track_session(session.states()));
        }
        self.tracked_sessions = sessions.len();
    }

    fn desired(&self, name: &JobName) -> Option<DesiredJob> {
        if let Some(entry) = self.file_jobs.get(name) {
            return Some(DesiredJob::File(Arc::clone(entry)));
        }
        let registry_job = self.registry_jobs.get(name)?;
        let is_pruned =
            self.pruned.get(name).is_some_and(|created| *created == registry_job.created);
        (!is_pruned).then(|| DesiredJob::Registry(Arc::clone(registry_job)))
    }

    fn join(&mut self, name: JobName, desired: DesiredJob) {
        let job = match &desired {
            DesiredJob::File(entry) => self.context.file_job(entry),
            DesiredJob::Registry(registry_job) => {
                let job = self.context.node_job(registry_job.job.clone(), &registry_job.kind);
                job.map(NodeJob::from_registry)
            }
        };
        let Some(job) = job else { return };
        self.states.insert(name.clone(), JobState::Busy);
        self.context.metrics.add(&name);
        let (running, joins) = (Arc::clone(&self.running), Arc::clone(&self.joins));
        self.tasks.spawn(async move {
            // It is never closed, so that an error cannot occur.
            let _permit = joins.acquire_owned().await;
            let failed = running.add(job).await.err();
            (name, TaskResult::Joined { desired, failed })
        });
    }

    fn revise(&mut self, name: JobName, desired: DesiredJob) {
        let DesiredJob::File(entry) = &desired else { return };
        let (running, job) = (Arc::clone(&self.running), entry.job.clone());
        self.states.insert(name.clone(), JobState::Busy);
        self.tasks.spawn(async move {
            let failed = running.update(job).await.err();
            (name, TaskResult::Revised { desired, failed })
        });
    }

    fn leave(&mut self, name: JobName, prune: bool) {
        let running = Arc::clone(&self.running);
        self.states.insert(name.clone(), JobState::Busy);
        tracing::info!(job = %name, "leaving job, waiting for running shards");
        self.tasks.spawn(async move {
            running.remove(&name).await;
            let still_stored = if prune { remove_unless_used(&running, &name).await } else { None };
            (name, TaskResult::Left { still_stored })
        });
    }

    fn record(&mut self, name: JobName, done: TaskResult) {
        match done {
            TaskResult::Joined { desired, failed: None } => {
                let from = match &desired {
                    DesiredJob::File(_) => "the files",
                    DesiredJob::Registry(_) => "the registry",
                };
                tracing::info!(job = %name, kind = %desired.kind(), from, "job joined");
                self.reported.remove(&name);
                self.states.insert(name, JobState::Running { desired, retry_at: None });
            }
            TaskResult::Joined { failed: Some(failed), .. } if is_gone(&failed) => {
                // It was removed before the join; the next poll no longer finds it.
                self.context.metrics.remove(&name);
                self.states.remove(&name);
            }
            TaskResult::Joined { desired, failed: Some(failed) } => {
                self.context.metrics.remove(&name);
                let is_invalid = matches!(failed, NodeError::Join(JoinError::Unreadable(_)));
                self.report_failure(&name, failed, "not joined");
                let retry_at = SystemClock.monotonic() + RETRY_DELAY;
                self.states.insert(name, JobState::Failed { desired, retry_at, is_invalid });
            }
            TaskResult::Revised { desired, failed } => {
                let mut retry_at = None;
                match failed {
                    None => {
                        tracing::info!(job = %name, "job updated");
                        self.reported.remove(&name);
                    }
                    // The node notices the removal by itself.
                    Some(failed) if is_gone(&failed) => {}
                    Some(failed) => {
                        self.report_failure(&name, failed, "runs unchanged");
                        retry_at = Some(SystemClock.monotonic() + RETRY_DELAY);
                    }
                }
                self.states.insert(name, JobState::Running { desired, retry_at });
            }
            TaskResult::Left { still_stored } => {
                tracing::info!(job = %name, "job left");
                self.context.metrics.remove(&name);
                self.reported.remove(&name);
                self.states.remove(&name);
                if let Some(still_stored) = still_stored {
                    self.pruned.insert(name, still_stored);
                }
            }
        }
    }

    /// Logs a failure, once until it changes.
    fn report_failure(&mut self, name: &JobName, failed: NodeError, state: &str) {
        let error = Error::from(failed).line();
        if self.reported.get(name) != Some(&error) {
            tracing::error!(job = %name, error, state, "job not applied, retrying");
            self.reported.insert(name.clone(), error);
        }
    }
}

/// Polls the files; logs when they become invalid and when they are valid again.
async fn reload_files(
    files: &mut Option<WatchedFiles>,
    has_invalid_files: &mut bool,
    file_jobs: &mut BTreeMap<JobName, Arc<Entry>>,
    permissions: &Permissions,
) {
    let Some(files) = files else { return };
    match files.poll().await {
        None => {}
        Some(Ok(entries)) => {
            if *has_invalid_files {
                tracing::info!("job files valid again");
            }
            *has_invalid_files = false;
            tracing::info!(jobs = entries.len(), "job files changed");
            permissions.set_file_jobs(&entries);
            *file_jobs = entries
                .into_iter()
                .map(|entry| (entry.job.name.clone(), Arc::new(entry)))
                .collect();
        }
        Some(Err(error)) => {
            *has_invalid_files = true;
            tracing::error!(error = error.line(), "job files invalid, keeping the previous jobs");
        }
    }
}

fn is_gone(error: &NodeError) -> bool {
    match error {
        NodeError::Join(JoinError::Gone { .. }) => true,
        NodeError::Join(JoinError::Registry {
            source: registry::Error::Operation { cause, .. },
            ..
        }) => matches!(**cause, registry::Error::NotFound { .. }),
        _ => false,
    }
}

/// Removes a job that this worker has left, unless it has other instances. Returns the creation zxid of a job that stays.
async fn remove_unless_used(running: &RunningNode, name: &JobName) -> Option<Zxid> {
    let registry = running.registry();
    let config = registry.namespace().path().join(format!("{name}/config")).ok()?;
    let created = registry.exists(&config).await.ok().flatten().map(|stat| stat.created);
    match Admin::new(Arc::clone(registry)).remove(name, false).await {
        Ok(removed) => {
            tracing::info!(job = %name, nodes = removed.nodes, "job removed from registry");
            None
        }
        Err(AdminError::NotFound { .. }) => None,
        Err(AdminError::Refused { problem, .. }) => {
            tracing::info!(job = %name, problem, "job kept in registry: other instances run it");
            created
        }
        Err(error) => {
            let error = Error::from(error).line();
            tracing::error!(job = %name, error, hint = "elasticjob job remove", "cannot remove job from registry");
            created
        }
    }
}
