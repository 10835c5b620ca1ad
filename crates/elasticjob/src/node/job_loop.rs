//! Takes part in one job for as long as the node runs, over any number of registry sessions.
//!
//! In each session the loop is a [`Member`] of the job. It reacts to fires of the [`Timer`], to each [`MemberEvent`] and to runs that end, and
//! starts the next item of its pending work. When the session is lost, the loop joins again; runs of the lost session are cancelled or finish, as the
//! job's policy says, and pending work stays.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::{OnceCell, oneshot, watch},
    task,
};

use super::{
    catch_up::CatchUpEnd,
    history_tap::HistoryTap,
    job::NodeJob,
    job_state::JobState,
    once_barrier::OnceBarrier,
    pending_work::WorkItem,
    reported_fires::ReportedFires,
    run::{RunContext, RunResult},
    schedule_clock::ScheduleClock,
    session::NodeSession,
    session_pool::{SessionPlace, SessionPool},
    supervision::Supervision,
    timer::{Alarm, Timer},
};
#[cfg(feature = "http")]
use crate::execution::{HttpClient, HttpWork, IntoWork, OutboundPolicy, Outgoing};
use crate::problem::Problem;
use crate::{
    coordination::{
        flaw::{Flaw, Flaws},
        member::{
            BusyShards, ClaimScope, IfAbsent, JobSource, JoinError, JoinRequest, Member,
            MemberEvent, MemberResources, settle_configuration, undo_join,
        },
        sharding::CustomStrategies,
        tree::JobTree,
    },
    execution::{
        Alerts, AttemptContext, Executors, Failure, Listeners, Notice, Output, Runner, Secrets,
        Work,
    },
    history::MissedReason,
    job::{
        Difference, Fire, Handler, Instance, InstanceId, Job, JobName, LeaseLoss, Misfire, RunId,
        ShardLimit, TaskId, ThreadPool,
    },
    registry::{self, Registry},
    runtime::{CancelReason, CancelToken, Clock, Randomness},
    schedule::{Missed, Zone},
};

/// How long a fire waits at most for a sharding in progress.
const MAX_SHARDING_WAIT: Duration = Duration::from_secs(30);
/// How long cancelled runs may take to end before that is reported: longer than a handler that ignores its cancellation may run on.
const STUCK_AFTER: Duration = Duration::from_secs(15);
/// How long to wait before a retry after an outage.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What all jobs of a node share.
pub(super) struct NodeContext {
    pub(super) sessions: Arc<SessionPool>,
    /// The same as `schedule_clock`.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) schedule_clock: Arc<ScheduleClock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) timer: Timer,
    pub(super) labels: Option<String>,
    /// Sharding strategies of the program, by name.
    pub(super) strategies: CustomStrategies,
    pub(super) executors: Executors,
    /// Default time zone for jobs that set none.
    pub(super) zone: Zone,
    pub(super) processors: usize,
    /// How long running shards may take to finish when the node stops.
    pub(super) drain: Duration,
    pub(super) alerts: Alerts,
    /// Receives the lines that scripts print.
    pub(super) output: Arc<dyn Output>,
    pub(super) history: HistoryTap,
    pub(super) supervision: Supervision,
    pub(super) secrets: Secrets,
    /// Chooses which hosts the requests of HTTP jobs may reach.
    #[cfg(feature = "http")]
    pub(super) outbound: Option<OutboundPolicy>,
    /// Sends the requests of HTTP jobs and alerts. Connections of one right are never used for another.
    #[cfg(feature = "http")]
    pub(super) http_client: Arc<HttpClient>,
    /// Deliberate faults, for the simulation.
    pub(super) flaws: Flaws,
    pub(super) shard_limit: ShardLimit,
    pub(super) stop: CancelToken,
}

impl NodeContext {
    /// Returns the work to run: an HTTP job sends its requests with the node's client, to the hosts that the program allows.
    #[cfg(feature = "http")]
    fn limit_requests(&self, handler: &Handler, work: Arc<dyn Work>) -> Arc<dyn Work> {
        if *handler != Handler::Http {
            return work;
        }
        let requests = HttpWork::new(Arc::clone(&self.http_client));
        match &self.outbound {
            Some(choose) => {
                let choose = Arc::clone(choose);
                requests.outbound(move |job| choose(job, Outgoing::Request)).into_work()
            }
            None => requests.into_work(),
        }
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_self, reason = "the other half uses it")]
    fn limit_requests(&self, _: &Handler, work: Arc<dyn Work>) -> Arc<dyn Work> {
        work
    }
}

/// The job as the program defines it. The program can change the definition while the job runs.
pub(super) struct LocalJob {
    name: JobName,
    definition: Mutex<Job>,
    handler: Handler,
    author: JobSource,
}

impl LocalJob {
    /// Replaces the definition and settles with the registry which configuration takes precedence, as on joining. A job that was removed meanwhile
    /// stays removed.
    pub(super) async fn update(
        &self,
        registry: &dyn Registry,
        job: Job,
        limit: ShardLimit,
    ) -> Result<(), JoinError> {
        *self.definition.lock().unwrap_or_else(PoisonError::into_inner) = job.clone();
        let outage = |source| JoinError::Registry { job: self.name.to_string(), source };
        let namespace = registry.namespace();
        let tree = JobTree::new(namespace, &self.name).map_err(|error| {
            let (path, reason) = (namespace.path().clone(), error.to_string());
            outage(registry::Error::Invalid { path, reason })
        })?;
        let if_absent = IfAbsent::Refuse;
        let settled =
            settle_configuration(registry, &tree, &job, &self.handler, if_absent, limit).await?;
        self.log_drift(&settled.drift);
        Ok(())
    }

    /// Logs where the stored configuration differs from the definition and takes precedence.
    fn log_drift(&self, drift: &[Difference]) {
        for difference in drift {
            tracing::warn!(
                job = %self.name, %difference,
                hint = "`overwrite: true`, or `elasticjob job apply -f FILE`",
                "stored configuration overrides the local one"
            );
        }
    }

    /// Whether the program itself says that this script gets the variables which lead to registry and history. The stored configuration does not
    /// count: everyone who can write to the registry could make any permitted script print them.
    pub(super) fn lets_script_inherit_environment(&self, stored: &Job) -> bool {
        let definition = self.definition.lock().unwrap_or_else(PoisonError::into_inner);
        let command = |job: &Job| {
            let line = job.props.get("script.command.line").map(ToOwned::to_owned);
            (line, job.props.policies().script_shell)
        };
        self.author == JobSource::Program
            && definition.props.policies().script_inherit_environment
            && command(&definition) == command(stored)
    }

    fn definition(&self) -> Job {
        self.definition.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Takes part in one job of the node.
pub(super) struct JobLoop {
    node: Arc<NodeContext>,
    local: Arc<LocalJob>,
    work: Arc<dyn Work>,
    listeners: Arc<Listeners>,
    once: OnceBarrier,
    /// The session that the job uses from its first join on.
    place: OnceCell<SessionPlace>,
    /// Shards that tasks of this process still run, over all sessions.
    busy: BusyShards,
    /// Ends the loop: with the node, or earlier.
    stop: CancelToken,
    /// Whether the loop can run a fire now: the registry answers and the owners of the shards are known. Closed when the loop has ended.
    ready: watch::Sender<bool>,
    /// Why what is stored for the job cannot be used, while it cannot.
    config_problem: watch::Sender<Option<String>>,
    if_refused: IfRefused,
}

/// What to do if [what is stored for the job](JoinError::concerns_one_job) does not let it be joined for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfRefused {
    /// Answer with the error.
    Fail,
    /// Join once it does: the other jobs of the node run meanwhile.
    Wait,
}

/// How the first join went.
#[derive(Debug)]
pub(super) enum FirstJoin {
    Joined,
    /// The job is joined once this error is gone.
    Waiting(JoinError),
}

/// How a job was joined again.
enum Rejoined {
    Member(Member),
    Stopped,
    /// The job was defined only in the registry and is removed there.
    Gone,
}

/// Why the loop's part in a session ended.
enum SessionEnd {
    /// Join again in another session.
    SessionLost,
    /// The loop is over.
    Stopped,
}

impl JobLoop {
    pub(super) fn new(
        node: Arc<NodeContext>,
        entry: NodeJob,
        stop: CancelToken,
        ready: watch::Sender<bool>,
        if_refused: IfRefused,
    ) -> Self {
        let work = node.supervision.supervise(&entry.handler, entry.work);
        let work = node.limit_requests(&entry.handler, work);
        let name = entry.job.name.clone();
        let (definition, handler) = (Mutex::new(entry.job), entry.handler);
        Self {
            local: Arc::new(LocalJob { name, definition, handler, author: entry.author }),
            work: match entry.permission {
                Some(permission) => permission.wrap(work),
                None => work,
            },
            listeners: Arc::new(Listeners::new(entry.listeners)),
            once: OnceBarrier::new(entry.once, &node.randomness),
            place: OnceCell::new(),
            node,
            busy: BusyShards::default(),
            stop,
            ready,
            config_problem: watch::Sender::new(None),
            if_refused,
        }
    }

    /// Why what is stored for the job cannot be used, while it cannot.
    pub(super) fn config_problem(&self) -> watch::Receiver<Option<String>> {
        self.config_problem.subscribe()
    }

    /// The definition, which can be updated while the loop runs.
    pub(super) fn local_job(&self) -> &Arc<LocalJob> {
        &self.local
    }

    /// Joins the job in the current session.
    async fn join(&self) -> Result<Member, JoinError> {
        let node = &self.node;
        let outage = |source| JoinError::Registry { job: self.local.name.to_string(), source };
        let place = self.place.get_or_try_init(|| self.find_place()).await.map_err(outage)?;
        let session = place.session();
        let id = session.identity.current(&*session.registry, &*node.randomness).await;
        let id = id.map_err(outage)?;
        let mut instance = Instance::new(id);
        instance.labels.clone_from(&node.labels);
        let joining = JoinRequest {
            local: self.local.definition(),
            handler: self.local.handler.clone(),
            author: self.local.author,
            instance,
        };
        let environment = MemberResources {
            registry: Arc::clone(&session.registry),
            clock: Arc::clone(&node.clock),
            randomness: Arc::clone(&node.randomness),
            strategies: node.strategies.clone(),
            flaws: node.flaws,
            busy: self.busy.clone(),
            shard_limit: node.shard_limit,
        };
        let member = Member::join(environment, joining).await?;
        place.resize(member.job().shards.get());
        self.set_config_problem(None);
        self.local.log_drift(member.drift());
        Ok(member)
    }

    async fn find_place(&self) -> Result<SessionPlace, registry::Error> {
        let sessions = &self.node.sessions;
        let namespace = sessions.first().registry.namespace();
        let tree = JobTree::new(namespace, &self.local.name).map_err(|error| {
            let (path, reason) = (namespace.path().clone(), error.to_string());
            registry::Error::Invalid { path, reason }
        })?;
        let shards = self.local.definition().shards.get();
        sessions.place(tree, shards).await
    }

    /// The session that the job has joined in.
    fn session(&self) -> &Arc<NodeSession> {
        self.place.get().map_or_else(|| self.node.sessions.first(), SessionPlace::session)
    }

    /// Joins the job, answers whether that succeeded, and takes part in the job, over any number of sessions, until the node stops or the instance
    /// is shut down.
    pub(super) async fn run(
        self: Box<Self>,
        answer: oneshot::Sender<Result<FirstJoin, JoinError>>,
    ) {
        let joined = tokio::select! {
            biased;
            _ = self.stop.cancelled() => return Box::pin(self.undo_join()).await,
            // Boxed: the future is large, and would enlarge every loop.
            joined = Box::pin(self.join()) => joined,
        };
        let joined = match joined {
            Err(error) if self.if_refused == IfRefused::Wait && error.concerns_one_job() => {
                self.note_refused(&error);
                let _ = answer.send(Ok(FirstJoin::Waiting(error)));
                return match Box::pin(self.join_until_done()).await {
                    Rejoined::Member(member) => self.take_part(member).await,
                    Rejoined::Stopped => Box::pin(self.undo_join()).await,
                    Rejoined::Gone => {}
                };
            }
            joined => joined,
        };
        let member = match joined {
            Ok(member) => member,
            // Whatever the error is, the instance may have been created before it.
            Err(JoinError::Registry { job, source }) => {
                let _ = answer.send(Err(JoinError::Registry { job, source }));
                return Box::pin(self.undo_join()).await;
            }
            Err(error) => {
                drop(self);
                let _ = answer.send(Err(error));
                return;
            }
        };
        let _ = answer.send(Ok(FirstJoin::Joined));
        self.take_part(member).await;
    }

    async fn take_part(&self, mut member: Member) {
        let now = self.node.clock.now();
        let first_joined_at = member.first_joined_at().map_or(now, |since| since.min(now));
        let mut state = JobState::new(now, first_joined_at, self.busy.clone());
        loop {
            let end = self.run_session(member, &mut state).await;
            self.ready.send_replace(false);
            match end {
                SessionEnd::Stopped => return,
                SessionEnd::SessionLost => {}
            }
            member = match Box::pin(self.join_until_done()).await {
                Rejoined::Member(member) => member,
                Rejoined::Stopped => return Box::pin(self.drain_and_undo(&mut state)).await,
                Rejoined::Gone => return Box::pin(self.drain(&mut state)).await,
            };
        }
    }

    /// Joins again until that succeeds.
    async fn join_until_done(&self) -> Rejoined {
        loop {
            tokio::select! {
                biased;
                _ = self.stop.cancelled() => return Rejoined::Stopped,
                joined = Box::pin(self.join()) => match joined {
                    Ok(member) => return Rejoined::Member(member),
                    Err(JoinError::Gone { .. }) => return Rejoined::Gone,
                    Err(error) if error.concerns_one_job() => self.note_refused(&error),
                    Err(error) => {
                        let Problem { message, hint } = Problem::of(&error);
                        tracing::error!(job = %self.local.name, error = message, hint, "rejoining job failed, retrying");
                    }
                },
            }
            tokio::select! {
                biased;
                _ = self.stop.cancelled() => return Rejoined::Stopped,
                () = self.node.clock.sleep_until(self.node.clock.monotonic() + RETRY_DELAY) => {}
            }
        }
    }

    /// The job is not joined because of what is stored for it. Logged once for each reason.
    fn note_refused(&self, error: &JoinError) {
        let Problem { message, hint } = Problem::of(error);
        match error {
            // Nothing is wrong with it: there is no such job.
            JoinError::Gone { .. } => {}
            _ if !self.set_config_problem(Some(message.clone())) => {}
            JoinError::Unreadable(_) | JoinError::Invalid(_) => {
                tracing::error!(job = %self.local.name, error = message, hint, "job not joined until its configuration is valid");
            }
            _ => {
                tracing::error!(job = %self.local.name, error = message, hint, "job not joined, retrying");
            }
        }
    }

    /// Returns whether that is news.
    fn set_config_problem(&self, problem: Option<String>) -> bool {
        self.config_problem.send_if_modified(|known| {
            let is_new = *known != problem;
            *known = problem;
            is_new
        })
    }

    async fn run_session(&self, mut member: Member, state: &mut JobState) -> SessionEnd {
        let mut job = Arc::clone(member.job());
        let mut alarm = self.alarm(&job);
        let mut runner = self.runner(&job);
        let cancel = state.begin_session();
        member.claims().take_over(cancel.clone()).await;
        let mut pause = None;
        loop {
            // Own runs of a job on one instance are sequential. An item may turn out to need no run; then the next one follows.
            while let Some(item) = state.next_item(pause.map(|(_, postponed)| postponed)) {
                let run = self.run_context(&member, &job, &runner, &cancel, &state.reported);
                if let Some(id) = self.spawn(item.clone(), run, &job, state) {
                    state.run_started(id, item);
                }
            }
            tokio::select! {
                biased;
                _ = self.stop.cancelled() => {
                    // Boxed, as all that happens once: it would enlarge every loop.
                    Box::pin(async { tokio::join!(self.drain(state), member.begin_leaving()) }).await;
                    Box::pin(self.leave(member)).await;
                    return SessionEnd::Stopped;
                }
                event = member.next_event() => match event {
                    Some(MemberEvent::Configured(changed)) => {
                        self.set_config_problem(None);
                        if changed.schedule(&self.node.zone) != job.schedule(&self.node.zone) {
                            alarm = self.alarm(&changed);
                            // Past fires of the new schedule were never due.
                            state.since = self.node.clock.now();
                            state.pending.change_schedule();
                            state.reported.restart(state.since);
                        }
                        if let Some(place) = self.place.get() {
                            place.resize(changed.shards.get());
                        }
                        if ThreadPool::of(&changed) != ThreadPool::of(&job) {
                            runner = self.runner(&changed);
                        }
                        job = changed;
                    }
                    // The member has logged it. The job goes on with its last valid configuration.
                    Some(MemberEvent::Unreadable(problem)) => {
                        self.set_config_problem(Some(problem));
                    }
                    Some(MemberEvent::Triggered(trigger)) => state.pending.push_trigger(*trigger),
                    Some(MemberEvent::Ready) => {
                        self.ready.send_replace(true);
                        state.pending.needs_catch_up |= !state.is_caught_up;
                        state.pending.may_have_misfires = true;
                    }
                    Some(MemberEvent::Disconnected) => drop(self.ready.send_replace(false)),
                    Some(MemberEvent::Misfired) => state.pending.may_have_misfires = true,
                    Some(MemberEvent::TakenOver(claimed)) => {
                        let run = self.run_context(&member, &job, &runner, &cancel, &state.reported);
                        state.runs.spawn(async move { run.run_taken_over(*claimed).await });
                    }
                    Some(MemberEvent::ShardLost(lost)) => self.node.history.record_lost(*lost),
                    Some(MemberEvent::ShardsUnreadable { due_at, problems }) => {
                        self.report_unreadable(&job, due_at, problems, &state.reported);
                    }
                    Some(MemberEvent::ShutDown) => {
                        Box::pin(self.drain(state)).await;
                        Box::pin(self.leave(member)).await;
                        return SessionEnd::Stopped;
                    }
                    Some(MemberEvent::SessionLost) | None => {
                        if job.props.policies().on_lease_loss == LeaseLoss::Cancel {
                            cancel.cancel(CancelReason::LeaseLost);
                        }
                        return SessionEnd::SessionLost;
                    }
                },
                due_at = next_fire(alarm.as_mut()) => {
                    let passed = state.alarm(job.schedule(&self.node.zone).as_ref(), due_at);
                    if state.is_running() {
                        self.fire_during_run(&job, member.id(), due_at, passed, state);
                    } else {
                        state.pending.set_due(Fire::scheduled(job.name.clone(), due_at));
                    }
                }
                Some(ended) = state.runs.join_next_with_id() => {
                    let (id, result) = match ended {
                        Ok((id, result)) => (id, result),
                        Err(error) => (error.id(), RunResult::NothingToRun),
                    };
                    if let ControlFlow::Break(postponed) = state.run_ended(id, result) {
                        pause = Some((self.node.clock.monotonic() + RETRY_DELAY, postponed));
                    }
                }
                () = self.node.clock.sleep_until(pause.map_or_else(|| self.node.clock.monotonic(), |(until, _)| until)), if pause.is_some() => pause = None,
            }
        }
    }

    /// A fire is due while the previous run is still going: it is compensated afterwards or skipped, as the job says.
    fn fire_during_run(
        &self,
        job: &Job,
        instance: &InstanceId,
        due_at: Timestamp,
        passed: Missed,
        state: &mut JobState,
    ) {
        if job.misfire == Misfire::RunOnce {
            state.pending.promise_misfire(Fire::scheduled(job.name.clone(), due_at));
            tracing::warn!(job = %job.name, %due_at, "misfire, runs after the previous run");
            let run = RunId::scheduled(job.name.clone(), due_at);
            self.node.history.record_misfire(&run, || TaskId {
                job: job.name.clone(),
                items: state.busy.shards().into_iter().collect(),
                instance: instance.clone(),
            });
        } else {
            tracing::warn!(job = %job.name, %due_at, count = passed.count, "fire skipped, previous run still going");
            self.listeners.missed(&job.name, passed.count);
            self.node.history.record_missed(&job.name, passed, MissedReason::Skipped);
            state.reported.note(passed);
        }
    }

    /// Spawns a run for the item; `None` if the item needs no run.
    fn spawn(
        &self,
        item: WorkItem,
        run: RunContext,
        job: &Job,
        state: &mut JobState,
    ) -> Option<task::Id> {
        let max_wait = self.sharding_wait(job);
        let schedule = job.schedule(&self.node.zone);
        let handle = match item {
            WorkItem::Fire(fire) => state
                .runs
                .spawn(async move { run.run_fire(fire, ClaimScope::Scheduled, max_wait).await }),
            WorkItem::Trigger(trigger) => {
                // Others may be able to start while this one waits.
                let max_wait = if state.pending.has_triggers() { Duration::ZERO } else { max_wait };
                state.runs.spawn(async move { run.run_trigger(trigger, max_wait).await })
            }
            WorkItem::CatchUp => {
                let schedule = schedule?;
                let now = self.node.clock.now();
                let until = CatchUpEnd {
                    run_until: state.joined_at.min(now),
                    report_until: state.first_joined_at.min(now),
                };
                state.runs.spawn(async move { run.catch_up(schedule, until, max_wait).await })
            }
            WorkItem::Misfire(_) => {
                if job.misfire == Misfire::Skip || self.node.flaws.has(Flaw::ForgetMissedFires) {
                    return None;
                }
                let now = self.node.clock.now();
                // The clock may have been set back since.
                state.since = state.since.min(now);
                let fire = if let Some(schedule) = schedule {
                    let just_now = now + jiff::SignedDuration::from_nanos(1);
                    Fire::scheduled(job.name.clone(), schedule.prev_before(just_now)?)
                } else {
                    let id = RunId::triggered(self.node.randomness.bits());
                    Fire::triggered(job.name.clone(), now, id)
                };
                let scope = ClaimScope::Misfired { since: state.since };
                state.runs.spawn(async move { run.run_fire(fire, scope, max_wait).await })
            }
            WorkItem::OldMisfire(fire) => {
                if job.misfire == Misfire::Skip {
                    tracing::warn!(job = %job.name, due_at = %fire.due_at, "misfire skipped, the job compensates none any more");
                    self.listeners.missed(&job.name, 1);
                    let due_at = fire.due_at;
                    let missed = Missed { first: due_at, last: due_at, count: 1 };
                    self.node.history.record_missed(&job.name, missed, MissedReason::Skipped);
                    state.reported.note(missed);
                    return None;
                }
                let since = fire.due_at - jiff::SignedDuration::from_nanos(1);
                let scope = ClaimScope::Misfired { since };
                state.runs.spawn(async move { run.run_fire(fire, scope, max_wait).await })
            }
        };
        Some(handle.id())
    }

    /// Shards whose ledger page cannot be read do not start until an operator acts, so they are counted and alerted at every fire.
    fn report_unreadable(
        &self,
        job: &Job,
        due_at: Option<Timestamp>,
        problems: BTreeMap<u32, String>,
        reported: &ReportedFires,
    ) {
        self.listeners.missed(&job.name, 1);
        if let Some(due_at) = due_at {
            let fire = Missed { first: due_at, last: due_at, count: 1 };
            self.node.history.record_missed(&job.name, fire, MissedReason::Unreadable);
            reported.note(fire);
        }
        for (shard, problem) in problems {
            let failure = Failure::new(format!("shard {shard} did not run: {problem}"));
            let notice = Notice::of_job(job.name.clone(), &failure, self.node.clock.now());
            // There is no run that a handler of this failure could end.
            let _ = self.node.alerts.send(job, notice, &self.listeners);
        }
    }

    fn alarm(&self, job: &Job) -> Option<Alarm> {
        let schedule = job.schedule(&self.node.zone)?;
        Some(self.node.timer.register(schedule))
    }

    /// How long a fire waits for a sharding in progress: at most until the next fire.
    fn sharding_wait(&self, job: &Job) -> Duration {
        let now = self.node.clock.now();
        let next = job.schedule(&self.node.zone).and_then(|schedule| schedule.next_after(now));
        next.and_then(|next| next.duration_since(now).try_into().ok())
            .map_or(MAX_SHARDING_WAIT, |until: Duration| until.min(MAX_SHARDING_WAIT))
    }

    /// One runner for all runs of the job, so that they share its concurrency limit.
    fn runner(&self, job: &Job) -> Arc<Runner> {
        let randomness = Arc::clone(&self.node.randomness);
        let context = AttemptContext {
            clock: Arc::clone(&self.node.clock),
            dice: Arc::new(move || randomness.fraction()),
            observer: self.node.history.observer(),
        };
        Arc::new(match self.node.executors.of(job) {
            Some(executor) => Runner::on(context, executor),
            None => Runner::new(context, ThreadPool::of(job).limit(self.node.processors)),
        })
    }

    fn run_context(
        &self,
        member: &Member,
        job: &Arc<Job>,
        runner: &Arc<Runner>,
        cancel: &CancelToken,
        reported: &ReportedFires,
    ) -> RunContext {
        RunContext {
            session: Arc::clone(self.session()),
            clock: Arc::clone(&self.node.clock),
            schedule_clock: Arc::clone(&self.node.schedule_clock),
            claims: member.claims().clone(),
            instance: member.id().clone(),
            job: Arc::clone(job),
            local: Arc::clone(&self.local),
            work: Arc::clone(&self.work),
            runner: Arc::clone(runner),
            listeners: Arc::clone(&self.listeners),
            once: self.once.clone(),
            alerts: self.node.alerts.clone(),
            output: Arc::clone(&self.node.output),
            secrets: self.node.secrets.clone(),
            history: self.node.history.clone(),
            schedule: job.schedule(&self.node.zone),
            reported: reported.clone(),
            cancel: cancel.clone(),
            flaws: self.node.flaws,
        }
    }

    async fn drain_and_undo(&self, state: &mut JobState) {
        tokio::join!(self.drain(state), self.undo_join());
    }

    /// A join was given up or failed, and may have been carried out. If the node stops, the instance ends with its session.
    async fn undo_join(&self) {
        let NodeContext { clock, stop, .. } = &*self.node;
        let undone = async {
            let Some(place) = self.place.get() else { return };
            let NodeSession { registry, identity, .. } = &**place.session();
            if let Some((session, id)) = identity.newest().await {
                undo_join(&**registry, &**clock, place.tree(), &id, session).await;
            }
        };
        tokio::select! {
            biased;
            _ = stop.cancelled() => {}
            () = undone => {}
        }
    }

    /// Leaves the job: at once if the node stops, because its session ends soon; otherwise until nothing is left behind.
    async fn leave(&self, member: Member) {
        if self.node.stop.is_cancelled() {
            return member.leave().await;
        }
        tokio::select! {
            biased;
            () = member.leave_until_done() => {}
            _ = self.node.stop.cancelled() => {}
        }
    }

    /// Waits for the runs to finish; cancels those that exceed the drain timeout and waits for them.
    async fn drain(&self, state: &mut JobState) {
        let (clock, runs) = (&self.node.clock, &mut state.runs);
        let all = async { while runs.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            () = all => return,
            () = clock.sleep_until(clock.monotonic() + self.node.drain) => {}
        }
        state.cancel.cancel(CancelReason::ShuttingDown);
        let (runs, shards) = (&mut state.runs, state.busy.clone());
        let all = async { while runs.join_next().await.is_some() {} };
        tokio::pin!(all);
        tokio::select! {
            biased;
            () = &mut all => return,
            () = clock.sleep_until(clock.monotonic() + STUCK_AFTER) => {}
        }
        let shards = shards.shards();
        tracing::error!(job = %self.local.name, ?shards, hint = "restart this process if they do not end", "cancelled runs do not end, their shards stay held");
        all.await;
    }
}

async fn next_fire(alarm: Option<&mut Alarm>) -> Timestamp {
    match alarm {
        Some(alarm) => alarm.due().await,
        None => std::future::pending().await,
    }
}
