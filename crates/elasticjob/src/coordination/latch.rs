//! Curator's latch: who comes first, acts first.
//!
//! Everybody who wants to act creates an ephemeral sequential node below the latch; the one with the smallest number acts, the
//! others wait for the one before them to go. Java instances and we queue in the same latch, so the names are Curator's:
//! `_c_{uuid}-latch-{10 digits}`, compared by what follows the last `latch-`.
//!
//! Being first is not enough: the act is a multi that checks the own latch node, so it fails when the session went meanwhile. No wait
//! is without an end, and nothing slow is done while holding the latch.

use std::time::Duration;

use crate::registry::{Create, Error, Event, Expected, Kind, Op, Path, Registry, SessionId};

/// How long to wait before trying again to leave a queue that cannot be reached.
const AGAIN: Duration = Duration::from_millis(200);

/// A place in the queue; first in it.
#[derive(Debug)]
pub struct Turn {
    /// The own latch node: to be checked in the multi that acts.
    pub node: Path,
    place: Place,
}

/// Where we queue, and as whom: found again by its ticket, also when nobody told us that it is there.
#[derive(Debug, Clone)]
struct Place {
    latch: Path,
    ticket: String,
    session: SessionId,
}

impl Turn {
    /// The condition that it is still our turn.
    pub fn check(&self) -> Op {
        Op::Check { path: self.node.clone(), expected: Expected::Any }
    }

    /// Leaves the queue; whoever waits behind is next. Does not give up while the session lives: a place nobody leaves holds up everybody
    /// behind.
    pub async fn pass(self, registry: &dyn Registry) {
        self.place.leave(registry).await;
    }
}

/// Queues in `latch` and waits for the own turn, at most `patience`; `None` if it did not come.
pub async fn queue(
    registry: &dyn Registry,
    latch: &Path,
    ticket: u128,
    patience: Duration,
) -> Result<Option<Turn>, Error> {
    let place =
        Place { latch: latch.clone(), ticket: uuid(ticket), session: registry.session().id() };
    let waiting = async {
        let node = place.join(registry).await?;
        Ok(wait(registry, latch, &node).await?.then_some(node))
    };
    let result = tokio::time::timeout(patience, waiting).await.unwrap_or(Ok(None));
    match result {
        Ok(Some(node)) => Ok(Some(Turn { node, place })),
        Ok(None) => {
            place.leave(registry).await;
            Ok(None)
        }
        Err(error) => {
            place.leave(registry).await;
            Err(error)
        }
    }
}

impl Place {
    async fn join(&self, registry: &dyn Registry) -> Result<Path, Error> {
        let name = format!("_c_{}-latch-", self.ticket);
        let name = self.latch.join(name).expect("a good name");
        let create = || Create::new(&name, "", Kind::EphemeralSequential(self.session));
        let created = match registry.create(create()).await {
            Err(Error::Absent { .. }) => {
                dig(registry, &self.latch).await?;
                registry.create(create()).await?
            }
            created => created?,
        };
        Ok(created.path().cloned().unwrap_or(name))
    }

    async fn leave(&self, registry: &dyn Registry) {
        while registry.session().id() == self.session {
            match self.try_leave(registry).await {
                Ok(()) | Err(Error::SessionExpired | Error::Closed) => return,
                Err(error) => {
                    tracing::debug!(path = %self.latch, %error, "could not leave the latch yet");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn try_leave(&self, registry: &dyn Registry) -> Result<(), Error> {
        // A create whose answer was lost may be under way on a server that lags.
        registry.sync().await?;
        let queue = registry.children(&self.latch).await?.unwrap_or_default();
        for name in queue.iter().filter(|name| name.contains(&self.ticket)) {
            let path = self.latch.join(name).expect("a name from the registry");
            match registry.delete(&path, Expected::Any).await {
                Ok(_) | Err(Error::Absent { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Creates the latch and what is missing above it, as containers: the registry removes them when nobody queues any more.
async fn dig(registry: &dyn Registry, latch: &Path) -> Result<(), Error> {
    let mut missing = Vec::new();
    let mut at = Some(latch.clone());
    while let Some(path) = at.filter(|path| path.parent().is_some()) {
        if registry.exists(&path).await?.is_some() {
            break;
        }
        at = path.parent();
        missing.push(path);
    }
    for path in missing.into_iter().rev() {
        match registry.create(Create::new(&path, "", Kind::Container)).await {
            Ok(_) | Err(Error::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until nobody is before `own`; `false` if `own` itself has gone.
async fn wait(registry: &dyn Registry, latch: &Path, own: &Path) -> Result<bool, Error> {
    loop {
        let mut queue = registry.children(latch).await?.unwrap_or_default();
        queue.sort_by(|a, b| ticket(a).cmp(ticket(b)));
        match queue.iter().position(|name| name == own.name()) {
            None => return Ok(false),
            Some(0) => return Ok(true),
            Some(place) => {
                let before = latch.join(&queue[place - 1]).expect("a name from the registry");
                until_gone(registry, &before).await?;
            }
        }
    }
}

async fn until_gone(registry: &dyn Registry, path: &Path) -> Result<(), Error> {
    let mut watch = registry.watch(path).await?;
    let mut there = false;
    while let Some(event) = watch.next().await {
        match event {
            Event::Init => there = false,
            Event::InitApply { .. } | Event::Apply { .. } => there = true,
            Event::Delete { path: gone } if gone == *path => return Ok(()),
            Event::InitDone if !there => return Ok(()),
            Event::InitDone | Event::Delete { .. } => {}
        }
    }
    Err(Error::Closed)
}

/// What decides who comes first.
fn ticket(name: &str) -> &str {
    name.rfind("latch-").map_or(name, |at| &name[at + "latch-".len()..])
}

fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{registry::memory::MemoryServer, runtime::SystemClock};

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn tickets_are_compared_by_what_follows_the_last_latch() {
        assert_eq!(ticket("_c_0e0f7817-latch-0000000000"), "0000000000");
        assert_eq!(ticket("latch-latch-0000000007"), "0000000007");
        assert_eq!(ticket("stranger"), "stranger");
        assert_eq!(uuid(1), "00000000-0000-0000-0000-000000000001");
    }

    #[tokio::test]
    async fn the_second_waits_until_the_first_has_passed() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let (one, two) = (
            server.join("shop".parse().unwrap()).await.unwrap(),
            server.join("shop".parse().unwrap()).await.unwrap(),
        );
        let latch: Path = "/shop/job/leader/election/latch".parse().unwrap();

        let first = queue(&one, &latch, 1, PATIENCE).await.unwrap().expect("nobody is before");
        let mut waiting = std::pin::pin!(queue(&two, &latch, 2, PATIENCE));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "it is not its turn yet");
        first.pass(&one).await;
        let second = waiting.await.unwrap().expect("its turn has come");

        assert!(second.node.name().ends_with("-latch-0000000001"), "{}", second.node);
        second.pass(&two).await;
        assert_eq!(one.children(&latch).await.unwrap(), Some(vec![]));
    }

    #[tokio::test]
    async fn a_place_nobody_told_us_of_is_left_all_the_same() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let latch: Path = "/shop/latch".parse().unwrap();
        queue(&registry, &latch, 1, PATIENCE).await.unwrap().unwrap().pass(&registry).await;

        registry.link().cut_after_next_request();
        let mut lost = std::pin::pin!(queue(&registry, &latch, 2, PATIENCE));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut lost).await;
        assert!(early.is_err(), "it cannot leave while it is cut off");
        registry.link().heal();

        assert!(matches!(lost.await, Err(Error::Unknown { .. })));
        assert_eq!(registry.children(&latch).await.unwrap(), Some(vec![]));
    }

    #[tokio::test]
    async fn waiting_has_an_end_and_leaves_the_queue() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let latch: Path = "/shop/latch".parse().unwrap();
        let holder = queue(&registry, &latch, 1, PATIENCE).await.unwrap().unwrap();

        let nobody = queue(&registry, &latch, 2, Duration::from_millis(20)).await.unwrap();

        assert!(nobody.is_none());
        assert_eq!(registry.children(&latch).await.unwrap().unwrap(), [holder.node.name()]);
    }
}
