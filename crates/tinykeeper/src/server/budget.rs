//! Limits the bytes of requests that wait for the core, so that clients that are faster than the disk wait instead of filling
//! memory.
//!
//! Every connection has a small share of its own: a session is kept alive, and small requests are served, while large requests
//! of other connections use up the shared budget.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of requests that all connections together may have waiting, beyond their own shares.
const SHARED: usize = 8 << 20;
/// Bytes of requests that each connection may have waiting in any case.
const OWN: usize = 64 << 10;

/// The budget of one connection.
#[derive(Debug)]
pub(super) struct RequestBudget {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// The bytes of the requests of one message. They are returned to the budget when the last request is processed.
pub(super) type RequestPermit = Arc<OwnedSemaphorePermit>;

impl RequestBudget {
    pub(super) fn new() -> Self {
        Self { own: Arc::new(Semaphore::new(OWN)), shared: Arc::new(Semaphore::new(SHARED)) }
    }

    /// A budget with a share of its own; the rest is shared with this one.
    pub(super) fn for_another_connection(&self) -> Self {
        Self { own: Arc::new(Semaphore::new(OWN)), shared: Arc::clone(&self.shared) }
    }

    pub(super) fn try_acquire(&self, bytes: usize) -> Option<RequestPermit> {
        let own = Arc::clone(&self.own).try_acquire_many_owned(clamp(bytes));
        let permit = own.or_else(|_| Arc::clone(&self.shared).try_acquire_many_owned(clamp(bytes)));
        permit.ok().map(Arc::new)
    }

    /// Waits until the shared budget has room for this many bytes.
    pub(super) fn acquire(&self, bytes: usize) -> impl Future<Output = RequestPermit> + use<> {
        let permit = Arc::clone(&self.shared).acquire_many_owned(clamp(bytes));
        async { Arc::new(permit.await.expect("the semaphore is never closed")) }
    }
}

/// A message larger than the whole budget takes all of it.
fn clamp(bytes: usize) -> u32 {
    bytes.min(SHARED) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_request_has_room_while_others_use_up_the_shared_budget() {
        let large = RequestBudget::new();
        let small = large.for_another_connection();

        let permit = large.try_acquire(SHARED + 1).expect("the budget is unused");

        assert!(small.try_acquire(OWN + 1).is_none());
        assert!(small.try_acquire(OWN).is_some());
        drop(permit);
        assert!(small.try_acquire(OWN + 1).is_some());
    }
}
