//! A member as its owner sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_channel::mpsc as queue;
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::{
    actor::Actor,
    busy_shards::{BusyGuard, BusyShards},
    claim_status::ClaimStatus,
    claims::ShardClaims,
    join::{JoinError, JoinRequest, Joined, join},
    leadership::Leadership,
};
use crate::{
    coordination::{flaw::Flaws, sharding::CustomStrategies, trigger::TriggeredRun},
    job::{
        Difference, ExpectedShards, FencingToken, Fire, InstanceId, Job, Outcome, RunId, RunReason,
        ShardLimit, ShardSelection,
    },
    registry::{Error, Registry, Session},
    runtime::{CancelToken, Clock, Randomness, Tasks},
};

/// What the owner of a member has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEvent {
    /// The configuration that applies from now on.
    Configured(Arc<Job>),
    /// The configuration was changed and cannot be read; the previous one stays in force.
    Unreadable(String),
    /// A triggered run has shards that are ours to run. Sent again from time to time until they have started. Boxed, because it is large.
    Triggered(Box<TriggeredRun>),
    /// The owners of all shards are certain, for the first time or again: fires that were due meanwhile may not have run.
    Ready,
    /// The registry is unreachable: nothing can be started.
    Disconnected,
    /// A shard of ours carries a misfire mark and does not run.
    Misfired,
    /// Shards of a dead instance were taken over: run them. Boxed, because it is large.
    TakenOver(Box<ShardClaim>),
    /// A shard that is ours now was running, by the ledger, on an instance that is dead, and without failover: no instance will report its end.
    ShardLost(Box<LostShard>),
    /// Shards of ours did not start, because their ledger pages cannot be read.
    ShardsUnreadable {
        /// The fire that they should have run; `None` if they were triggered.
        due_at: Option<Timestamp>,
        /// What is wrong with the page of each shard.
        problems: BTreeMap<u32, String>,
    },
    /// An operator shut the instance down: stop.
    ShutDown,
    /// The session has ended: join again, under a new id.
    SessionLost,
}

/// A shard that was running when its instance died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostShard {
    pub run: RunId,
    pub item: u32,
    pub instance: InstanceId,
    /// Larger than the fencing token of every claim of the shard until then.
    pub token: FencingToken,
}

/// A request to claim the shards of a fire.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    pub fire: Fire,
    pub scope: ClaimScope,
    /// How long to wait while shards are assigned.
    pub max_wait: Duration,
    /// Cancels all claimed shards; each of them has a child of it.
    pub cancel: CancelToken,
}

/// Which of its shards an instance claims for a fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimScope {
    /// The fire is due by the schedule: all shards that have not started it.
    Scheduled,
    /// The fire was due and no instance ran it: claims shards with a misfire mark, and shards whose fire was due after `since`, when there was
    /// an instance.
    Misfired { since: Timestamp },
    /// The fire was due while no instance was up.
    CatchUp,
    /// The shards of a stored trigger. Each of them is claimed once, whichever instance does.
    Triggered(ShardSelection),
}

impl ClaimScope {
    /// Why claimed shards run.
    pub fn reason(&self) -> RunReason {
        match self {
            Self::Scheduled => RunReason::Schedule,
            Self::Misfired { .. } => RunReason::Misfire,
            Self::CatchUp => RunReason::CatchUp,
            Self::Triggered(_) => RunReason::Trigger,
        }
    }

    /// Whether the run is for this shard at all, whichever instance owns it.
    pub fn selects(&self, shard: u32) -> bool {
        match self {
            Self::Scheduled | Self::Misfired { .. } | Self::CatchUp => true,
            Self::Triggered(shards) => shards.contains(shard),
        }
    }

    pub fn is_trigger(&self) -> bool {
        matches!(self, Self::Triggered(_))
    }

    /// Whether this is a trigger for this shard.
    pub fn is_trigger_for(&self, shard: u32) -> bool {
        matches!(self, Self::Triggered(shards) if shards.contains(shard))
    }
}

/// Claimed shards, ours to run until they are released.
#[derive(Debug, Clone)]
pub struct ShardClaim {
    pub fire: Fire,
    pub shards: Vec<ClaimedShard>,
    /// Shards of ours that the claim is for and that could not be claimed yet: they are still to run.
    pub remaining: BTreeSet<u32>,
    /// How many shards the run should have, over all instances; `None` for a takeover, whose run was counted when it began.
    pub expected: Option<ExpectedShards>,
    /// Cancels all shards; each of them has a child of it.
    pub cancel: CancelToken,
    /// The session of the claim: its deadline limits how long the claim may be trusted.
    pub session: Session,
    /// The process does not claim the shards again before this is dropped.
    pub(super) busy: Arc<BusyGuard>,
}

/// Whether both are the same claim.
impl PartialEq for ShardClaim {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.busy, &other.busy)
    }
}

impl Eq for ShardClaim {}

#[derive(Debug, Clone)]
pub struct ClaimedShard {
    pub item: u32,
    /// Attempt number within this run, counted across all instances.
    pub attempt: u32,
    /// Grows with every claim of the shard. A claim of many shards takes several transactions, so its shards may have different ones.
    pub token: FencingToken,
    pub status: Arc<ClaimStatus>,
    /// Fires after this instant and before the claimed one got no run of their own: this run answers them. `None` if that is not known.
    pub answers_since: Option<Timestamp>,
}

/// Why a claimed shard is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// It ran. If it was fenced, nodes and pages that another instance has written since are not touched.
    Ended(Outcome),
    /// It never started: the ledger page is restored.
    Withdrawn,
}

/// Why no shard of a fire was claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// No shard of this fire is to run on this instance.
    #[error("no shard of this fire is ours")]
    NothingToRun,
    #[error("shards were being assigned for longer than the fire could wait")]
    Resharding,
    #[error("shard {shard} is still held by {holder}, according to the ledger")]
    HeldElsewhere { shard: u32, holder: InstanceId },
    #[error("this process still runs these shards for an earlier fire")]
    Busy,
    #[error("the session holds no more ephemeral nodes until running shards end")]
    SessionFull,
    #[error(transparent)]
    Registry(#[from] Error),
    #[error("this instance has left the job")]
    Left,
}

#[derive(Debug)]
pub(super) enum Command {
    Claim { request: ClaimRequest, reply: oneshot::Sender<Result<ShardClaim, ClaimError>> },
    TakeOver { cancel: CancelToken },
    StopTakingOver { reply: oneshot::Sender<()> },
    Release { ended: Vec<(u32, Release)>, reply: oneshot::Sender<Result<(), Error>> },
    ReleaseEarly { ended: Vec<(u32, Release)>, reply: oneshot::Sender<Result<(), Error>> },
    LastDue { reply: oneshot::Sender<BTreeMap<u32, Option<Timestamp>>> },
    BeginLeaving { reply: oneshot::Sender<()> },
    Leave { until_done: bool, reply: oneshot::Sender<()> },
}

/// What a member works with.
pub struct MemberResources {
    pub registry: Arc<dyn Registry>,
    pub clock: Arc<dyn Clock>,
    pub randomness: Arc<dyn Randomness>,
    /// Sharding strategies that the program brings.
    pub strategies: CustomStrategies,
    /// Precautions that a simulation leaves out.
    pub flaws: Flaws,
    /// Shards that earlier members of this process may still run.
    pub busy: BusyShards,
    /// A stored configuration with more shards is unreadable here.
    pub shard_limit: ShardLimit,
}

/// One instance in one job.
pub struct Member {
    claims: ClaimHandle,
    events: queue::UnboundedReceiver<MemberEvent>,
    id: InstanceId,
    job: Arc<Job>,
    first_joined_at: Option<Timestamp>,
    drift: Vec<Difference>,
    // Dropping them ends the actor.
    _tasks: Tasks,
}

/// Claims and releases shards for a member. Clones act for the same member.
#[derive(Debug, Clone)]
pub struct ClaimHandle {
    // Boxed, because a channel reserves space for 32 of them.
    commands: mpsc::Sender<Box<Command>>,
    resharding: Arc<AtomicBool>,
}

impl Member {
    /// Joins the job. When this returns, the instance exists; elections and assignments happen by themselves.
    pub async fn join(resources: MemberResources, joining: JoinRequest) -> Result<Self, JoinError> {
        let (commands, inbox) = mpsc::channel(16);
        let (sender, events) = queue::unbounded();
        let id = joining.instance.id.clone();
        let resharding = Arc::new(AtomicBool::new(false));
        let Joined { mirror, leftover_marks, floor, first_joined_at, drift, assigned_for } =
            join(resources, joining, sender).await?;
        let job = Arc::clone(mirror.job());
        let mut claims = ShardClaims::new(&job, leftover_marks, floor);
        claims.observe(&mirror);
        if let Some((instances, shards)) = &assigned_for {
            tracing::info!(job = %job.name, instances = instances.len(), shards, "shards assigned");
        }
        let leadership = Leadership::new(assigned_for);
        let actor = Actor::new(mirror, claims, leadership, inbox, Arc::clone(&resharding));
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(actor).run());
        Ok(Self {
            claims: ClaimHandle { commands, resharding },
            events,
            id,
            job,
            first_joined_at,
            drift,
            _tasks: tasks,
        })
    }

    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The configuration that applied when we joined.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// When the oldest Rust instance that was there at our join had joined: since then an instance was up to run fires.
    pub fn first_joined_at(&self) -> Option<Timestamp> {
        self.first_joined_at
    }

    /// How the program's configuration differed from it.
    pub fn drift(&self) -> &[Difference] {
        &self.drift
    }

    pub fn claims(&self) -> &ClaimHandle {
        &self.claims
    }

    /// The next event; `None` once the member has ended.
    pub async fn next_event(&mut self) -> Option<MemberEvent> {
        self.events.next().await
    }

    /// Ends takeovers, and withdraws those that were not yet read from [`next_event`](Self::next_event). Other unread events are discarded.
    pub async fn stop_taking_over(&mut self) {
        self.claims.ask(|reply| Command::StopTakingOver { reply }).await;
        while let Ok(event) = self.events.try_recv() {
            if let MemberEvent::TakenOver(claimed) = event {
                let shards = claimed.shards.iter();
                let withdrawn = shards.map(|shard| (shard.item, Release::Withdrawn)).collect();
                if let Err(error) = self.claims.release(withdrawn).await {
                    tracing::warn!(job = %self.job.name, %error, "takeover not withdrawn");
                }
            }
        }
    }

    /// Begins to leave the job: nothing new is claimed, leadership and the instance are given up, and other instances get every shard that does
    /// not run here. Claimed shards stay claimed until they are released. Ends takeovers, too; see [`stop_taking_over`](Self::stop_taking_over).
    pub async fn begin_leaving(&mut self) {
        self.claims.ask(|reply| Command::BeginLeaving { reply }).await;
        self.stop_taking_over().await;
    }

    /// Leaves the job, once nothing runs any more: gives up leadership, then deletes the instance. Tries that once: what fails ends with the
    /// session.
    pub async fn leave(self) {
        self.claims.ask(|reply| Command::Leave { until_done: false, reply }).await;
    }

    /// Leaves the job as [`leave`](Self::leave) does, and tries until that is done or the session has ended. For a process that goes on: otherwise
    /// its nodes would stay until its session ends, and other instances would treat it as a member.
    pub async fn leave_until_done(self) {
        self.claims.ask(|reply| Command::Leave { until_done: true, reply }).await;
    }
}

impl ClaimHandle {
    /// Claims every shard of this fire that is ours.
    pub async fn claim(&self, request: ClaimRequest) -> Result<ShardClaim, ClaimError> {
        self.ask(|reply| Command::Claim { request, reply }).await.unwrap_or(Err(ClaimError::Left))
    }

    /// From now on takes over orphaned shards as they appear: each time a fair share of the shards of one run, handed over as
    /// [`MemberEvent::TakenOver`]. `cancel` cancels all of them.
    pub async fn take_over(&self, cancel: CancelToken) {
        let _ = self.commands.send(Box::new(Command::TakeOver { cancel })).await;
    }

    /// Releases shards and records how each run ended. Retried as long as the session lives: a shard that is not released blocks every
    /// instance.
    pub async fn release(&self, ended: Vec<(u32, Release)>) -> Result<(), Error> {
        self.ask(|reply| Command::Release { ended, reply }).await.unwrap_or(Err(Error::Closed))
    }

    /// Releases shards of a claim whose other shards still run. Does nothing while a Java instance is a member: which fires of a shard no instance
    /// ran is known there only from the time during which we held the shard.
    pub async fn release_early(&self, ended: Vec<(u32, Release)>) -> Result<(), Error> {
        self.ask(|reply| Command::ReleaseEarly { ended, reply }).await.unwrap_or(Err(Error::Closed))
    }

    /// Our shards, each with the time up to which nothing is missed: its last fire that was started, or since when it is enabled, if that is later.
    /// `None` for a shard that never ran, and while a Java instance is a member: what it ran is in no page.
    pub async fn last_due(&self) -> BTreeMap<u32, Option<Timestamp>> {
        self.ask(|reply| Command::LastDue { reply }).await.unwrap_or_default()
    }

    /// Whether shards are about to be assigned, so that streaming jobs should end.
    pub fn is_resharding(&self) -> bool {
        self.resharding.load(Ordering::Relaxed)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Box::new(command(reply))).await.ok()?;
        answer.await.ok()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.id, self.job.name)
    }
}
