//! The queue of bytes to send on one connection.
//!
//! The core and the journal put bytes in, the connection's task takes them out. The queue is bounded: while a peer leaves too
//! many bytes unread, its further requests wait. If notifications still accumulate, the connection is aborted, so that it
//! cannot exhaust memory. The bounds of every connection are small while all connections together leave much unread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

/// Bytes queued for all connections together from which on each may have only [`SMALL_BACKLOG`] queued before its requests
/// wait. From twice as much on, a connection is aborted at [`SMALL_LIMIT`].
const MAX_QUEUED: usize = 256 << 20;
const SMALL_BACKLOG: usize = 64 << 10;
const SMALL_LIMIT: usize = 1 << 20;

/// The bytes queued for all connections of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct QueuedTotal(Arc<AtomicUsize>);

/// The sending end, held by the core.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    queue: mpsc::UnboundedSender<Bytes>,
    shared: Arc<Shared>,
    limit: usize,
}

/// The receiving end, held by the connection's task.
#[derive(Debug)]
pub(super) struct OutboxReceiver {
    queue: mpsc::UnboundedReceiver<Bytes>,
    shared: Arc<Shared>,
}

/// Result of [`OutboxReceiver::next`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextOutput {
    /// There are bytes to send.
    Bytes,
    /// The queue is empty and the core has dropped its end.
    Closed,
    /// The connection must end at once.
    Aborted,
}

#[derive(Debug)]
struct Shared {
    queued_bytes: AtomicUsize,
    total: QueuedTotal,
    /// The core waits for a message that bytes were sent.
    wants_drain_notice: AtomicBool,
    is_aborted: AtomicBool,
    aborted: Notify,
}

pub(super) fn channel(limit: usize, total: &QueuedTotal) -> (Outbox, OutboxReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        queued_bytes: AtomicUsize::new(0),
        total: total.clone(),
        wants_drain_notice: AtomicBool::new(false),
        is_aborted: AtomicBool::new(false),
        aborted: Notify::new(),
    });
    (
        Outbox { queue: sender, shared: Arc::clone(&shared), limit },
        OutboxReceiver { queue: receiver, shared },
    )
}

impl Outbox {
    /// Reserves room for this many bytes, which count as queued from now on; `false` if the queue would exceed its limit.
    pub(super) fn reserve(&self, length: usize) -> bool {
        let queued = self.shared.queued_bytes.fetch_add(length, Ordering::SeqCst);
        let total = self.shared.total.0.fetch_add(length, Ordering::SeqCst);
        let limit = if total >= 2 * MAX_QUEUED { self.limit.min(SMALL_LIMIT) } else { self.limit };
        // A single reply may exceed the limit; only bytes that the peer leaves unread count against it.
        queued == 0 || queued + length <= limit
    }

    /// Queues bytes for which room was reserved.
    pub(super) fn send(&self, bytes: Bytes) {
        // If the connection has ended, its task tells the core; the bytes are dropped.
        let _ = self.queue.send(bytes);
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.shared.queued_bytes.load(Ordering::SeqCst)
    }

    /// Whether so much is queued, with `more` about to be added, that the peer must read before its next request is processed.
    /// If so, the connection's task sends the core a message once bytes were sent.
    pub(super) fn is_backlogged(&self, more: usize) -> bool {
        let mut threshold = (self.limit / 4).max(1);
        if self.shared.total.0.load(Ordering::SeqCst) >= MAX_QUEUED {
            threshold = threshold.min(SMALL_BACKLOG);
        }
        if self.queued_bytes() + more < threshold {
            return false;
        }
        // The flag is set before the second check: either this check sees the sent bytes, or the task sees the flag.
        self.shared.wants_drain_notice.store(true, Ordering::SeqCst);
        self.queued_bytes() + more >= threshold
    }

    /// Ends the connection at once and discards what is queued.
    pub(super) fn abort(&self) {
        self.shared.is_aborted.store(true, Ordering::Relaxed);
        self.shared.aborted.notify_one();
    }
}

impl OutboxReceiver {
    /// Waits for bytes to send and takes all that are queued, up to a limit.
    pub(super) async fn next(&mut self, into: &mut Vec<Bytes>) -> NextOutput {
        let Self { queue, shared } = self;
        tokio::select! {
            biased;
            () = shared.wait_aborted() => NextOutput::Aborted,
            count = queue.recv_many(into, 64) => if count > 0 { NextOutput::Bytes } else { NextOutput::Closed },
        }
    }

    /// Records that bytes were sent; returns whether the core wants a message about it.
    pub(super) fn mark_sent(&self, length: usize) -> bool {
        self.shared.queued_bytes.fetch_sub(length, Ordering::SeqCst);
        self.shared.total.0.fetch_sub(length, Ordering::SeqCst);
        self.shared.wants_drain_notice.swap(false, Ordering::SeqCst)
    }

    /// Waits until the connection is aborted.
    pub(super) async fn wait_aborted(&self) {
        self.shared.wait_aborted().await;
    }
}

impl Shared {
    async fn wait_aborted(&self) {
        while !self.is_aborted.load(Ordering::Relaxed) {
            self.aborted.notified().await;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.total.0.fetch_sub(*self.queued_bytes.get_mut(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(limit: usize) -> (Outbox, OutboxReceiver) {
        super::channel(limit, &QueuedTotal::default())
    }

    #[test]
    fn unread_bytes_of_others_make_the_bounds_of_each_small() {
        let total = QueuedTotal::default();
        let (other, other_receiver) = super::channel(usize::MAX, &total);
        let (outbox, receiver) = super::channel(32 << 20, &total);
        outbox.reserve(SMALL_BACKLOG);

        assert!(!outbox.is_backlogged(0));
        other.reserve(MAX_QUEUED);
        assert!(outbox.is_backlogged(0));
        assert!(outbox.reserve(SMALL_LIMIT), "notifications may still be queued");
        other.reserve(MAX_QUEUED);
        assert!(!outbox.reserve(1), "and are too many now");

        drop((other, other_receiver));
        assert!(outbox.reserve(1));
        drop((outbox, receiver));
        assert_eq!(total.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn unread_outbox_has_no_room_beyond_its_limit() {
        let (outbox, receiver) = channel(10);

        assert!(outbox.reserve(8));
        assert!(!outbox.reserve(3));
        receiver.mark_sent(11);
        assert!(outbox.reserve(10));
    }

    #[test]
    fn backlogged_outbox_requests_one_drain_notice() {
        let (outbox, receiver) = channel(40);

        assert!(!outbox.is_backlogged(9));
        outbox.reserve(9);
        assert!(!receiver.mark_sent(4), "no notice was requested");
        assert!(outbox.is_backlogged(5));
        assert!(receiver.mark_sent(5));
        assert!(!receiver.mark_sent(0), "the notice is requested once");
        assert!(!outbox.is_backlogged(9));
    }

    #[tokio::test]
    async fn single_reply_over_the_limit_is_sent() {
        let (outbox, mut receiver) = channel(2);

        assert!(outbox.reserve(5));
        outbox.send(Bytes::from_static(b"large"));

        let mut bytes = Vec::new();
        assert_eq!(receiver.next(&mut bytes).await, NextOutput::Bytes);
        assert_eq!(bytes, [&b"large"[..]]);
    }
}
