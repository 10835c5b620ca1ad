//! One connection in use, and when to speak up on it or give it up.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    connection::{Connection, Moved},
    exchange::Exchange,
    lease::Contacts,
};

/// With this many bytes waiting to leave, nothing more is taken from callers: it would only be lost with the connection.
const HIGH_WATER: usize = 256 << 10;

/// One connection in use: its socket, its questions and its deadlines.
pub(super) struct Line {
    pub(super) connection: Connection,
    pub(super) exchange: Exchange,
    pub(super) contacts: Contacts,
    timeout: Duration,
    pub(super) last_sent: Instant,
    pub(super) last_received: Instant,
    /// Until when to wait for the session to be closed.
    pub(super) closing: Option<Instant>,
}

impl Line {
    pub(super) fn new(connection: Connection, timeout: Duration, contacts: Contacts) -> Self {
        let now = now();
        Self {
            connection,
            exchange: Exchange::default(),
            contacts,
            timeout,
            last_sent: now,
            last_received: now,
            closing: None,
        }
    }

    pub(super) fn moved(&mut self, moved: Moved) {
        let now = now();
        if moved.sent {
            self.last_sent = now;
        }
        if moved.received {
            self.last_received = now;
        }
    }

    pub(super) fn accepts(&self) -> bool {
        self.closing.is_none() && self.connection.waiting() < HIGH_WATER
    }

    pub(super) fn ping_at(&self) -> Instant {
        self.last_sent + self.timeout / 3
    }

    pub(super) fn silent_until(&self) -> Instant {
        self.last_received + self.timeout * 2 / 3
    }

    pub(super) fn next_deadline(&self) -> Instant {
        let next = self.ping_at().min(self.silent_until());
        self.closing.map_or(next, |until| next.min(until))
    }
}

/// The only clock read here; deadlines on it are tokio's, so a paused runtime pauses them too.
#[expect(clippy::disallowed_methods, reason = "this loop is where time is asked for")]
pub(super) fn now() -> Instant {
    Instant::now()
}
