//! Executes one request on the tree.

use crate::{
    tree::{Caller, Notification, OpResult, Tree, WatcherId, WriteResult, watch_bytes},
    wire::{Code, MultiResult, Op, Request, Response, SetWatches, op},
};

pub(super) struct RequestResult {
    pub(super) response: Result<Response, Code>,
    /// The transaction, if the request was a write.
    pub(super) written: Option<WriteResult>,
    /// Notifications to send to this connection before the response: events that restored watches have missed.
    pub(super) missed: Vec<Notification>,
}

impl From<Result<Response, Code>> for RequestResult {
    fn from(response: Result<Response, Code>) -> Self {
        Self { response, written: None, missed: Vec::new() }
    }
}

/// Whether the watches that a request sets would exceed the limit for all watches or for those of one connection.
pub(super) fn exceeds_watch_limit(
    tree: &Tree,
    watcher: WatcherId,
    request: &Request,
    max_bytes: usize,
) -> bool {
    let more = match request {
        Request::Exists { path, watch: true }
        | Request::GetData { path, watch: true }
        | Request::GetChildren { path, watch: true }
        | Request::GetChildrenStat { path, watch: true }
        | Request::AddWatch { path, .. } => watch_bytes(path),
        Request::SetWatches(wanted) => {
            let SetWatches { data, exist, child, persistent, persistent_recursive, .. } = wanted;
            let lists = [data, exist, child, persistent, persistent_recursive];
            lists.into_iter().flatten().map(|path| watch_bytes(path)).sum()
        }
        _ => return false,
    };
    let (own, all) = tree.watch_bytes(watcher);
    own + more > max_bytes / 8 || all + more > max_bytes
}

/// Executes a request on the tree. The core itself handles requests about the session (auth, who am I, close).
pub(super) fn respond(
    tree: &mut Tree,
    caller: Caller<'_>,
    watcher: WatcherId,
    request: &Request,
    now_ms: i64,
) -> RequestResult {
    let watch_if = |watch: &bool| watch.then_some(watcher);
    match request {
        Request::Write(op) => write(tree, caller, op, now_ms),
        Request::Multi(ops) => multi(tree, caller, ops, now_ms),
        Request::MultiRead(ops) => tree.multi_read(caller, ops).map(Response::Multi).into(),
        Request::Exists { path, watch } => {
            tree.exists(path, watch_if(watch)).map(Response::Stat).into()
        }
        Request::GetData { path, watch } => tree
            .data(caller, path, watch_if(watch))
            .map(|(data, stat)| Response::Data { data, stat })
            .into(),
        Request::GetAcl { path } => {
            tree.acl(caller, path).map(|(acl, stat)| Response::Acl { acl, stat }).into()
        }
        Request::GetChildren { path, watch } => tree
            .children(caller, path, watch_if(watch))
            .map(|(children, _)| Response::Children(children))
            .into(),
        Request::GetChildrenStat { path, watch } => tree
            .children(caller, path, watch_if(watch))
            .map(|(children, stat)| Response::ChildrenStat { children, stat })
            .into(),
        Request::GetAllChildrenNumber { path } => {
            tree.descendant_count(caller, path).map(|count| Response::Number(count as i32)).into()
        }
        Request::GetEphemerals { prefix } => {
            Ok(Response::Paths(tree.ephemerals(caller.session, prefix))).into()
        }
        Request::Sync { path } => Ok(Response::Sync { path: path.clone() }).into(),
        Request::SetWatches(wanted) => {
            let missed = tree.set_watches(watcher, wanted);
            RequestResult { missed, ..Ok(Response::Empty).into() }
        }
        Request::AddWatch { path, mode } => {
            tree.add_watch(path, watcher, *mode);
            Ok(Response::AddWatch(0)).into()
        }
        Request::CheckWatches { path, kind } => found(tree.has_watch(path, watcher, *kind)).into(),
        Request::RemoveWatches { path, kind } => {
            found(tree.remove_watch(path, watcher, *kind)).into()
        }
        Request::Ping => Ok(Response::Empty).into(),
        Request::Auth { .. }
        | Request::WhoAmI
        | Request::CloseSession
        | Request::Unknown { .. } => Err(Code::UNIMPLEMENTED).into(),
    }
}

fn write(tree: &mut Tree, caller: Caller<'_>, op: &Op, now_ms: i64) -> RequestResult {
    let written = tree.write(caller, std::slice::from_ref(op), now_ms);
    let response = match &written.outcome {
        Err(refused) => Err(refused.code),
        Ok(done) => Ok(match (op, done.first()) {
            (Op::Create(create), Some(OpResult::Created { path, stat })) if create.with_stat => {
                Response::Create2 { path: path.clone(), stat: *stat }
            }
            (_, Some(OpResult::Created { path, .. })) => Response::Create { path: path.clone() },
            (_, Some(OpResult::Set { stat } | OpResult::AclSet { stat })) => Response::Stat(*stat),
            _ => Response::Empty,
        }),
    };
    RequestResult { response, written: Some(written), missed: Vec::new() }
}

fn multi(tree: &mut Tree, caller: Caller<'_>, ops: &[Op], now_ms: i64) -> RequestResult {
    let written = tree.write(caller, ops, now_ms);
    let results = match &written.outcome {
        Ok(done) => ops
            .iter()
            .zip(done)
            .map(|(op, done)| match done {
                // In a multi, ZooKeeper omits the stat even for create2, but not for these two.
                OpResult::Created { path, stat }
                    if matches!(op.number(), op::CREATE_CONTAINER | op::CREATE_TTL) =>
                {
                    MultiResult::Create2 { path: path.clone(), stat: *stat }
                }
                OpResult::Created { path, .. } => MultiResult::Create { path: path.clone() },
                OpResult::Deleted => MultiResult::Delete,
                OpResult::Set { stat } | OpResult::AclSet { stat } => {
                    MultiResult::SetData { stat: *stat }
                }
                OpResult::Checked => MultiResult::Check,
            })
            .collect(),
        Err(refused) => (0..ops.len())
            .map(|index| {
                MultiResult::Error(match index.cmp(&refused.index) {
                    std::cmp::Ordering::Less => Code::OK,
                    std::cmp::Ordering::Equal => refused.code,
                    std::cmp::Ordering::Greater => Code::RUNTIME_INCONSISTENCY,
                })
            })
            .collect(),
    };
    RequestResult {
        response: Ok(Response::Multi(results)),
        written: Some(written),
        missed: Vec::new(),
    }
}

fn found(exists: bool) -> Result<Response, Code> {
    if exists { Ok(Response::Empty) } else { Err(Code::NO_WATCHER) }
}
