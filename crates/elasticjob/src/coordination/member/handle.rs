//! A member as its owner holds it.

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
    hold::Hold,
    join::{JoinError, Joining},
};
use crate::{
    coordination::{flaw::Flaws, sharding::CustomStrategies, trigger::TriggerRequest},
    job::{Difference, FencingToken, Fire, InstanceId, Job, RunId},
    registry::{Error, Registry},
    runtime::{CancelToken, Clock, Randomness, Tasks},
};

/// What happens to a member that its owner has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The configuration that counts from now on.
    Configured(Arc<Job>),
    /// The configuration was changed into something nobody can read; the last good one goes on.
    Unreadable(String),
    /// Somebody wants it to run now. Boxed, because it is large.
    Triggered(Box<TriggerRequest>),
    /// Who owns what is certain, for the first time or again: what was due meanwhile may not have run.
    Ready,
    /// The registry is out of reach: nothing can be started.
    OutOfReach,
    /// A run of a shard of ours was missed, and nobody runs it now.
    Missed,
    /// Shards of a dead instance wait to be taken over.
    Orphaned,
    /// A shard that is ours now was running, by the ledger, on an instance that is gone, and nobody is to take it over: its end will not be told.
    Lost(Box<Lost>),
    /// Somebody took the instance out of the job: stop.
    ShutDown,
    /// The session is over: join again, as somebody new.
    SessionLost,
}

/// A shard that was running on an instance that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Of which run.
    pub run: RunId,
    /// Which one.
    pub item: u32,
    /// Who ran it.
    pub instance: InstanceId,
    /// Every claim of it until then has a smaller one.
    pub token: FencingToken,
}

/// What is to be claimed.
#[derive(Debug, Clone)]
pub struct Request {
    /// For which fire.
    pub fire: Fire,
    /// Why.
    pub why: Why,
    /// How long to wait while shards are dealt.
    pub patience: Duration,
    /// What the shards are cancelled by, each for itself or all together.
    pub cancel: CancelToken,
    /// Shards that a task of this process still runs: they are left out.
    pub busy: BTreeSet<u32>,
}

/// Why shards are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// They are due.
    Due,
    /// They were due and nobody ran them: those that are marked as missed, and those that were due after `since`, while somebody was there.
    Late {
        /// From when on somebody was there.
        since: Timestamp,
    },
    /// They were due while nobody was there.
    CatchUp,
    /// Somebody asked for it; only these, if there are any.
    Asked(BTreeSet<u32>),
}

impl Why {
    /// Whether somebody asked for this shard.
    pub fn is_asked_of(&self, shard: u32) -> bool {
        matches!(self, Self::Asked(shards) if shards.is_empty() || shards.contains(&shard))
    }
}

/// Shards that are ours to run, until released.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The fire they were claimed for.
    pub fire: Fire,
    /// The shards.
    pub shards: Vec<ClaimedShard>,
    /// Grows with every claim.
    pub token: FencingToken,
    /// Shards of ours that were asked for and that somebody had in hand: they are still to run.
    pub left: BTreeSet<u32>,
}

/// A shard that is ours to run.
#[derive(Debug, Clone)]
pub struct ClaimedShard {
    /// Which one.
    pub item: u32,
    /// The how manieth try of this run it is, over all instances.
    pub attempt: u32,
    /// Whether it still is ours.
    pub hold: Arc<Hold>,
}

/// How a claimed shard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Done,
    /// Badly.
    Failed,
    /// It never began: the ledger is as it was before.
    Withdrawn,
    /// It was not known to be ours when it ended: what is somebody else's by now is not touched.
    Fenced,
}

/// Why a fire was not claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is nothing of it for this instance.
    #[error("no shard of this fire is ours")]
    Nothing,
    /// The shards were being dealt all the time.
    #[error("the shards were being dealt for longer than the fire could wait")]
    Resharding,
    /// What was asked for still runs here, for an earlier fire.
    #[error("this process still runs these shards for an earlier fire")]
    Busy,
    /// The registry.
    #[error(transparent)]
    Registry(#[from] Error),
    /// The member has ended.
    #[error("this instance has left the job")]
    Left,
}

#[derive(Debug)]
pub(super) enum Command {
    Claim {
        request: Request,
        reply: oneshot::Sender<Result<Claimed, Refused>>,
    },
    Take {
        cancel: CancelToken,
        busy: BTreeSet<u32>,
        reply: oneshot::Sender<Result<Claimed, Refused>>,
    },
    Release {
        ended: Vec<(u32, Ended)>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    LastDue {
        reply: oneshot::Sender<BTreeMap<u32, Option<Timestamp>>>,
    },
    Leave {
        reply: oneshot::Sender<()>,
    },
}

/// What a member is made of.
pub struct Ground {
    /// Where it meets the others.
    pub registry: Arc<dyn Registry>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What it draws lots with.
    pub randomness: Arc<dyn Randomness>,
    /// Ways to deal shards.
    pub strategies: CustomStrategies,
    /// Precautions left out, in a simulation.
    pub flaws: Flaws,
}

/// One instance in one job.
pub struct Member {
    claims: Claims,
    news: queue::UnboundedReceiver<News>,
    id: InstanceId,
    job: Arc<Job>,
    drift: Vec<Difference>,
    // Ends the actor when the member is dropped.
    _tasks: Tasks,
}

/// A member's right to claim; clones are the same right.
#[derive(Debug, Clone)]
pub struct Claims {
    // Boxed, because a channel keeps room for 32 of them, empty or not.
    commands: mpsc::Sender<Box<Command>>,
    resharding: Arc<AtomicBool>,
}

impl Member {
    /// Enters the job. When this returns the instance is there; elections and the dealing of shards go on by themselves.
    pub async fn join(ground: Ground, joining: Joining) -> Result<Self, JoinError> {
        let (commands, inbox) = mpsc::channel(16);
        let (told, news) = queue::unbounded();
        let id = joining.instance.id.clone();
        let resharding = Arc::new(AtomicBool::new(false));
        let (actor, drift) =
            Actor::join(ground, joining, inbox, told, Arc::clone(&resharding)).await?;
        let job = Arc::clone(actor.job());
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(actor).run());
        Ok(Self { claims: Claims { commands, resharding }, news, id, job, drift, _tasks: tasks })
    }

    /// Who we are in it.
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The configuration that counted when we entered.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// What the program said otherwise then.
    pub fn drift(&self) -> &[Difference] {
        &self.drift
    }

    /// The right to claim, for whoever runs the shards.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// What happens next; `None` when the member has ended.
    pub async fn news(&mut self) -> Option<News> {
        self.news.next().await
    }

    /// Leaves the job: leadership first, then the instance.
    pub async fn leave(self) {
        let (reply, answer) = oneshot::channel();
        if self.claims.commands.send(Box::new(Command::Leave { reply })).await.is_ok() {
            let _ = answer.await;
        }
    }
}

impl Claims {
    /// Claims every shard of this fire that is ours.
    pub async fn claim(&self, request: Request) -> Result<Claimed, Refused> {
        self.ask(|reply| Command::Claim { request, reply }).await.unwrap_or(Err(Refused::Left))
    }

    /// Takes over a fair share of what the dead left behind, of one run.
    pub async fn take(&self, cancel: CancelToken, busy: BTreeSet<u32>) -> Result<Claimed, Refused> {
        self.ask(|reply| Command::Take { cancel, busy, reply }).await.unwrap_or(Err(Refused::Left))
    }

    /// Gives shards back and says how each ended. Does not give up while the session lives: a shard that is not given back blocks
    /// everybody.
    pub async fn release(&self, ended: Vec<(u32, Ended)>) -> Result<(), Error> {
        self.ask(|reply| Command::Release { ended, reply }).await.unwrap_or(Err(Error::Closed))
    }

    /// The shards that are ours, each with when it was last started by its schedule, if it ever was.
    pub async fn last_due(&self) -> BTreeMap<u32, Option<Timestamp>> {
        self.ask(|reply| Command::LastDue { reply }).await.unwrap_or_default()
    }

    /// Whether shards are about to be dealt, so that streams should end.
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
