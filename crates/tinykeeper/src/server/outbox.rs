//! What waits to be sent on one connection.
//!
//! The core and the journal put bytes in, the connection's task takes them out. The box is bounded: a connection whose peer
//! does not read is cut rather than allowed to fill the memory.

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
    /// Puts bytes in. Says `false` once, when the box overflows and the connection is cut.
    pub(super) fn send(&self, bytes: Bytes) -> bool {
        let length = bytes.len();
        let waiting = self.shared.waiting.fetch_add(length, Ordering::Relaxed);
        // A single answer may be larger than the limit; what counts is that the peer leaves things lying.
        if waiting > 0 && waiting + length > self.limit {
            return self.shared.cut.load(Ordering::Relaxed) || {
                self.cut();
                false
            };
        }
        // A connection that has gone does not want it any more; its end is told to the core by its task.
        let _ = self.queue.send(bytes);
        true
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
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

    /// These bytes are on their way.
    pub(super) fn sent(&self, length: usize) {
        self.shared.waiting.fetch_sub(length, Ordering::Relaxed);
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

    #[tokio::test]
    async fn a_box_that_nobody_empties_is_cut_and_says_so_once() {
        let (outbox, inbox) = outbox(10);

        assert!(outbox.send(Bytes::from_static(b"12345678")));
        assert!(!outbox.send(Bytes::from_static(b"abc")));
        assert!(outbox.send(Bytes::from_static(b"abc")), "said once is enough");

        inbox.until_cut().await;
    }

    #[tokio::test]
    async fn one_answer_larger_than_the_limit_still_goes_out() {
        let (outbox, mut inbox) = outbox(2);

        assert!(outbox.send(Bytes::from_static(b"large")));

        let mut taken = Vec::new();
        assert_eq!(inbox.take(&mut taken).await, Taken::Some);
        assert_eq!(taken, [&b"large"[..]]);
    }
}
