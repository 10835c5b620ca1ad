//! Fairness between connections: a connection with many requests gets the core for a slice of time, then others have their turn; and a
//! turn ends in time to send its output.

use std::time::Duration;

use tokio::task::yield_now;

use super::{super::clock, ConnectionId, Core, Inbound};

/// Maximum number of messages in one turn of the loop, so that replies are sent while more requests arrive.
pub(super) const MAX_TURN: usize = 256;
/// Bytes of records and output after which a turn of the loop ends.
const MAX_TURN_BYTES: usize = 1 << 20;

/// Requests of one connection after which other connections have their turn.
pub(super) const MAX_SLICE: usize = 1024;
/// Time after which other connections have their turn. A request that has begun is completed.
const MAX_SLICE_TIME: Duration = Duration::from_millis(5);

impl Core {
    /// Handles messages in order, in several turns if there is much to write; `false` if the journal has failed.
    pub(super) async fn handle_all(&mut self, messages: &mut Vec<Inbound>) -> bool {
        for inbound in messages.drain(..) {
            self.handle(inbound);
            if self.is_turn_over() && !self.interrupt_turn().await {
                return false;
            }
        }
        true
    }

    /// Sends what there is before the turn goes on; `false` if the journal has failed.
    async fn interrupt_turn(&mut self) -> bool {
        let is_journal_alive = self.finish_turn().await;
        yield_now().await;
        is_journal_alive
    }

    /// Whether there is so much output, or it has waited so long, that it is sent before anything else is processed.
    fn is_turn_over(&self) -> bool {
        self.turn_bytes >= MAX_TURN_BYTES
            || clock::now().saturating_duration_since(self.turn_began) > MAX_SLICE_TIME
    }

    /// Gives every connection that had more requests than fit into its last slice another one; `false` if the journal has failed.
    pub(super) async fn continue_unfinished(&mut self) -> bool {
        for _ in 0..self.unfinished.len() {
            let Some(id) = self.unfinished.pop_front() else { break };
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.is_unfinished = false;
            }
            self.process_requests(id);
            if self.is_turn_over() && !self.interrupt_turn().await {
                return false;
            }
        }
        true
    }

    /// Processes pending requests in order until the peer leaves too many bytes unread, which slows the peer down instead of
    /// filling memory with replies, or until its slice is used up, so that others need not wait for all of its requests.
    pub(super) fn process_requests(&mut self, id: ConnectionId) {
        let began = clock::now();
        let mut processed = 0;
        while let Some(connection) = self.connections.get_mut(&id)
            && !connection.is_unfinished
            && !connection.pending.is_empty()
            && !connection.outbox.is_backlogged(connection.buffer.len())
        {
            if processed >= MAX_SLICE
                || (processed > 0 && clock::now().saturating_duration_since(began) > MAX_SLICE_TIME)
            {
                connection.is_unfinished = true;
                self.unfinished.push_back(id);
                return;
            }
            let Some(pending) = connection.pending.pop_front() else { return };
            processed += 1;
            self.process_request(id, pending.xid, &pending.request);
        }
    }
}
