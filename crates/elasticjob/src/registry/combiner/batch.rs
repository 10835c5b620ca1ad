//! One batch of units: sends it, and gives each unit its own answer.
//!
//! If all units are committed, each gets its results, with the zxid of the whole batch: fencing tokens of different jobs may be equal, and those of
//! one shard still grow. If one operation is refused, nothing is committed. The refusal names the operation, so its unit gets the error, as if it had
//! been sent alone, and the others are sent again. That costs a request for each refusal, so after a few of them the rest is sent one by one, all at
//! once: a batch of n units takes at most n + 3 requests.

use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::settlement::{Fate, settle};
use crate::registry::{
    Registry,
    error::Error,
    operation::{Committed, Op},
    session::SessionId,
};

/// After so many refusals the units that are left are sent one by one.
const MAX_REFUSALS: usize = 3;

/// One job's claim, release, mark or entry, and the caller that waits for its answer.
pub(super) struct Unit {
    pub(super) ops: Vec<Op>,
    /// The session that its ephemeral nodes are for.
    pub(super) session: Option<SessionId>,
    pub(super) reply: oneshot::Sender<Result<Committed, Error>>,
}

impl Unit {
    /// Whether its caller still waits. A unit without a caller is not sent: its job may have been left meanwhile.
    pub(super) fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn answer(self, answer: Result<Committed, Error>) {
        let _ = self.reply.send(answer);
    }
}

/// Commits the units of a batch, in as few requests as possible, and answers each of them.
pub(super) async fn commit(registry: &dyn Registry, mut batch: Vec<Unit>) {
    let mut refusals = 0;
    let mut may_settle = true;
    loop {
        batch.retain(Unit::is_awaited);
        if batch.is_empty() {
            return;
        }
        let session = registry.session();
        let error = match registry.multi(ops_of(&batch).cloned().collect()).await {
            Ok(committed) => return answer_each(batch, committed),
            Err(error) => error,
        };
        if let Error::Operation { index, .. } = &error
            && let Some((position, index)) = unit_at(&batch, *index)
        {
            batch.remove(position).answer(Err(with_index(error, index)));
            refusals += 1;
            if refusals == MAX_REFUSALS {
                return commit_singly(registry, batch).await;
            }
            continue;
        }
        if matches!(error, Error::Unknown { .. }) && std::mem::take(&mut may_settle) {
            match settle(registry, &session, ops_of(&batch)).await {
                Fate::Committed(committed) => return answer_each(batch, committed),
                Fate::NotCommitted => continue,
                Fate::Unknown => {}
            }
        }
        return fail(registry, batch, error).await;
    }
}

fn ops_of(batch: &[Unit]) -> impl Iterator<Item = &Op> + Clone + Send {
    batch.iter().flat_map(|unit| &unit.ops)
}

/// The unit with the operation at `index` of the batch, and the index of the operation in the unit.
fn unit_at(batch: &[Unit], mut index: usize) -> Option<(usize, usize)> {
    for (position, unit) in batch.iter().enumerate() {
        if index < unit.ops.len() {
            return Some((position, index));
        }
        index -= unit.ops.len();
    }
    None
}

fn with_index(error: Error, index: usize) -> Error {
    match error {
        Error::Operation { cause, .. } => Error::Operation { index, cause },
        error => error,
    }
}

fn answer_each(batch: Vec<Unit>, committed: Committed) {
    let Committed { zxid, done, written_at_ms } = committed;
    let mut done = done.into_iter();
    for unit in batch {
        let done = done.by_ref().take(unit.ops.len()).collect();
        unit.answer(Ok(Committed { zxid, done, written_at_ms }));
    }
}

/// The batch failed, and the error names no unit.
async fn fail(registry: &dyn Registry, mut batch: Vec<Unit>, error: Error) {
    if batch.len() == 1 {
        return batch.remove(0).answer(Err(error));
    }
    if !concerns_every_request(&error) {
        return commit_singly(registry, batch).await;
    }
    for unit in batch {
        unit.answer(Err(copy(&error)));
    }
}

/// Whether the error would be the same for any other request now. Sending the units again, one by one, would only add to an overload.
fn concerns_every_request(error: &Error) -> bool {
    error.is_outage()
        || matches!(error, Error::Throttled { .. } | Error::SessionExpired | Error::Closed)
}

/// Copies an error that [concerns every request](concerns_every_request).
fn copy(error: &Error) -> Error {
    match error {
        Error::Throttled { path, reason } => {
            Error::Throttled { path: path.clone(), reason: reason.clone() }
        }
        Error::Unreachable { endpoint, source } => {
            Error::Unreachable { endpoint: endpoint.clone(), source: source.to_string().into() }
        }
        Error::Unknown { endpoint } => Error::Unknown { endpoint: endpoint.clone() },
        Error::SessionExpired => Error::SessionExpired,
        _ => Error::Closed,
    }
}

/// Commits each unit with a request of its own, all at once.
async fn commit_singly(registry: &dyn Registry, batch: Vec<Unit>) {
    let requests = batch.into_iter().filter(Unit::is_awaited).map(async |unit: Unit| {
        let answer = registry.multi(unit.ops.clone()).await;
        unit.answer(answer);
    });
    join_all(requests).await;
}
