//! The core: the task that owns the tree and processes all requests, one after the other.

mod fairness;
mod requests;
mod sessions;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::yield_now,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};

use self::fairness::MAX_TURN;
use super::{
    addresses::{AddressLimit, AddressSlot},
    budget::RequestPermit,
    client_warnings::ClientWarnings,
    clock,
    config::Config,
    expiry::Expiry,
    four_letter::{Command, ConnectionStatus, Counters, ServerStatus},
    journal::{Batch, Journal},
    outbox::Outbox,
};
use crate::{
    tree::{Tree, WatcherId},
    wire::{AuthId, ConnectRequest, Request},
};

/// The server's number for a connection; also its [`WatcherId`].
pub(super) type ConnectionId = u64;

/// A message from a connection to the core.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A client opens or resumes a session.
    Connect {
        connection: ConnectionId,
        peer: SocketAddr,
        request: ConnectRequest,
        outbox: Outbox,
    },
    Requests {
        connection: ConnectionId,
        /// Empty if a request waits for the budget and only keeps its session alive.
        requests: Vec<(i32, Request)>,
        arrived: Instant,
        permit: Option<RequestPermit>,
    },
    /// A backlogged connection has sent some of its output.
    OutboxDrained {
        connection: ConnectionId,
    },
    Disconnected {
        connection: ConnectionId,
    },
    /// A four-letter command of an operator.
    Command {
        command: Command,
        reply: oneshot::Sender<String>,
    },
}

pub(super) struct Core {
    config: Arc<Config>,
    listen: SocketAddr,
    tree: Tree,
    journal: Option<Journal>,
    connections: HashMap<ConnectionId, Connection>,
    by_session: HashMap<i64, ConnectionId>,
    expiry: Expiry,
    /// Places of the addresses that opened the sessions. Sessions from before the start have none.
    session_slots: HashMap<i64, AddressSlot>,
    session_limit: AddressLimit,
    warnings: ClientWarnings,
    /// Connections whose requests continue in the next turn.
    unfinished: VecDeque<ConnectionId>,
    next_session: i64,
    counters: Counters,
    /// Connections with buffered output, sorted, so that a turn always flushes in the same order.
    with_output: BTreeSet<ConnectionId>,
    /// The records and output of this turn.
    batch: Batch,
    /// Bytes of the records and the output of this turn, including output that is not in the batch yet.
    turn_bytes: usize,
    turn_began: Instant,
    /// Number of transactions since the last snapshot.
    since_snapshot: u64,
    /// Number of messages that waited when this turn began.
    outstanding: usize,
}

struct Connection {
    peer: SocketAddr,
    session: Option<i64>,
    ids: Vec<AuthId>,
    outbox: Outbox,
    buffer: BytesMut,
    /// Requests not processed yet: they wait while the peer leaves too many bytes unread.
    pending: VecDeque<PendingRequest>,
    /// It is in [`Core::unfinished`]: its pending requests wait for their turn.
    is_unfinished: bool,
    received: u64,
    sent: u64,
}

struct PendingRequest {
    xid: i32,
    request: Request,
    _permit: Option<RequestPermit>,
}

impl Core {
    pub(super) fn new(
        config: Arc<Config>,
        listen: SocketAddr,
        mut tree: Tree,
        journal: Option<Journal>,
        since_snapshot: u64,
        warnings: ClientWarnings,
    ) -> Self {
        let unix_ms = clock::unix_ms();
        tree.raise_zxid(clock::first_zxid(unix_ms));
        let newest_session = tree.sessions().map(|session| session.id).max().unwrap_or(0);
        let mut expiry = Expiry::default();
        let now = clock::now();
        for session in tree.sessions() {
            expiry.track(session.id, millis(session.timeout_ms), now);
        }
        let session_limit = AddressLimit::new(config.max_sessions_per_address);
        Self {
            config,
            listen,
            tree,
            journal,
            connections: HashMap::new(),
            by_session: HashMap::new(),
            expiry,
            session_slots: HashMap::new(),
            session_limit,
            warnings,
            unfinished: VecDeque::new(),
            next_session: clock::first_session(unix_ms).max(newest_session + 1),
            counters: Counters::default(),
            with_output: BTreeSet::new(),
            batch: Batch::default(),
            turn_bytes: 0,
            turn_began: now,
            since_snapshot,
            outstanding: 0,
        }
    }

    /// Runs until `stop` is set or the journal fails.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Inbound>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), crate::store::Error> {
        let mut sweep =
            interval_at(clock::now() + self.config.sweep_interval, self.config.sweep_interval);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut messages = Vec::with_capacity(MAX_TURN);
        loop {
            let next_check = self.expiry.next_check();
            let mut expire_at = None;
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = journal_failed(self.journal.as_ref()) => break,
                () = async { sleep_until(next_check.expect("guarded")).await }, if next_check.is_some() => {
                    // Requests that arrived while the core was blocked, for example by a slow disk, keep their session alive.
                    // Requests that arrive from now on are not seen, so only sessions that ended before now expire.
                    expire_at = Some(clock::now());
                    for _ in 0..inbox.len() {
                        let Ok(inbound) = inbox.try_recv() else { break };
                        messages.push(inbound);
                    }
                }
                _ = sweep.tick() => self.sweep(),
                count = inbox.recv_many(&mut messages, MAX_TURN) => {
                    if count == 0 {
                        break;
                    }
                    self.outstanding = inbox.len();
                }
                // Connections have to run meanwhile, to send output and to read.
                () = yield_now(), if !self.unfinished.is_empty() => {}
            }
            self.turn_began = clock::now();
            if !self.handle_all(&mut messages).await || !self.continue_unfinished().await {
                break;
            }
            if let Some(now) = expire_at {
                self.expire(now);
            }
            if !self.finish_turn().await {
                break;
            }
        }
        // Dropping the outboxes ends the connections' tasks once everything is sent.
        self.connections.clear();
        match self.journal.take() {
            Some(journal) => journal.finish().await,
            None => Ok(()),
        }
    }

    fn handle(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Connect { connection, peer, request, outbox } => {
                self.connect(connection, peer, &request, outbox);
            }
            Inbound::Requests { connection, requests, arrived, permit } => {
                self.counters.received += requests.len() as u64;
                if let Some(state) = self.connections.get_mut(&connection) {
                    state.received += requests.len() as u64;
                    if let Some(session) = state.session {
                        self.expiry.touch(session, arrived);
                    }
                }
                if requests.is_empty() {
                    return;
                }
                let count = requests.len() as u64;
                if let Some(connection) = self.connections.get_mut(&connection) {
                    connection.pending.extend(requests.into_iter().map(|(xid, request)| {
                        PendingRequest { xid, request, _permit: permit.clone() }
                    }));
                }
                self.process_requests(connection);
                let latency = clock::now().saturating_duration_since(arrived);
                self.counters.replied += count;
                self.counters.latency_sum += latency * count as u32;
                self.counters.latency_max = self.counters.latency_max.max(latency);
                let least = self.counters.latency_min.unwrap_or(latency);
                self.counters.latency_min = Some(least.min(latency));
            }
            Inbound::OutboxDrained { connection } => self.process_requests(connection),
            Inbound::Disconnected { connection } => self.remove_connection(connection),
            Inbound::Command { command, reply } => {
                let _ = reply.send(self.status(command).reply(command));
            }
        }
    }

    fn sweep(&mut self) {
        for written in self.tree.sweep(clock::unix_ms()) {
            self.record(written);
        }
    }

    /// Closes the connection once its output is sent.
    fn close_after_flush(&mut self, id: ConnectionId) {
        self.flush(id);
        self.remove_connection(id);
    }

    /// Closes the connection at once and discards its output.
    fn abort(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id) {
            connection.outbox.abort();
        }
        self.remove_connection(id);
    }

    fn remove_connection(&mut self, id: ConnectionId) {
        self.tree.remove_watcher(WatcherId(id));
        self.with_output.remove(&id);
        let session = self.connections.remove(&id).and_then(|connection| connection.session);
        if let Some(session) = session
            && self.by_session.get(&session) == Some(&id)
        {
            self.by_session.remove(&session);
        }
    }

    fn flush(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id)
            && !connection.buffer.is_empty()
        {
            let bytes = connection.buffer.split().freeze();
            if connection.outbox.reserve(bytes.len()) {
                self.batch.deliveries.push((connection.outbox.clone(), bytes));
            } else {
                if self.warnings.is_first(connection.peer.ip(), "too many unread bytes") {
                    tracing::warn!(peer = %connection.peer, "connection aborted: too many unread bytes");
                }
                self.abort(id);
            }
        }
    }

    /// Passes the records and output of this turn to the journal; `false` if the journal has failed.
    async fn finish_turn(&mut self) -> bool {
        for id in std::mem::take(&mut self.with_output) {
            self.flush(id);
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.turn_bytes = 0;
        self.turn_began = clock::now();
        let Some(journal) = &self.journal else {
            batch.deliver();
            return true;
        };
        if self.since_snapshot >= self.config.snapshot_every {
            self.since_snapshot = 0;
            batch.snapshot = Some((self.tree.zxid(), self.tree.freeze()));
        }
        batch.is_empty() || journal.write(batch).await
    }

    fn status(&self, command: Command) -> ServerStatus<'_> {
        let lists_connections = matches!(command, Command::Stat | Command::Cons);
        let connections = self.connections.values().filter(|_| lists_connections);
        let connections = connections.map(|connection| ConnectionStatus {
            address: connection.peer,
            session: connection.session,
            queued: connection.outbox.queued_bytes() + connection.buffer.len(),
            received: connection.received,
            sent: connection.sent,
        });
        ServerStatus {
            tree: &self.tree,
            config: &self.config,
            listen: self.listen,
            counters: self.counters,
            connection_count: self.connections.len(),
            connections: connections.collect(),
            outstanding: self.outstanding,
        }
    }
}

/// Waits until the journal stops because of an error.
async fn journal_failed(journal: Option<&Journal>) {
    match journal {
        Some(journal) => journal.stopped().await,
        None => std::future::pending().await,
    }
}

fn millis(timeout_ms: i32) -> Duration {
    Duration::from_millis(timeout_ms.max(0) as u64)
}
