//! Curator's latch: a queue of instances, of which the first one may act.
//!
//! An instance that wants to act creates an ephemeral sequential node below the latch. The instance whose node has the smallest sequence number
//! acts; each of the others waits until the node before its own is deleted. Java and Rust instances queue in the same latch, so the names are
//! Curator's: `_c_{uuid}-latch-{10 digits}`, ordered by what follows the last `latch-`.
//!
//! Holding the latch is not enough: the holder acts by a transaction that checks its own latch node, so the transaction fails if the session has
//! ended. Every wait has a timeout, and a holder does nothing slow.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;

use crate::registry::{Create, Error, Event, ExpectedVersion, Kind, Op, Path, Registry, SessionId};

/// Pause between attempts to leave a queue while the registry is unreachable.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A held latch: this instance is first in the queue and may act until it [leaves](HeldLatch::release) the queue.
#[derive(Debug)]
pub struct HeldLatch {
    /// This instance's latch node, which the acting transaction must [check](HeldLatch::check).
    pub node: Path,
    entry: QueueEntry,
}

/// An entry in the queue of a latch. It is found again by its UUID, even if the answer to its creation was lost.
#[derive(Debug, Clone)]
struct QueueEntry {
    latch: Path,
    uuid: String,
    session: SessionId,
}

impl HeldLatch {
    /// The operation that makes a transaction fail unless this instance still holds the latch.
    pub fn check(&self) -> Op {
        Op::Check { path: self.node.clone(), expected: ExpectedVersion::Any }
    }

    /// Leaves the queue, so that the next instance in it may act. Retries as long as the session lives, because an entry that stays blocks every
    /// entry behind it.
    pub async fn release(self, registry: &dyn Registry) {
        self.entry.leave(registry).await;
    }
}

/// Queues in `latch` and waits until this instance is first; `None` if `timeout` passes before that, or if the wait panics. `ticket` must be
/// unique.
pub async fn acquire(
    registry: &dyn Registry,
    latch: &Path,
    ticket: u128,
    timeout: Duration,
) -> Result<Option<HeldLatch>, Error> {
    let entry =
        QueueEntry { latch: latch.clone(), uuid: uuid(ticket), session: registry.session().id() };
    let waiting = async {
        let node = entry.join(registry).await?;
        Ok(wait_until_first(registry, latch, &node).await?.then_some(node))
    };
    let waiting = AssertUnwindSafe(tokio::time::timeout(timeout, waiting)).catch_unwind();
    let result = if let Ok(in_time) = waiting.await {
        in_time.unwrap_or(Ok(None))
    } else {
        // An entry that stayed would block every entry behind it until the session ends.
        tracing::error!(path = %latch, "waiting for a latch panicked");
        Ok(None)
    };
    match result {
        Ok(Some(node)) => Ok(Some(HeldLatch { node, entry })),
        Ok(None) => {
            entry.leave(registry).await;
            Ok(None)
        }
        Err(error) => {
            entry.leave(registry).await;
            Err(error)
        }
    }
}

impl QueueEntry {
    async fn join(&self, registry: &dyn Registry) -> Result<Path, Error> {
        let name = format!("_c_{}-latch-", self.uuid);
        let name = self.latch.join(name).expect("a latch node name is a valid path segment");
        let create = || Create::new(&name, "", Kind::EphemeralSequential(self.session));
        let created = match registry.create(create()).await {
            Err(Error::NotFound { .. }) => {
                create_containers(registry, &self.latch).await?;
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
                    tracing::debug!(path = %self.latch, %error, "leaving latch failed, retrying");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_leave(&self, registry: &dyn Registry) -> Result<(), Error> {
        // A create whose answer was lost may not be visible yet on a server that lags.
        registry.sync().await?;
        let queue = registry.children(&self.latch).await?.unwrap_or_default();
        for name in queue.iter().filter(|name| name.contains(&self.uuid)) {
            let path = self.latch.join(name).expect("a name from the registry");
            match registry.delete(&path, ExpectedVersion::Any).await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Creates the latch and its missing parents as containers: the registry deletes a container once its last child is gone.
async fn create_containers(registry: &dyn Registry, latch: &Path) -> Result<(), Error> {
    let mut missing = Vec::new();
    let mut next = Some(latch.clone());
    while let Some(path) = next.filter(|path| path.parent().is_some()) {
        if registry.exists(&path).await?.is_some() {
            break;
        }
        next = path.parent();
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

/// Waits until `own` is the first entry; `false` if `own` itself was deleted.
async fn wait_until_first(
    registry: &dyn Registry,
    latch: &Path,
    own: &Path,
) -> Result<bool, Error> {
    loop {
        let mut queue = registry.children(latch).await?.unwrap_or_default();
        queue.sort_by(|a, b| sequence(a).cmp(sequence(b)));
        match queue.iter().position(|name| name == own.name()) {
            None => return Ok(false),
            Some(0) => return Ok(true),
            Some(position) => {
                let previous = latch.join(&queue[position - 1]).expect("a name from the registry");
                wait_for_deletion(registry, &previous).await?;
            }
        }
    }
}

async fn wait_for_deletion(registry: &dyn Registry, path: &Path) -> Result<(), Error> {
    let mut watch = registry.watch(path).await?;
    let mut exists = false;
    while let Some(event) = watch.next().await {
        match event {
            Event::Init => exists = false,
            Event::InitApply { .. } | Event::Apply { .. } => exists = true,
            Event::Delete { path: deleted } if deleted == *path => return Ok(()),
            Event::InitDone if !exists => return Ok(()),
            Event::InitDone | Event::Delete { .. } => {}
        }
    }
    Err(Error::Closed)
}

/// The part of a latch node's name that orders the queue.
fn sequence(name: &str) -> &str {
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

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn sequence_follows_the_last_latch_marker() {
        assert_eq!(sequence("_c_0e0f7817-latch-0000000000"), "0000000000");
        assert_eq!(sequence("latch-latch-0000000007"), "0000000007");
        assert_eq!(sequence("foreign"), "foreign");
        assert_eq!(uuid(1), "00000000-0000-0000-0000-000000000001");
    }

    #[tokio::test]
    async fn second_entry_waits_until_first_has_left() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let (one, two) = (
            server.join("shop".parse().unwrap()).await.unwrap(),
            server.join("shop".parse().unwrap()).await.unwrap(),
        );
        let latch: Path = "/shop/job/leader/election/latch".parse().unwrap();

        let first = acquire(&one, &latch, 1, TIMEOUT).await.unwrap().expect("the queue was empty");
        let mut waiting = std::pin::pin!(acquire(&two, &latch, 2, TIMEOUT));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(early.is_err(), "the first entry is still there");
        first.release(&one).await;
        let second = waiting.await.unwrap().expect("the first entry has left");

        assert!(second.node.name().ends_with("-latch-0000000001"), "{}", second.node);
        second.release(&two).await;
        assert_eq!(one.children(&latch).await.unwrap(), Some(vec![]));
    }

    #[tokio::test]
    async fn entry_whose_creation_was_not_answered_is_removed() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let latch: Path = "/shop/latch".parse().unwrap();
        acquire(&registry, &latch, 1, TIMEOUT).await.unwrap().unwrap().release(&registry).await;

        registry.link().cut_after_next_request();
        let mut lost = std::pin::pin!(acquire(&registry, &latch, 2, TIMEOUT));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut lost).await;
        assert!(early.is_err(), "it cannot leave while the connection is cut");
        registry.link().heal();

        assert!(matches!(lost.await, Err(Error::Unknown { .. })));
        assert_eq!(registry.children(&latch).await.unwrap(), Some(vec![]));
    }

    #[tokio::test]
    async fn timeout_ends_the_wait_and_leaves_the_queue() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let registry = server.join("shop".parse().unwrap()).await.unwrap();
        let latch: Path = "/shop/latch".parse().unwrap();
        let holder = acquire(&registry, &latch, 1, TIMEOUT).await.unwrap().unwrap();

        let late = acquire(&registry, &latch, 2, Duration::from_millis(20)).await.unwrap();

        assert!(late.is_none());
        assert_eq!(registry.children(&latch).await.unwrap().unwrap(), [holder.node.name()]);
    }
}
