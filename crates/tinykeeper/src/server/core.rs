//! The core: the task that owns the tree and processes all requests, one after the other.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use rand::RngExt;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::yield_now,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};

use super::{
    addresses::{AddressLimit, AddressSlot},
    auth,
    budget::RequestPermit,
    clock,
    config::Config,
    expiry::Expiry,
    four_letter::{Command, ConnectionStatus, Counters, ServerStatus},
    journal::{Batch, Journal},
    outbox::Outbox,
    respond::{exceeds_watch_limit, respond},
};
use crate::{
    tree::{Caller, Notification, Tree, WatcherId, WriteResult, is_allowed},
    wire::{
        AuthId, Code, ConnectRequest, ConnectResponse, KeeperState, PASSWORD_LEN, Perms,
        ReplyHeader, Request, Response, WatcherEvent, frame, xid,
    },
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

/// Maximum number of messages in one turn of the loop, so that replies are sent while more requests arrive.
const MAX_TURN: usize = 256;
/// Bytes of records and output after which a turn of the loop ends.
const MAX_TURN_BYTES: usize = 1 << 20;

/// Requests of one connection after which other connections have their turn.
const MAX_SLICE: usize = 1024;
/// Time after which other connections have their turn. A request that has begun is completed.
const MAX_SLICE_TIME: Duration = Duration::from_millis(5);

/// By how much a clock may have been set back. It is limited, so that no client can use up the transaction ids.
const MAX_CLOCK_STEP_MS: i64 = 366 * 24 * 3_600_000;

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

    /// Handles messages in order, in several turns if there is much to write; `false` if the journal has failed.
    async fn handle_all(&mut self, messages: &mut Vec<Inbound>) -> bool {
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
    async fn continue_unfinished(&mut self) -> bool {
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

    fn connect(
        &mut self,
        id: ConnectionId,
        peer: SocketAddr,
        request: &ConnectRequest,
        outbox: Outbox,
    ) {
        if self.has_forgotten(request.last_zxid_seen) {
            tracing::warn!(%peer, "transaction ids continue after the client's last one: was the clock set back?");
            self.tree.raise_zxid(request.last_zxid_seen);
        }
        if request.last_zxid_seen > self.tree.zxid() {
            let (client_zxid, zxid) = (request.last_zxid_seen, self.tree.zxid());
            tracing::warn!(
                %peer,
                client_zxid = format_args!("{client_zxid:#x}"),
                zxid = format_args!("{zxid:#x}"),
                "connection refused: client is ahead of this server"
            );
            outbox.abort();
            return;
        }
        let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64)
            .clamp(self.config.min_session_timeout, self.config.max_session_timeout);
        let timeout_ms = timeout.as_millis() as i32;
        let mut connection = Connection {
            peer,
            session: None,
            ids: vec![auth::address_id(peer.ip())],
            outbox,
            buffer: BytesMut::new(),
            pending: VecDeque::new(),
            is_unfinished: false,
            received: 1,
            sent: 1,
        };
        self.counters.received += 1;
        let response = if request.session_id == 0 {
            if self.expiry.len() >= self.config.max_sessions {
                tracing::warn!(%peer, max_sessions = self.config.max_sessions, "connection refused: too many sessions");
                connection.outbox.abort();
                return;
            }
            let Some(slot) = self.session_limit.try_take(peer.ip()) else {
                tracing::warn!(
                    %peer,
                    max_sessions_per_address = self.config.max_sessions_per_address,
                    "connection refused: too many sessions of this address"
                );
                connection.outbox.abort();
                return;
            };
            let (session, password) = self.open_session(timeout_ms);
            self.session_slots.insert(session, slot);
            self.bind(session, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: session,
                password,
                read_only: request.read_only.map(|_| false),
            }
        } else if self.tree.is_valid_session(request.session_id, &request.password) {
            self.bind(request.session_id, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: request.session_id,
                password: request.password.clone(),
                read_only: request.read_only.map(|_| false),
            }
        } else {
            tracing::debug!(%peer, session = format_args!("{:#x}", request.session_id), "session unknown or expired");
            ConnectResponse::expired(request.read_only)
        };
        self.counters.sent += 1;
        frame::write(&mut connection.buffer, |out| response.encode(out));
        let keep = connection.session.is_some();
        self.connections.insert(id, connection);
        self.with_output.insert(id);
        if !keep {
            self.close_after_flush(id);
        }
    }

    /// Whether an earlier start of this server may have issued this id, which is above the current one.
    ///
    /// A server without data does not know which ids it issued before it started. Its first id derives from the clock, which is
    /// too small if the clock was set back. A client's last id is the only memory then, and refusing the client would lock it
    /// out until the clock has caught up. A server with data knows its ids: a client ahead of it has seen data that is lost.
    fn has_forgotten(&self, zxid: i64) -> bool {
        self.journal.is_none()
            && zxid > self.tree.zxid()
            && zxid < clock::first_zxid(clock::unix_ms().saturating_add(MAX_CLOCK_STEP_MS))
    }

    fn open_session(&mut self, timeout_ms: i32) -> (i64, Bytes) {
        let session = self.next_session;
        self.next_session += 1;
        let password = Bytes::copy_from_slice(&rand::rng().random::<[u8; PASSWORD_LEN]>());
        let written =
            self.tree.open_session(session, timeout_ms, password.clone(), clock::unix_ms());
        self.record(written);
        (session, password)
    }

    /// Binds the session to this connection and aborts its previous one.
    fn bind(
        &mut self,
        session: i64,
        id: ConnectionId,
        timeout: Duration,
        connection: &mut Connection,
    ) {
        connection.session = Some(session);
        self.expiry.track(session, timeout, clock::now());
        if let Some(previous) = self.by_session.insert(session, id) {
            self.abort(previous);
        }
    }

    /// Processes pending requests in order until the peer leaves too many bytes unread, which slows the peer down instead of
    /// filling memory with replies, or until its slice is used up, so that others need not wait for all of its requests.
    fn process_requests(&mut self, id: ConnectionId) {
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

    fn process_request(&mut self, id: ConnectionId, xid: i32, request: &Request) {
        // Requests of a connection that was aborted or closed may still arrive; they are dropped.
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(session) = connection.session else {
            return;
        };
        let caller = Caller { session, ids: &connection.ids };
        let (zxid, response) = match request {
            Request::Auth { scheme, auth } => {
                let is_proved = auth::authenticate(scheme, auth, connection.peer.ip())
                    .is_some_and(|id| auth::add_id(&mut connection.ids, id));
                let response = if is_proved { Ok(Response::Empty) } else { Err(Code::AUTH_FAILED) };
                (self.tree.zxid(), response)
            }
            Request::WhoAmI => {
                let ids = connection.ids.iter();
                let users =
                    ids.map(|id| (id.scheme.clone(), auth::user_name(id).to_owned())).collect();
                (self.tree.zxid(), Ok(Response::WhoAmI(users)))
            }
            Request::CloseSession => {
                let written = self.tree.close_session(session, clock::unix_ms());
                let zxid = written.zxid;
                self.expiry.forget(session);
                self.session_slots.remove(&session);
                self.record(written);
                (zxid, Ok(Response::Empty))
            }
            request
                if exceeds_watch_limit(
                    &self.tree,
                    WatcherId(id),
                    request,
                    self.config.max_watch_bytes,
                ) =>
            {
                tracing::warn!(
                    peer = %connection.peer,
                    max_watch_bytes = self.config.max_watch_bytes,
                    "request refused: too many watches"
                );
                (self.tree.zxid(), Err(Code::QUOTA_EXCEEDED))
            }
            request => {
                let now_ms = clock::unix_ms();
                let result = respond(&mut self.tree, caller, WatcherId(id), request, now_ms);
                let zxid = result.written.as_ref().map_or(self.tree.zxid(), |written| written.zxid);
                self.notify(zxid, &result.missed);
                if let Some(written) = result.written {
                    self.record(written);
                }
                (zxid, result.response)
            }
        };
        self.reply(id, xid, zxid, response.as_ref());
        let must_close = match (request, &response) {
            // A client ignores that its watches are not restored, and would wait for notifications in vain.
            (Request::CloseSession, _) | (Request::SetWatches(_), Err(_)) => true,
            (_, result) => *result == Err(Code::AUTH_FAILED),
        };
        if must_close {
            self.close_after_flush(id);
        }
    }

    fn reply(&mut self, id: ConnectionId, xid: i32, zxid: i64, response: Result<&Response, &Code>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let code = response.err().copied().unwrap_or(Code::OK);
        let buffered = connection.buffer.len();
        frame::write(&mut connection.buffer, |out| {
            ReplyHeader { xid, zxid, code }.encode(out);
            if let Ok(response) = response {
                response.encode(out);
            }
        });
        self.turn_bytes += connection.buffer.len() - buffered;
        connection.sent += 1;
        self.counters.sent += 1;
        self.with_output.insert(id);
    }

    /// Notifies the watchers of a transaction and adds it to the log.
    fn record(&mut self, written: WriteResult) {
        self.notify(written.zxid, &written.notifications);
        if let Some(transaction) = written.transaction.filter(|_| self.journal.is_some()) {
            let mut bytes = BytesMut::with_capacity(128);
            transaction.encode(&mut bytes);
            self.turn_bytes += bytes.len();
            self.batch.records.push((transaction.zxid, bytes.freeze()));
            self.since_snapshot += 1;
        }
    }

    fn notify(&mut self, zxid: i64, notifications: &[Notification]) {
        for notification in notifications {
            let id = notification.watcher.0;
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            if notification
                .acl
                .as_ref()
                .is_some_and(|acl| !is_allowed(acl, Perms::READ, &connection.ids))
            {
                continue;
            }
            let event = WatcherEvent {
                kind: notification.kind,
                state: KeeperState::SYNC_CONNECTED,
                path: notification.path.to_string(),
            };
            let buffered = connection.buffer.len();
            frame::write(&mut connection.buffer, |out| {
                ReplyHeader { xid: xid::NOTIFICATION, zxid, code: Code::OK }.encode(out);
                event.encode(out);
            });
            self.turn_bytes += connection.buffer.len() - buffered;
            connection.sent += 1;
            self.counters.sent += 1;
            self.with_output.insert(id);
        }
    }

    fn expire(&mut self, now: Instant) {
        for session in self.expiry.expired(now) {
            tracing::info!(session = format_args!("{session:#x}"), "session expired");
            let written = self.tree.close_session(session, clock::unix_ms());
            self.session_slots.remove(&session);
            self.record(written);
            if let Some(id) = self.by_session.get(&session).copied() {
                self.abort(id);
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
                tracing::warn!(peer = %connection.peer, "connection aborted: too many unread bytes");
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

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;
    use crate::server::{
        four_letter::FourLetterWords,
        outbox::{self, OutboxReceiver},
    };

    fn core() -> Core {
        let words = FourLetterWords::all();
        let config = Config { four_letter_words: words, ..Config::in_memory() };
        let address = SocketAddr::from(([127, 0, 0, 1], 2181));
        Core::new(Arc::new(config), address, Tree::new(), None, 0)
    }

    /// Opens a session on a new connection.
    fn connect(core: &mut Core, connection: ConnectionId) -> OutboxReceiver {
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let (outbox, receiver) = outbox::channel(1 << 20, &outbox::QueuedTotal::default());
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: 4000,
            session_id: 0,
            password: Bytes::new(),
            read_only: None,
        };
        core.handle(Inbound::Connect { connection, peer, request, outbox });
        receiver
    }

    fn pings(connection: ConnectionId, count: usize) -> Inbound {
        let requests = vec![(xid::PING, Request::Ping); count];
        Inbound::Requests { connection, requests, arrived: clock::now(), permit: None }
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_many_requests_lets_others_have_their_turn() {
        let mut core = core();
        let _receivers = [connect(&mut core, 1), connect(&mut core, 2)];
        let waiting = |core: &Core, id| core.connections[&id].pending.len();

        core.handle(pings(1, 2 * MAX_SLICE));
        core.handle(pings(1, 1));
        core.handle(pings(2, 1));

        assert_eq!((waiting(&core, 1), waiting(&core, 2)), (MAX_SLICE + 1, 0));
        for left in [1, 0] {
            assert!(core.continue_unfinished().await);
            assert_eq!((waiting(&core, 1), core.unfinished.len()), (left, left));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn session_with_requests_waiting_does_not_expire() {
        let mut core = core();
        let _receiver = connect(&mut core, 1);
        let (sender, inbox) = mpsc::channel(8);
        let (_stop, stopped) = watch::channel(false);

        tokio::time::advance(Duration::from_secs(10)).await;
        sender.send(pings(1, 1)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(core.run(inbox, stopped));
        yield_now().await;

        let (reply, response) = oneshot::channel();
        sender.send(Inbound::Command { command: Command::Dump, reply }).await.unwrap();
        let dump = response.await.unwrap();
        assert!(dump.contains("Sessions (1)"), "{dump}");
    }
}
