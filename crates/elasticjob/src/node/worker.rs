//! One job on this node, for as long as the node lives.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::watch, task};

use super::{
    chronicle::Chronicle,
    identity::Identity,
    job::NodeJob,
    life::Life,
    once::Once,
    run::{End, Run},
    supervision::Supervision,
    timer::{Alarm, Timer},
    todo::Task,
};
use crate::{
    coordination::{
        flaw::{Flaw, Flaws},
        member::{
            Author, BusyShards, Ground, IfAbsent, JoinError, Joining, Member, News, Why,
            settle_configuration,
        },
        sharding::Dealers,
        tree::JobTree,
        trigger::Ask,
    },
    execution::{Alerts, Listeners, Output, Runner, Surroundings, Work},
    job::{
        Difference, Fire, Handler, Instance, Job, JobName, LeaseLoss, Misfire, RunId, TaskId,
        ThreadPool,
    },
    registry::{self, Registry},
    runtime::{Cancel, CancelReason, Clock, Randomness},
    schedule::Zone,
};

/// How long a fire waits while shards are dealt, if its next one is not sooner.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before joining again after an outage.
const AGAIN: Duration = Duration::from_secs(1);

/// What all workers of a node share.
pub(super) struct Shared {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) timer: Timer,
    pub(super) identity: Identity,
    pub(super) labels: Option<String>,
    /// Ways to deal shards that the program brought, by name.
    pub(super) dealers: Dealers,
    /// Where the clock on the wall hangs, for jobs that name no zone.
    pub(super) zone: Zone,
    pub(super) processors: usize,
    /// How long what runs may take to finish when the node stops.
    pub(super) drain: Duration,
    pub(super) alerts: Alerts,
    /// Who keeps what scripts print.
    pub(super) output: Arc<dyn Output>,
    pub(super) chronicle: Chronicle,
    pub(super) supervision: Supervision,
    /// Precautions left out, in a simulation.
    pub(super) flaws: Flaws,
    pub(super) stop: Cancel,
}

/// What the program says a job is. It may say something else later.
pub(super) struct Said {
    name: JobName,
    local: Mutex<Job>,
    handler: Handler,
    author: Author,
}

impl Said {
    /// Says something else from now on, and settles with the registry what counts, as when a job is joined; one that was removed meanwhile
    /// stays removed.
    pub(super) async fn revise(&self, registry: &dyn Registry, job: Job) -> Result<(), JoinError> {
        *self.local.lock().unwrap_or_else(PoisonError::into_inner) = job.clone();
        let outage = |source| JoinError::Registry { job: self.name.to_string(), source };
        let namespace = registry.namespace();
        let tree = JobTree::new(namespace, &self.name).map_err(|error| {
            let (path, reason) = (namespace.path().clone(), error.to_string());
            outage(registry::Error::Invalid { path, reason })
        })?;
        let settled =
            settle_configuration(registry, &tree, &job, &self.handler, IfAbsent::Gone).await?;
        self.tell(&settled.1);
        Ok(())
    }

    fn tell(&self, drift: &[Difference]) {
        for difference in drift {
            tracing::warn!(job = %self.name, %difference, "the stored configuration counts, and it is not ours");
        }
    }

    fn local(&self) -> Job {
        self.local.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One job as the program registered it.
pub(super) struct Worker {
    shared: Arc<Shared>,
    said: Arc<Said>,
    work: Arc<dyn Work>,
    listeners: Arc<Listeners>,
    once: Once,
    /// Shards that tasks of this process still run, over all sessions.
    busy: BusyShards,
    /// Ends this job's part: with the node, or before.
    stop: Cancel,
    /// Whether it can run what is due, for whoever wants to know.
    ready: watch::Sender<bool>,
}

/// How one session in a job ended.
enum Parting {
    /// The session was lost: begin another.
    SessionLost,
    /// For good.
    Stopped,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        entry: NodeJob,
        stop: Cancel,
        ready: watch::Sender<bool>,
    ) -> Self {
        let work = shared.supervision.over(&entry.handler, entry.work);
        let name = entry.job.name.clone();
        let (local, handler) = (Mutex::new(entry.job), entry.handler);
        Self {
            said: Arc::new(Said { name, local, handler, author: entry.author }),
            work: match entry.permit {
                Some(permit) => permit.over(work),
                None => work,
            },
            listeners: Arc::new(Listeners::new(entry.listeners)),
            once: Once::new(entry.once, &shared.randomness),
            shared,
            busy: BusyShards::default(),
            stop,
            ready,
        }
    }

    /// What the program says, for whoever may hear something else later.
    pub(super) fn said(&self) -> &Arc<Said> {
        &self.said
    }

    /// Enters the job.
    pub(super) async fn join(&self) -> Result<Member, JoinError> {
        let shared = &self.shared;
        let id = shared.identity.now(&*shared.registry, &*shared.randomness).await;
        let id =
            id.map_err(|source| JoinError::Registry { job: self.said.name.to_string(), source })?;
        let mut instance = Instance::new(id);
        instance.labels.clone_from(&shared.labels);
        let joining = Joining {
            local: self.said.local(),
            handler: self.said.handler.clone(),
            author: self.said.author,
            instance,
        };
        let ground = Ground {
            registry: Arc::clone(&shared.registry),
            clock: Arc::clone(&shared.clock),
            randomness: Arc::clone(&shared.randomness),
            dealers: shared.dealers.clone(),
            flaws: shared.flaws,
            busy: self.busy.clone(),
        };
        let member = Member::join(ground, joining).await?;
        self.said.tell(member.drift());
        Ok(member)
    }

    /// Lives in the job, over as many sessions as it takes, until the node stops or somebody shuts the instance down.
    pub(super) async fn run(self: Box<Self>, mut member: Member) {
        let mut life = Life::new(self.shared.clock.now(), self.busy.clone());
        loop {
            let parting = self.live(member, &mut life).await;
            self.ready.send_replace(false);
            match parting {
                Parting::Stopped => return,
                Parting::SessionLost => {}
            }
            member = loop {
                tokio::select! {
                    biased;
                    _ = self.stop.cancelled() => return self.drain(&mut life).await,
                    // Boxed: it is large and rare, and every worker would carry the room for it.
                    joined = Box::pin(self.join()) => match joined {
                        Ok(member) => break member,
                        // What only the registry knows and it has forgotten is over.
                        Err(JoinError::Gone { .. }) => {
                            return self.drain(&mut life).await;
                        }
                        Err(error) => {
                            tracing::error!(job = %self.said.name, %error, "cannot join again yet");
                        }
                    },
                }
                tokio::select! {
                    biased;
                    _ = self.stop.cancelled() => return self.drain(&mut life).await,
                    () = self.shared.clock.sleep_until(self.shared.clock.monotonic() + AGAIN) => {}
                }
            };
        }
    }

    async fn live(&self, mut member: Member, life: &mut Life) -> Parting {
        let mut job = Arc::clone(member.job());
        let mut alarm = self.alarm(&job);
        let mut runner = self.runner(&job);
        let cancel = life.renew();
        member.claims().take_over(cancel.clone()).await;
        let mut pause = None;
        loop {
            // Own runs of one job on one instance are sequential. A task may come to nothing: then it is the next one's turn.
            while pause.is_none()
                && let Some(task) = life.next()
            {
                let task = self.named(task);
                let run = self.start(&member, &job, &runner, &cancel);
                if let Some(id) = self.spawn(task.clone(), run, &job, life) {
                    life.began(id, task);
                }
            }
            tokio::select! {
                biased;
                _ = self.stop.cancelled() => {
                    tokio::join!(self.drain(life), member.stop_taking_over());
                    member.leave().await;
                    return Parting::Stopped;
                }
                news = member.news() => match news {
                    Some(News::Configured(now)) => {
                        if now.schedule(&self.shared.zone) != job.schedule(&self.shared.zone) {
                            alarm = self.alarm(&now);
                            // What the new schedule says of the past was never due.
                            life.since = self.shared.clock.now();
                        }
                        if ThreadPool::of(&now) != ThreadPool::of(&job) {
                            runner = self.runner(&now);
                        }
                        job = now;
                    }
                    Some(News::Unreadable(_)) => {}
                    Some(News::Triggered(ask)) => life.todo.ask(*ask),
                    Some(News::Ready) => {
                        self.ready.send_replace(true);
                        life.todo.is_behind |= !life.is_caught_up;
                        life.todo.may_be_late = true;
                    }
                    Some(News::OutOfReach) => drop(self.ready.send_replace(false)),
                    Some(News::Missed) => life.todo.may_be_late = true,
                    Some(News::TakenOver(claimed)) => {
                        let run = self.start(&member, &job, &runner, &cancel);
                        let run = life.runs.spawn(async move { run.fail_over(*claimed).await });
                        life.began(run.id(), Task::TakeOver);
                    }
                    Some(News::Lost(lost)) => self.shared.chronicle.lost(*lost),
                    Some(News::ShutDown) => {
                        self.drain(life).await;
                        member.leave().await;
                        return Parting::Stopped;
                    }
                    Some(News::SessionLost) | None => {
                        if job.props.policies().on_lease_loss == LeaseLoss::Cancel {
                            cancel.cancel(CancelReason::LeaseLost);
                        }
                        return Parting::SessionLost;
                    }
                },
                due_at = due(alarm.as_mut()) => {
                    if !life.is_occupied() {
                        life.todo.due(Fire::scheduled(job.name.clone(), due_at));
                    } else if job.misfire == Misfire::RunOnce {
                        life.todo.may_be_late = true;
                        tracing::warn!(job = %job.name, %due_at, "due while the last run is not over: it runs right after");
                        self.shared.chronicle.misfired(&RunId::scheduled(job.name.clone(), due_at), || TaskId {
                            job: job.name.clone(),
                            items: life.busy.shards().into_iter().collect(),
                            instance: member.id().clone(),
                        });
                    } else {
                        tracing::warn!(job = %job.name, %due_at, "due while the last run is not over: it is left out");
                        self.listeners.missed(&job.name, 1);
                        self.shared.chronicle.skipped(&job.name, due_at);
                    }
                }
                Some(ended) = life.runs.join_next_with_id() => {
                    let (id, end) = match ended {
                        Ok((id, end)) => (id, end),
                        Err(error) => (error.id(), End::Nothing),
                    };
                    if life.ended(id, end).is_break() {
                        pause = Some(self.shared.clock.monotonic() + AGAIN);
                    }
                }
                () = self.shared.clock.sleep_until(pause.unwrap_or_else(|| self.shared.clock.monotonic())), if pause.is_some() => pause = None,
            }
        }
    }

    /// Starts what is to be done; `None` if there is nothing to it.
    fn spawn(&self, task: Task, run: Run, job: &Job, life: &mut Life) -> Option<task::Id> {
        let patience = self.patience(job);
        let schedule = job.schedule(&self.shared.zone);
        let handle = match task {
            Task::Fire(fire) => {
                life.runs.spawn(async move { run.fire(fire, Why::Due, patience).await })
            }
            Task::Ask(ask) => {
                let at = ask.at.unwrap_or_else(|| self.shared.clock.now());
                let fire =
                    Fire::triggered(job.name.clone(), at, ask.run?).by(ask.by).given(ask.parameter);
                life.runs
                    .spawn(async move { run.fire(fire, Why::Asked(ask.shards), patience).await })
            }
            Task::CatchUp => {
                let schedule = schedule?;
                life.runs.spawn(async move { run.catch_up(schedule, patience).await })
            }
            Task::Late => {
                if job.misfire == Misfire::Skip || self.shared.flaws.has(Flaw::ForgetMissed) {
                    return None;
                }
                let now = self.shared.clock.now();
                let fire = if let Some(schedule) = schedule {
                    let just_now = now + jiff::SignedDuration::from_nanos(1);
                    Fire::scheduled(job.name.clone(), schedule.prev_before(just_now)?)
                } else {
                    let id = RunId::triggered(self.shared.randomness.bits());
                    Fire::triggered(job.name.clone(), now, id)
                };
                let why = Why::Late { since: life.since };
                life.runs.spawn(async move { run.fire(fire, why, patience).await })
            }
            Task::TakeOver => return None,
        };
        Some(handle.id())
    }

    /// A trigger of the ancestor's does not say which run it is to be; tried again, it is to be the same.
    fn named(&self, task: Task) -> Task {
        match task {
            Task::Ask(ask @ Ask { run: None, .. }) => {
                let run = Some(RunId::triggered(self.shared.randomness.bits()));
                Task::Ask(Ask { run, ..ask })
            }
            task => task,
        }
    }

    fn alarm(&self, job: &Job) -> Option<Alarm> {
        let schedule = job.schedule(&self.shared.zone)?;
        Some(self.shared.timer.set(schedule))
    }

    /// A fire does not wait longer than until the next one.
    fn patience(&self, job: &Job) -> Duration {
        let now = self.shared.clock.now();
        let next = job.schedule(&self.shared.zone).and_then(|schedule| schedule.next_after(now));
        next.and_then(|next| next.duration_since(now).try_into().ok())
            .map_or(PATIENCE, |until: Duration| until.min(PATIENCE))
    }

    /// One for all runs of the job, so that they share its limit.
    fn runner(&self, job: &Job) -> Arc<Runner> {
        let randomness = Arc::clone(&self.shared.randomness);
        let around = Surroundings {
            clock: Arc::clone(&self.shared.clock),
            dice: Arc::new(move || randomness.fraction()),
            observer: self.shared.chronicle.observer(),
        };
        Arc::new(Runner::new(around, ThreadPool::of(job).limit(self.shared.processors)))
    }

    fn start(&self, member: &Member, job: &Arc<Job>, runner: &Arc<Runner>, cancel: &Cancel) -> Run {
        Run {
            registry: Arc::clone(&self.shared.registry),
            clock: Arc::clone(&self.shared.clock),
            claims: member.claims().clone(),
            instance: member.id().clone(),
            job: Arc::clone(job),
            work: Arc::clone(&self.work),
            runner: Arc::clone(runner),
            listeners: Arc::clone(&self.listeners),
            once: self.once.clone(),
            alerts: self.shared.alerts.clone(),
            output: Arc::clone(&self.shared.output),
            chronicle: self.shared.chronicle.clone(),
            cancel: cancel.clone(),
            flaws: self.shared.flaws,
        }
    }

    /// Lets what runs finish; what takes longer is told to end and waited for once more.
    async fn drain(&self, life: &mut Life) {
        let (clock, runs) = (&self.shared.clock, &mut life.runs);
        let all = async { while runs.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            () = all => return,
            () = clock.sleep_until(clock.monotonic() + self.shared.drain) => {}
        }
        life.cancel.cancel(CancelReason::ShuttingDown);
        while life.runs.join_next().await.is_some() {}
    }
}

async fn due(alarm: Option<&mut Alarm>) -> Timestamp {
    match alarm {
        Some(alarm) => alarm.due().await,
        None => std::future::pending().await,
    }
}
