//! Finds out whether a batch whose answer was lost was committed. One look serves all its units: a batch is committed as a whole or not at all.
//!
//! The witness is a node that the batch sets by version, as every claim and release does with a ledger page. After a reconnect in the same session,
//! and a sync, no earlier request of the session can be executed any more. So the witness at the version that the batch expected says that the batch
//! was not committed, and at the next version, with the batch's own bytes, that it was: the bytes name the instance. Anything else leaves the result
//! unknown. Then each caller resolves its own unit.

use std::time::Duration;

use bytes::Bytes;

use crate::registry::{
    Registry,
    operation::{Committed, ExpectedVersion, Kind, Op, OpResult},
    path::Path,
    session::{Session, SessionState},
    stat::{Node, Version},
};

/// How long a batch waits for its session to be connected again. Its callers can do nothing else about it meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The connection may break again while the witness is read.
const TRIES: usize = 3;

pub(super) enum Fate {
    /// With the results that the lost answer had.
    Committed(Committed),
    /// And it never will be.
    NotCommitted,
    Unknown,
}

/// Finds out what became of a batch with these operations, which was sent in `session` and not answered.
pub(super) async fn settle<'o>(
    registry: &dyn Registry,
    session: &Session,
    ops: impl Iterator<Item = &'o Op> + Clone + Send,
) -> Fate {
    let Some(witness) = Witness::of(&ops) else { return Fate::Unknown };
    // What the lost answer had to say, if everything in it can be told from the request.
    let Some(done) = ops.map(result_of).collect::<Option<Vec<_>>>() else { return Fate::Unknown };
    let looked = tokio::time::timeout(MAX_WAIT, witness.read(registry, session)).await;
    let Ok(Some(node)) = looked else { return Fate::Unknown };
    if node.stat.version == witness.expected {
        Fate::NotCommitted
    } else if node.stat.version == next(witness.expected) && node.data == witness.data {
        let (zxid, written_at_ms) = (node.stat.changed, Some(node.stat.changed_at_ms));
        Fate::Committed(Committed { zxid, done, written_at_ms })
    } else {
        Fate::Unknown
    }
}

/// A node that the batch sets, and nothing else in the batch touches.
struct Witness {
    path: Path,
    data: Bytes,
    expected: Version,
}

impl Witness {
    fn of<'o>(ops: &(impl Iterator<Item = &'o Op> + Clone)) -> Option<Self> {
        ops.clone().find_map(|op| {
            let Op::Set { path, data, expected: ExpectedVersion::Version(expected) } = op else {
                return None;
            };
            let is_alone = ops.clone().filter(|other| other.path() == path).count() == 1;
            is_alone.then(|| Self { path: path.clone(), data: data.clone(), expected: *expected })
        })
    }

    /// The node as it is after everything that the session has sent; `None` if it is gone or cannot be read, or the session is another one.
    async fn read(&self, registry: &dyn Registry, session: &Session) -> Option<Node> {
        for _ in 0..TRIES {
            if !is_reconnected(session).await {
                return None;
            }
            let node = match registry.sync().await {
                Ok(()) => registry.get(&self.path).await,
                Err(error) => Err(error),
            };
            match node {
                Ok(node) => return node.filter(|_| registry.session().id() == session.id()),
                Err(error) if error.is_outage() => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// Waits for a connection in this session; `false` if the session has ended.
async fn is_reconnected(session: &Session) -> bool {
    let mut states = session.states();
    while let Some(state) = states.next().await {
        match state {
            SessionState::Connected(id) if id == session.id() => return true,
            SessionState::Suspended(id) if id == session.id() => {}
            _ => return false,
        }
    }
    false
}

/// The result of an operation that was executed; `None` if only the answer tells.
fn result_of(op: &Op) -> Option<OpResult> {
    Some(match op {
        Op::Create(create) => match create.kind {
            Kind::Sequential | Kind::EphemeralSequential(_) => return None,
            Kind::Persistent | Kind::Ephemeral(_) | Kind::Container => {
                OpResult::Created(create.path.clone())
            }
        },
        Op::Set { expected: ExpectedVersion::Version(version), .. } => {
            OpResult::Set(next(*version))
        }
        Op::Set { expected: ExpectedVersion::Any, .. } => return None,
        Op::Delete { .. } => OpResult::Deleted,
        Op::Check { .. } => OpResult::Checked,
    })
}

fn next(Version(version): Version) -> Version {
    Version(version.wrapping_add(1))
}
