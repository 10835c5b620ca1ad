//! One job on this node, for as long as the node lives.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::task::JoinSet;

use super::{
    run::Run,
    timer::{Alarm, Timer},
};
use crate::{
    coordination::member::{JoinError, Joining, Member, News},
    execution::{Alerts, Listeners, Runner, Surroundings, Work},
    job::{Fire, Handler, Instance, InstanceId, Job, Misfire, RunId, ThreadPool},
    registry::Registry,
    runtime::{Cancel, CancelReason, Clock, Randomness},
    schedule::{Schedule, Zone},
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
    pub(super) address: Ipv4Addr,
    pub(super) labels: Option<String>,
    /// Where the clock on the wall hangs, for jobs that name no zone.
    pub(super) zone: Zone,
    pub(super) processors: usize,
    /// How long what runs may take to finish when the node stops.
    pub(super) drain: Duration,
    pub(super) alerts: Alerts,
    pub(super) stop: Cancel,
}

/// One job as the program registered it.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) local: Job,
    pub(super) handler: Handler,
    pub(super) work: Arc<dyn Work>,
    pub(super) listeners: Arc<Listeners>,
}

/// How one life in a job ended.
enum End {
    /// The session was lost: begin another.
    SessionLost,
    /// For good.
    Stopped,
}

impl Worker {
    /// Enters the job.
    pub(super) async fn join(&self) -> Result<Member, JoinError> {
        let shared = &self.shared;
        // A new name for every life, so that nobody takes us for our own ghost.
        let random = shared.randomness.bits() as u32;
        let mut instance =
            Instance::new(InstanceId::new(shared.address, std::process::id(), random));
        instance.labels.clone_from(&shared.labels);
        let joining =
            Joining { local: self.local.clone(), handler: self.handler.clone(), instance };
        let (clock, randomness) = (Arc::clone(&shared.clock), Arc::clone(&shared.randomness));
        let member =
            Member::join(Arc::clone(&shared.registry), clock, randomness, None, joining).await?;
        for difference in member.drift() {
            tracing::warn!(job = %self.local.name, %difference, "the stored configuration counts, and it is not ours");
        }
        Ok(member)
    }

    /// Lives in the job, over as many sessions as it takes, until the node stops or somebody shuts the instance down.
    pub(super) async fn run(self: Box<Self>, mut member: Member) {
        loop {
            match self.live(member).await {
                End::Stopped => return,
                End::SessionLost => {}
            }
            member = loop {
                tokio::select! {
                    _ = self.shared.stop.cancelled() => return,
                    // Boxed: it is large and rare, and every worker would carry the room for it.
                    joined = Box::pin(self.join()) => match joined {
                        Ok(member) => break member,
                        Err(error) => {
                            tracing::error!(job = %self.local.name, %error, "cannot join again yet");
                        }
                    },
                }
                tokio::select! {
                    _ = self.shared.stop.cancelled() => return,
                    () = self.shared.clock.sleep_until(self.shared.clock.monotonic() + AGAIN) => {}
                }
            };
        }
    }

    async fn live(&self, mut member: Member) -> End {
        let mut job = member.job().clone();
        let mut alarm = self.alarm(&job);
        let mut runner = self.runner(&job);
        let cancel = Cancel::new();
        let mut runs = JoinSet::new();
        let (mut missed, mut triggered) = (None, false);
        loop {
            // Runs of one job on one instance are sequential.
            if runs.is_empty() {
                let next = match (missed.take(), std::mem::take(&mut triggered)) {
                    (Some(fire), _) => Some(fire),
                    (None, true) => Some(self.triggered(&job)),
                    (None, false) => None,
                };
                if let Some(fire) = next {
                    let patience = self.patience(&job);
                    runs.spawn(self.start(&member, &job, &runner, &cancel).fire(fire, patience));
                }
            }
            tokio::select! {
                biased;
                _ = self.shared.stop.cancelled() => {
                    self.drain(runs, &cancel).await;
                    member.leave().await;
                    return End::Stopped;
                }
                news = member.news() => match news {
                    Some(News::Configured(now)) => {
                        if schedule_of(&now, &self.shared.zone) != schedule_of(&job, &self.shared.zone) {
                            alarm = self.alarm(&now);
                        }
                        if ThreadPool::of(&now) != ThreadPool::of(&job) {
                            runner = self.runner(&now);
                        }
                        job = *now;
                    }
                    Some(News::Unreadable(_)) => {}
                    Some(News::Triggered) => triggered = true,
                    Some(News::ShutDown) => {
                        self.drain(runs, &cancel).await;
                        member.leave().await;
                        return End::Stopped;
                    }
                    Some(News::SessionLost) | None => {
                        cancel.cancel(CancelReason::LeaseLost);
                        self.drain(runs, &cancel).await;
                        return End::SessionLost;
                    }
                },
                due_at = due(alarm.as_mut()) => {
                    let fire = Fire::scheduled(job.name.clone(), due_at);
                    if runs.is_empty() {
                        missed = Some(fire);
                    } else if job.misfire == Misfire::RunOnce {
                        tracing::warn!(job = %job.name, %due_at, "due while the last run is not over: it runs right after");
                        missed = Some(fire);
                    } else {
                        tracing::warn!(job = %job.name, %due_at, "due while the last run is not over: it is left out");
                    }
                }
                Some(_) = runs.join_next() => {}
            }
        }
    }

    fn alarm(&self, job: &Job) -> Option<Alarm> {
        let schedule = schedule_of(job, &self.shared.zone)?;
        Some(self.shared.timer.set(schedule))
    }

    fn triggered(&self, job: &Job) -> Fire {
        let run = RunId::triggered(self.shared.randomness.bits());
        Fire::triggered(job.name.clone(), self.shared.clock.now(), run)
    }

    /// A fire does not wait longer than until the next one.
    fn patience(&self, job: &Job) -> Duration {
        let now = self.shared.clock.now();
        let next =
            schedule_of(job, &self.shared.zone).and_then(|schedule| schedule.next_after(now));
        next.and_then(|next| next.duration_since(now).try_into().ok())
            .map_or(PATIENCE, |until: Duration| until.min(PATIENCE))
    }

    /// One for all runs of the job, so that they share its limit.
    fn runner(&self, job: &Job) -> Arc<Runner> {
        let randomness = Arc::clone(&self.shared.randomness);
        let around = Surroundings {
            clock: Arc::clone(&self.shared.clock),
            dice: Arc::new(move || randomness.fraction()),
            observer: Arc::new(()),
        };
        Arc::new(Runner::new(around, ThreadPool::of(job).limit(self.shared.processors)))
    }

    fn start(&self, member: &Member, job: &Job, runner: &Arc<Runner>, cancel: &Cancel) -> Run {
        Run {
            registry: Arc::clone(&self.shared.registry),
            clock: Arc::clone(&self.shared.clock),
            claims: member.claims().clone(),
            instance: member.id().clone(),
            job: job.clone(),
            work: Arc::clone(&self.work),
            runner: Arc::clone(runner),
            listeners: Arc::clone(&self.listeners),
            alerts: self.shared.alerts.clone(),
            cancel: cancel.clone(),
        }
    }

    /// Lets what runs finish; what takes longer is told to end and waited for once more.
    async fn drain(&self, mut runs: JoinSet<()>, cancel: &Cancel) {
        let clock = &self.shared.clock;
        let all = async { while runs.join_next().await.is_some() {} };
        tokio::select! {
            () = all => return,
            () = clock.sleep_until(clock.monotonic() + self.shared.drain) => {}
        }
        cancel.cancel(CancelReason::ShuttingDown);
        while runs.join_next().await.is_some() {}
    }
}

/// When this job is due, if it has a schedule; `local` is for those that name no zone.
pub(super) fn schedule_of(job: &Job, local: &Zone) -> Option<Schedule> {
    Some(Schedule {
        cron: job.cron.clone()?,
        zone: job.zone.clone().unwrap_or_else(|| local.clone()),
        dst: job.props.policies().dst,
    })
}

async fn due(alarm: Option<&mut Alarm>) -> Timestamp {
    match alarm {
        Some(alarm) => alarm.due().await,
        None => std::future::pending().await,
    }
}
