//! A node that runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;

use super::{
    error::NodeError,
    fresh,
    job::NodeJob,
    worker::{Said, Shared, Worker},
};
use crate::{
    history::Recording,
    job::{Job, JobName},
    registry::{Registry, Session},
    runtime::{Cancel, CancelReason, Tasks},
};

/// How many jobs are joined at the same time when a node starts.
const AT_ONCE: usize = 128;

/// How long alerts that wait may take to be delivered when the node stops.
const LAST_POST: Duration = Duration::from_secs(10);

/// How long history that waits may take to be kept when the node stops; what is not waits in its file.
const LAST_PAGES: Duration = Duration::from_secs(10);

/// How long putting it there may take.
const MOMENT: Duration = Duration::from_secs(2);

/// How long leaving a job may take after the last of its runs has ended.
const FAREWELL: Duration = Duration::from_secs(30);

/// A node that runs. Jobs come and go while it does. Dropping it ends it at once; [`Running::stop`] drains first.
pub struct Running {
    shared: Arc<Shared>,
    workers: Mutex<BTreeMap<JobName, Place>>,
    /// Carries alerts.
    posts: Tasks,
    recording: Option<Recording>,
    /// Carry events to sinks.
    scribes: Tasks,
    // After the workers, so that they are told until the end.
    _clockwork: Tasks,
}

/// One job's place on this node.
enum Place {
    /// Somebody is joining it.
    Reserved,
    Taken {
        worker: Tasks,
        said: Arc<Said>,
        stop: Cancel,
        ready: watch::Receiver<bool>,
    },
    /// What runs of it may finish; nothing more is due.
    Leaving,
}

impl Running {
    pub(super) async fn start(
        shared: Arc<Shared>,
        posts: Tasks,
        (recording, scribes): (Option<Recording>, Tasks),
        jobs: Vec<NodeJob>,
    ) -> Result<Self, NodeError> {
        let mut clockwork = Tasks::new();
        clockwork.spawn(shared.timer.clone().run());
        clockwork.spawn(shared.chronicle.clone().tell());
        clockwork.spawn(fresh::keep(Arc::clone(&shared.registry), Arc::clone(&shared.clock)));
        let running = Self {
            shared,
            workers: Mutex::default(),
            posts,
            recording,
            scribes,
            _clockwork: clockwork,
        };
        // Many at once: a thousand jobs join in the time of a few round trips, and not in the memory of a thousand.
        let mut joining =
            stream::iter(jobs.into_iter().map(|job| running.add(job))).buffer_unordered(AT_ONCE);
        while joining.next().await.transpose()?.is_some() {}
        drop(joining);
        Ok(running)
    }

    /// Joins one more job. When this returns the node takes part in it.
    ///
    /// ```no_run
    /// # async fn example(running: &elasticjob::node::Running) -> Result<(), Box<dyn std::error::Error>> {
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
        let stop = self.shared.stop.child();
        let (tell_ready, ready) = watch::channel(false);
        let worker = Worker::new(Arc::clone(&self.shared), job, stop.clone(), tell_ready);
        let member = worker.join().await?;
        let said = Arc::clone(worker.said());
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(worker).run(member));
        reservation.take(Place::Taken { worker: tasks, said, stop, ready });
        Ok(())
    }

    /// Leaves a job: starts nothing new of it, lets what runs finish, and takes the instance out. `false` if the node does not run
    /// it. The job itself stays for others, and for a later [`Running::add`].
    pub async fn remove(&self, job: &JobName) -> bool {
        let place = {
            let mut workers = self.lock();
            match workers.get(job) {
                Some(Place::Taken { .. }) => workers.insert(job.clone(), Place::Leaving),
                Some(Place::Reserved | Place::Leaving) | None => None,
            }
        };
        let Some(Place::Taken { worker, stop, .. }) = place else { return false };
        let _reservation = Reservation { running: self, job };
        stop.cancel(CancelReason::ShuttingDown);
        if !worker.finish(self.patience()).await {
            tracing::error!(%job, "the job did not end in time and was dropped");
        }
        true
    }

    /// Says something else about a job that this node runs. What counts is settled as when it was joined: what is stored, and the difference is
    /// logged, or what is said now, if the job [overwrites](crate::job::Overwrite); then it takes effect at once, everywhere. `false` if
    /// the node does not run it.
    ///
    /// ```no_run
    /// # async fn example(running: &elasticjob::node::Running) -> Result<(), Box<dyn std::error::Error>> {
    /// use elasticjob::job::{Job, Overwrite};
    ///
    /// let job = Job::named("clean-up")?.cron("0 0 4 * * ?")?.if_stored_differs(Overwrite::LocalWins);
    /// assert!(running.revise(job).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revise(&self, job: Job) -> Result<bool, NodeError> {
        let said = match self.lock().get(&job.name) {
            Some(Place::Taken { said, ready, .. }) if ready.has_changed().is_ok() => {
                Arc::clone(said)
            }
            _ => return Ok(false),
        };
        said.revise(&*self.shared.registry, job).await?;
        Ok(true)
    }

    /// Whether a job of this node has ended without its doing: somebody shut the instance down, or removed the job. It keeps its place until
    /// it is [removed](Running::remove).
    pub fn has_ended(&self, job: &JobName) -> bool {
        // Whoever runs it holds the other end.
        matches!(self.lock().get(job), Some(Place::Taken { ready, .. }) if ready.has_changed().is_err())
    }

    /// The jobs this node takes part in.
    pub fn jobs(&self) -> Vec<JobName> {
        let workers = self.lock();
        let taken = workers.iter().filter(|(_, place)| matches!(place, Place::Taken { .. }));
        taken.map(|(name, _)| name.clone()).collect()
    }

    /// Whether every job of this node can run what is due: its registry answers, and it is known who owns which shard. What [has
    /// ended](Running::has_ended) because somebody wanted it so is no reason not to be ready.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(|place| match place {
            Place::Taken { ready, .. } => *ready.borrow() || ready.has_changed().is_err(),
            Place::Leaving => true,
            Place::Reserved => false,
        })
    }

    /// Its session with the registry: whether that answers, and until when it is believed.
    pub fn session(&self) -> Session {
        self.shared.registry.session()
    }

    /// Where it meets the others, for whoever has more to ask there.
    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.shared.registry
    }

    /// Tells every job to start nothing new; each leaves when what it runs has finished. [`Running::stop`] waits for that. For those who
    /// have something else to finish first.
    pub fn wind_down(&self) {
        self.shared.stop.cancel(CancelReason::ShuttingDown);
    }

    /// What becomes of the history, if the node [has one](super::Node::history).
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Starts nothing new, lets what runs finish, leaves every job, and ends the session.
    pub async fn stop(self) {
        self.wind_down();
        let patience = self.patience();
        let places = std::mem::take(&mut *self.lock());
        let all = places.into_iter().filter_map(|(job, place)| match place {
            Place::Taken { worker, .. } => Some(async move {
                if !worker.finish(patience).await {
                    tracing::error!(%job, "the job did not end in time and was dropped");
                }
            }),
            Place::Reserved | Place::Leaving => None,
        });
        futures_util::future::join_all(all).await;
        let registry = Arc::clone(&self.shared.registry);
        // Nobody is left to write alerts: those that wait are delivered.
        drop(self.shared);
        if let Some(recording) = &self.recording {
            recording.close(LAST_PAGES);
        }
        let (posted, written) =
            tokio::join!(self.posts.finish(LAST_POST), self.scribes.finish(LAST_PAGES + MOMENT));
        if !posted {
            tracing::error!("some alerts could not be delivered in time");
        }
        if !written {
            tracing::error!("some of the history could not be kept in time");
        }
        registry.close().await;
    }

    /// A run that was told to end has its own grace; leaving takes a moment.
    fn patience(&self) -> Duration {
        self.shared.drain * 2 + FAREWELL
    }

    /// A job has one place on a node: whoever joins it holds the place meanwhile.
    fn reserve<'a>(&'a self, job: &'a JobName) -> Result<Reservation<'a>, NodeError> {
        let mut workers = self.lock();
        if workers.contains_key(job) {
            return Err(NodeError::twice(job, []));
        }
        workers.insert(job.clone(), Place::Reserved);
        Ok(Reservation { running: self, job })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobName, Place>> {
        // Nothing under this lock panics half way.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the place back unless it is taken.
struct Reservation<'a> {
    running: &'a Running,
    job: &'a JobName,
}

impl Reservation<'_> {
    fn take(self, place: Place) {
        self.running.lock().insert(self.job.clone(), place);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut workers = self.running.lock();
        if matches!(workers.get(self.job), Some(Place::Reserved | Place::Leaving)) {
            workers.remove(self.job);
        }
    }
}
