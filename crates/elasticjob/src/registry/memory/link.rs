//! Fault injection: breaks, freezes and expires a member's connection.

use super::server::{MemberId, MemoryServer};

/// Controls a member's connection to the server, for tests.
#[derive(Debug, Clone)]
pub struct Link {
    pub(super) server: MemoryServer,
    pub(super) member: MemberId,
}

impl Link {
    /// Breaks the connection. Requests fail with [`Unreachable`](crate::registry::Error::Unreachable) until it is healed.
    pub fn cut(&self) {
        self.server.lock().cut(self.member);
    }

    /// The next request is executed, but the connection breaks before the answer arrives, so it fails with
    /// [`Unknown`](crate::registry::Error::Unknown).
    pub fn cut_after_next_request(&self) {
        self.server.lock().member(self.member).loses_next_answer = true;
    }

    /// Restores the connection: the session continues unless the server has ended it, and watches start over.
    pub fn heal(&self) {
        let (now, now_ms) = (self.server.clock().monotonic(), self.server.now_ms());
        self.server.lock().heal(self.member, now, self.server.timeout(), now_ms);
    }

    /// Ends the session on the server. A disconnected member learns of it when the connection is healed.
    pub fn expire(&self) {
        let (now, now_ms) = (self.server.clock().monotonic(), self.server.now_ms());
        self.server.lock().expire(self.member, now, self.server.timeout(), now_ms);
    }

    /// Holds back requests, answers and notifications until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        self.server.lock().freeze(self.member);
    }

    /// Releases everything that [`freeze`](Self::freeze) held back.
    pub fn thaw(&self) {
        self.server.lock().thaw(self.member);
    }
}
