//! One request, one answer: what the tree says to it.

use crate::{
    tree::{Caller, Done, Notification, Tree, WatcherId, Written},
    wire::{Code, MultiResult, Op, ReadOp, Request, Response, op},
};

/// What came of a request.
pub(super) struct Outcome {
    /// Done, or refused.
    pub(super) answer: Result<Response, Code>,
    /// The transaction, when it was a write.
    pub(super) written: Option<Written>,
    /// What the asking connection hears first: watches set again may have missed something.
    pub(super) missed: Vec<Notification>,
}

impl From<Result<Response, Code>> for Outcome {
    fn from(answer: Result<Response, Code>) -> Self {
        Self { answer, written: None, missed: Vec::new() }
    }
}

/// Asks the tree. Requests about the session itself (auth, who am I, close) are the core's.
pub(super) fn respond(
    tree: &mut Tree,
    caller: Caller<'_>,
    watcher: WatcherId,
    request: &Request,
    now_ms: i64,
) -> Outcome {
    let watch_if = |watch: &bool| watch.then_some(watcher);
    match request {
        Request::Write(op) => write(tree, caller, op, now_ms),
        Request::Multi(ops) => multi(tree, caller, ops, now_ms),
        Request::MultiRead(ops) => {
            let results = ops.iter().map(|op| read(tree, caller, op)).collect();
            Ok(Response::Multi(results)).into()
        }
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
            tree.descendants(caller, path).map(|count| Response::Number(count as i32)).into()
        }
        Request::GetEphemerals { prefix } => {
            Ok(Response::Paths(tree.ephemerals(caller.session, prefix))).into()
        }
        Request::Sync { path } => Ok(Response::Sync { path: path.clone() }).into(),
        Request::SetWatches(wanted) => {
            let missed = tree.set_watches(watcher, wanted);
            Outcome { missed, ..Ok(Response::Done).into() }
        }
        Request::AddWatch { path, mode } => {
            tree.add_watch(path, watcher, *mode);
            Ok(Response::Watching(0)).into()
        }
        Request::CheckWatches { path, kind } => found(tree.has_watch(path, watcher, *kind)).into(),
        Request::RemoveWatches { path, kind } => {
            found(tree.remove_watch(path, watcher, *kind)).into()
        }
        Request::Ping => Ok(Response::Done).into(),
        Request::Auth { .. }
        | Request::WhoAmI
        | Request::CloseSession
        | Request::Unknown { .. } => Err(Code::UNIMPLEMENTED).into(),
    }
}

fn write(tree: &mut Tree, caller: Caller<'_>, op: &Op, now_ms: i64) -> Outcome {
    let written = tree.write(caller, std::slice::from_ref(op), now_ms);
    let answer = match &written.outcome {
        Err(refused) => Err(refused.code),
        Ok(done) => Ok(match (op, done.first()) {
            (Op::Create(create), Some(Done::Created { path, stat })) if create.with_stat => {
                Response::Create2 { path: path.clone(), stat: *stat }
            }
            (_, Some(Done::Created { path, .. })) => Response::Create { path: path.clone() },
            (_, Some(Done::Set { stat } | Done::AclSet { stat })) => Response::Stat(*stat),
            _ => Response::Done,
        }),
    };
    Outcome { answer, written: Some(written), missed: Vec::new() }
}

fn multi(tree: &mut Tree, caller: Caller<'_>, ops: &[Op], now_ms: i64) -> Outcome {
    let written = tree.write(caller, ops, now_ms);
    let results = match &written.outcome {
        Ok(done) => ops
            .iter()
            .zip(done)
            .map(|(op, done)| match done {
                // In a multi ZooKeeper leaves the stat out even for create2, but not for these two.
                Done::Created { path, stat }
                    if matches!(op.number(), op::CREATE_CONTAINER | op::CREATE_TTL) =>
                {
                    MultiResult::Create2 { path: path.clone(), stat: *stat }
                }
                Done::Created { path, .. } => MultiResult::Create { path: path.clone() },
                Done::Deleted => MultiResult::Delete,
                Done::Set { stat } | Done::AclSet { stat } => MultiResult::SetData { stat: *stat },
                Done::Checked => MultiResult::Check,
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
    Outcome { answer: Ok(Response::Multi(results)), written: Some(written), missed: Vec::new() }
}

fn read(tree: &mut Tree, caller: Caller<'_>, op: &ReadOp) -> MultiResult {
    let result = match op {
        ReadOp::GetData { path } => {
            tree.data(caller, path, None).map(|(data, stat)| MultiResult::GetData { data, stat })
        }
        ReadOp::GetChildren { path } => tree
            .children(caller, path, None)
            .map(|(children, _)| MultiResult::GetChildren { children }),
    };
    result.unwrap_or_else(MultiResult::Error)
}

fn found(there: bool) -> Result<Response, Code> {
    if there { Ok(Response::Done) } else { Err(Code::NO_WATCHER) }
}
