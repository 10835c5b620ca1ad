//! An active connection, with the deadlines for pinging it and giving it up.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    connection::{Connection, Transfer},
    lease::Contacts,
    pending::PendingRequests,
};

/// With this many bytes waiting to be sent, no more requests are accepted: they would only be lost with the connection.
const HIGH_WATER: usize = 256 << 10;

/// An active connection: its socket, its pending requests and its deadlines.
pub(super) struct ActiveConnection {
    pub(super) connection: Connection,
    pub(super) pending: PendingRequests,
    pub(super) contacts: Contacts,
    timeout: Duration,
    pub(super) last_sent: Instant,
    pub(super) last_received: Instant,
    /// Deadline for the server's reply to closing the session; set once closing has begun.
    pub(super) close_deadline: Option<Instant>,
}

impl ActiveConnection {
    pub(super) fn new(connection: Connection, timeout: Duration, contacts: Contacts) -> Self {
        let now = now();
        Self {
            connection,
            pending: PendingRequests::default(),
            contacts,
            timeout,
            last_sent: now,
            last_received: now,
            close_deadline: None,
        }
    }

    pub(super) fn record(&mut self, transfer: Transfer) {
        let now = now();
        if transfer.sent {
            self.last_sent = now;
        }
        if transfer.received {
            self.last_received = now;
        }
    }

    pub(super) fn accepts_requests(&self) -> bool {
        self.close_deadline.is_none() && self.connection.unsent_bytes() < HIGH_WATER
    }

    pub(super) fn ping_at(&self) -> Instant {
        self.last_sent + self.timeout / 3
    }

    pub(super) fn give_up_at(&self) -> Instant {
        self.last_received + self.timeout * 2 / 3
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let next = self.ping_at().min(self.give_up_at());
        self.close_deadline.map_or(next, |deadline| next.min(deadline))
    }
}

/// The only clock read of the client's task. Deadlines use tokio's clock, so a paused runtime pauses them too.
#[expect(clippy::disallowed_methods, reason = "the client's task reads the clock here only")]
pub(super) fn now() -> Instant {
    Instant::now()
}
