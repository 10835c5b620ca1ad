//! What waits to be sent on one connection.
//!
//! The core and the journal put bytes in, the connection's task takes them out. The box is bounded: while a peer leaves too
//! much unread its further requests wait, and when notifications still pile up it is cut rather than allowed to fill the memory.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

/// The core's end.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    queue: mpsc::UnboundedSender<Bytes>,
    shared: Arc<Shared>,
    limit: usize,
}

/// The connection's end.
#[derive(Debug)]
pub(super) struct Inbox {
    queue: mpsc::UnboundedReceiver<Bytes>,
    shared: Arc<Shared>,
}

/// What [`Inbox::take`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Something to send.
    Some,
    /// Nothing, and there will be no more.
    Last,
    /// The connection is to end at once.
    Cut,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    /// The core waits to hear that something was sent.
    asked: AtomicBool,
    cut: AtomicBool,
    told: Notify,
}

pub(super) fn outbox(limit: usize) -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::default());
    (
        Outbox { queue: sender, shared: Arc::clone(&shared), limit },
        Inbox { queue: receiver, shared },
    )
}

impl Outbox {
    /// Makes room for this many bytes, which count from now on; `false` when the box would overflow.
    pub(super) fn reserve(&self, length: usize) -> bool {
        let waiting = self.shared.waiting.fetch_add(length, Ordering::SeqCst);
        // A single answer may be larger than the limit; what counts is that the peer leaves things lying.
        waiting == 0 || waiting + length <= self.limit
    }

    /// Puts bytes in for which there is room.
    pub(super) fn send(&self, bytes: Bytes) {
        // A connection that has gone does not want it any more; its end is told to the core by its task.
        let _ = self.queue.send(bytes);
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::SeqCst)
    }

    /// Whether so much waits, with `more` about to be put in, that the peer should read before it asks further. If so, its
    /// task will say when something was sent.
    pub(super) fn is_behind(&self, more: usize) -> bool {
        let enough = (self.limit / 4).max(1);
        if self.waiting() + more < enough {
            return false;
        }
        // Asked before looking again: either we see that it was sent, or its task sees that we want to know.
        self.shared.asked.store(true, Ordering::SeqCst);
        self.waiting() + more >= enough
    }

    /// Ends the connection at once, whatever waits.
    pub(super) fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
        self.shared.told.notify_one();
    }
}

impl Inbox {
    /// The next bytes to send, as much as has gathered.
    pub(super) async fn take(&mut self, into: &mut Vec<Bytes>) -> Taken {
        let Self { queue, shared } = self;
        tokio::select! {
            biased;
            () = shared.until_cut() => Taken::Cut,
            count = queue.recv_many(into, 64) => if count > 0 { Taken::Some } else { Taken::Last },
        }
    }

    /// These bytes are on their way; says whether the core wants to know.
    pub(super) fn sent(&self, length: usize) -> bool {
        self.shared.waiting.fetch_sub(length, Ordering::SeqCst);
        self.shared.asked.swap(false, Ordering::SeqCst)
    }

    /// Waits until the connection is to end at once.
    pub(super) async fn until_cut(&self) {
        self.shared.until_cut().await;
    }
}

impl Shared {
    async fn until_cut(&self) {
        while !self.cut.load(Ordering::Relaxed) {
            self.told.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_that_nobody_empties_has_no_room_for_more_than_its_limit() {
        let (outbox, inbox) = outbox(10);

        assert!(outbox.reserve(8));
        assert!(!outbox.reserve(3));
        inbox.sent(11);
        assert!(outbox.reserve(10));
    }

    #[test]
    fn who_waits_for_a_peer_that_is_behind_hears_when_something_was_sent() {
        let (outbox, inbox) = outbox(40);

        assert!(!outbox.is_behind(9));
        outbox.reserve(9);
        assert!(!inbox.sent(4), "nobody asked");
        assert!(outbox.is_behind(5));
        assert!(inbox.sent(5));
        assert!(!inbox.sent(0), "told once");
        assert!(!outbox.is_behind(9));
    }

    #[tokio::test]
    async fn one_answer_larger_than_the_limit_still_goes_out() {
        let (outbox, mut inbox) = outbox(2);

        assert!(outbox.reserve(5));
        outbox.send(Bytes::from_static(b"large"));

        let mut taken = Vec::new();
        assert_eq!(inbox.take(&mut taken).await, Taken::Some);
        assert_eq!(taken, [&b"large"[..]]);
    }
}
