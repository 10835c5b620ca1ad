//! Translates between registry types and tinykeeper's. Both adapters use it: one talks to a server, the other to the tree in memory.

use tinykeeper::{
    tree::{self, Lifetime},
    wire::{self, Acl, Code, EventKind, MultiResult},
};

use super::{
    error::Error,
    operation::{ExpectedVersion, Kind, Op, OpResult},
    path::Path,
    session::SessionId,
    stat::{Stat, Version, Zxid},
    watch::Event,
};

/// The operations as protocol requests; every created node gets `acl`.
pub(super) fn ops(ops: &[Op], acl: &[Acl]) -> Vec<wire::Op> {
    ops.iter()
        .map(|op| match op {
            Op::Create(create) => wire::Op::Create(wire::Create {
                path: create.path.to_string(),
                data: Some(create.data.clone()),
                acl: acl.to_vec(),
                mode: mode(create.kind),
                with_stat: false,
            }),
            Op::Set { path, data, expected } => wire::Op::SetData {
                path: path.to_string(),
                data: Some(data.clone()),
                version: version(*expected),
            },
            Op::Delete { path, expected } => {
                wire::Op::Delete { path: path.to_string(), version: version(*expected) }
            }
            Op::Check { path, expected } => {
                wire::Op::Check { path: path.to_string(), version: version(*expected) }
            }
        })
        .collect()
}

/// The session that an operation requires.
pub(super) fn session_of(op: &Op) -> Option<SessionId> {
    if let Op::Create(create) = op { create.kind.session() } else { None }
}

/// The result of one operation, from a server's answer; `None` if the answer is of another kind.
pub(super) fn done_from_wire(result: MultiResult) -> Option<OpResult> {
    Some(match result {
        MultiResult::Create { path } | MultiResult::Create2 { path, .. } => {
            OpResult::Created(path.parse().ok()?)
        }
        MultiResult::SetData { stat } => OpResult::Set(Version(stat.version)),
        MultiResult::Delete => OpResult::Deleted,
        MultiResult::Check => OpResult::Checked,
        MultiResult::GetData { .. } | MultiResult::GetChildren { .. } | MultiResult::Error(_) => {
            return None;
        }
    })
}

/// When a node was set, by the registry's clock.
pub(super) fn written_at_on_wire(result: &MultiResult) -> Option<i64> {
    if let MultiResult::SetData { stat } = result { Some(stat.mtime) } else { None }
}

/// When a node was set, by the registry's clock.
pub(super) fn written_at_in_tree(done: &tree::OpResult) -> Option<i64> {
    if let tree::OpResult::Set { stat } = done { Some(stat.mtime) } else { None }
}

/// The result of one operation, from the tree in memory.
pub(super) fn done_from_tree(op: &Op, done: tree::OpResult) -> OpResult {
    match done {
        tree::OpResult::Created { path, .. } => {
            OpResult::Created(path.parse().unwrap_or_else(|_| op.path().clone()))
        }
        tree::OpResult::Set { stat } | tree::OpResult::AclSet { stat } => {
            OpResult::Set(Version(stat.version))
        }
        tree::OpResult::Deleted => OpResult::Deleted,
        tree::OpResult::Checked => OpResult::Checked,
    }
}

/// Why an operation was refused.
pub(super) fn refusal(code: Code, op: &Op) -> Error {
    let path = op.path().clone();
    match (code, op) {
        // The missing node is the parent.
        (Code::NO_NODE, Op::Create(_)) => Error::NotFound { path: path.parent().unwrap_or(path) },
        (Code::NODE_EXISTS, _) => Error::Exists { path },
        (Code::BAD_VERSION, _) => Error::Conflict { path, expected: op.expected() },
        (Code::NOT_EMPTY, _) => Error::NotEmpty { path },
        (code, _) => read_refusal(code, &path),
    }
}

/// Why a read was refused.
pub(super) fn read_refusal(code: Code, path: &Path) -> Error {
    let path = path.clone();
    match code {
        Code::NO_NODE => Error::NotFound { path },
        Code::NO_AUTH | Code::INVALID_ACL | Code::AUTH_FAILED => Error::NotAuthorised { path },
        Code::SESSION_EXPIRED => Error::SessionExpired,
        Code::THROTTLED | Code::QUOTA_EXCEEDED => {
            Error::Throttled { path, reason: code.to_string() }
        }
        code => Error::Invalid { path, reason: code.to_string() },
    }
}

/// A node's metadata; `floor` is added to its transaction numbers.
pub(super) fn stat(stat: &wire::Stat, floor: i64) -> Stat {
    Stat {
        created: Zxid(stat.czxid.saturating_add(floor)),
        changed: Zxid(stat.mzxid.saturating_add(floor)),
        changed_at_ms: stat.mtime,
        version: Version(stat.version),
        owner: Lifetime::from_owner(stat.ephemeral_owner).session().map(SessionId),
        children: usize::try_from(stat.num_children).unwrap_or(0),
    }
}

/// The event that a notification means to a recursive watch; `None` for other kinds.
pub(super) fn event(kind: EventKind, path: &str) -> Option<Event> {
    let path = path.parse().ok()?;
    match kind {
        EventKind::NodeCreated | EventKind::NodeDataChanged => Some(Event::Apply { path }),
        EventKind::NodeDeleted => Some(Event::Delete { path }),
        EventKind::NodeChildrenChanged | EventKind::None => None,
    }
}

fn mode(kind: Kind) -> wire::CreateMode {
    match kind {
        Kind::Persistent => wire::CreateMode::Persistent,
        Kind::Ephemeral(_) => wire::CreateMode::Ephemeral,
        Kind::Sequential => wire::CreateMode::PersistentSequential,
        Kind::EphemeralSequential(_) => wire::CreateMode::EphemeralSequential,
        Kind::Container => wire::CreateMode::Container,
    }
}

fn version(expected: ExpectedVersion) -> i32 {
    match expected {
        ExpectedVersion::Any => -1,
        ExpectedVersion::Version(Version(version)) => version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Create;

    #[test]
    fn throttled_and_quota_answers_are_temporary() {
        let path: Path = "/shop/settle".parse().unwrap();
        let op = Op::Create(Create::persistent(&path, ""));
        for code in [Code::THROTTLED, Code::QUOTA_EXCEEDED] {
            let refused = Error::Operation { index: 0, cause: Box::new(refusal(code, &op)) };
            assert!(refused.is_temporary() && !refused.is_outage(), "{refused:?}");
            assert!(read_refusal(code, &path).is_temporary());
        }
        assert!(!read_refusal(Code::NO_AUTH, &path).is_temporary());
    }
}
