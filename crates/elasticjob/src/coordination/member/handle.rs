//! A member as its owner holds it.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{
    actor::Actor,
    join::{JoinError, Joining},
};
use crate::{
    coordination::{ledger::State, sharding::Dealer},
    job::{Difference, FencingToken, Fire, InstanceId, Job},
    registry::{Error, Registry, Version},
    runtime::{Clock, Randomness, Tasks},
};

/// What happens to a member that its owner has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The configuration that counts from now on.
    Configured(Box<Job>),
    /// The configuration was changed into something nobody can read; the last good one goes on.
    Unreadable(String),
    /// Somebody wants it to run now.
    Triggered,
    /// Somebody took the instance out of the job: stop.
    ShutDown,
    /// The session is over: join again, as somebody new.
    SessionLost,
}

/// Shards that are ours to run, until released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The shards, each with the version of its page.
    pub shards: Vec<(u32, Version)>,
    /// Grows with every claim.
    pub token: FencingToken,
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
        fire: Fire,
        patience: Duration,
        reply: oneshot::Sender<Result<Claimed, Refused>>,
    },
    Release {
        fire: Fire,
        ended: Vec<(u32, Version, State)>,
        reply: oneshot::Sender<Result<(), Error>>,
    },
    Leave {
        reply: oneshot::Sender<()>,
    },
}

/// One instance in one job.
pub struct Member {
    claims: Claims,
    news: mpsc::UnboundedReceiver<News>,
    id: InstanceId,
    // Boxed, because a member is handed from future to future.
    job: Box<Job>,
    drift: Vec<Difference>,
    // Ends the actor when the member is dropped.
    _tasks: Tasks,
}

/// A member's right to claim; clones are the same right.
#[derive(Debug, Clone)]
pub struct Claims {
    // Boxed, because a channel keeps room for 32 of them, empty or not.
    commands: mpsc::Sender<Box<Command>>,
}

impl Member {
    /// Enters the job. When this returns the instance is there; elections and the dealing of shards go on by themselves.
    pub async fn join(
        registry: Arc<dyn Registry>,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
        dealer: Option<Arc<dyn Dealer>>,
        joining: Joining,
    ) -> Result<Self, JoinError> {
        let (commands, inbox) = mpsc::channel(16);
        let (told, news) = mpsc::unbounded_channel();
        let id = joining.instance.id.clone();
        let (actor, drift) =
            Actor::join(registry, clock, randomness, dealer, joining, inbox, told).await?;
        let job = Box::new(actor.job().clone());
        let mut tasks = Tasks::new();
        tasks.spawn(Box::new(actor).run());
        Ok(Self { claims: Claims { commands }, news, id, job, drift, _tasks: tasks })
    }

    /// Who we are in it.
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The configuration that counted when we entered.
    pub fn job(&self) -> &Job {
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
        self.news.recv().await
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
    /// Claims every shard of this fire that is ours, waiting at most `patience` while shards are dealt.
    pub async fn claim(&self, fire: &Fire, patience: Duration) -> Result<Claimed, Refused> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Claim { fire: fire.clone(), patience, reply };
        self.commands.send(Box::new(command)).await.map_err(|_| Refused::Left)?;
        answer.await.map_err(|_| Refused::Left)?
    }

    /// Gives shards back and says how each ended.
    pub async fn release(
        &self,
        fire: &Fire,
        ended: Vec<(u32, Version, State)>,
    ) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Release { fire: fire.clone(), ended, reply };
        self.commands.send(Box::new(command)).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.id, self.job.name)
    }
}
