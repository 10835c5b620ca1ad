//! What a test can do to a member's connection.

use super::server::{MemberId, MemoryServer};

/// A member's connection to the server, to be broken at will.
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

    /// The next request is carried out, but the connection breaks before its answer: it ends in
    /// [`Unknown`](crate::registry::Error::Unknown).
    pub fn cut_after_next_request(&self) {
        self.server.lock().member(self.member).loses_next_answer = true;
    }

    /// Repairs the connection: the session goes on if the server has not ended it, watches start over.
    pub fn heal(&self) {
        let (now, now_ms) = (self.server.clock().monotonic(), self.server.now_ms());
        self.server.lock().heal(self.member, now, self.server.timeout(), now_ms);
    }

    /// The server ends the session. A member that is cut off learns it when it is healed.
    pub fn expire(&self) {
        let (now, now_ms) = (self.server.clock().monotonic(), self.server.now_ms());
        self.server.lock().expire(self.member, now, self.server.timeout(), now_ms);
    }

    /// Requests, answers and notifications stand still until thawed.
    pub fn freeze(&self) {
        self.server.lock().freeze(self.member);
    }

    /// Everything moves again.
    pub fn thaw(&self) {
        self.server.lock().thaw(self.member);
    }
}
