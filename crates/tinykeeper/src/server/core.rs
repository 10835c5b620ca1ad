//! The core: owns the tree and decides everything, one request after the other.

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
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};

use super::{
    auth, clock,
    config::Config,
    expiry::Expiry,
    journal::{Batch, Journal},
    outbox::Outbox,
    respond::respond,
    words::{Counters, Facts, Peer, Word},
};
use crate::{
    tree::{Caller, Notification, Tree, WatcherId, Written, is_allowed},
    wire::{
        AuthId, Code, ConnectRequest, ConnectResponse, KeeperState, PASSWORD_LEN, Perms,
        ReplyHeader, Request, Response, WatcherEvent, frame, xid,
    },
};

/// A connection, as the server numbers them; also who watches.
pub(super) type ConnectionId = u64;

/// What connections tell the core.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A client says who it is.
    Connect { connection: ConnectionId, peer: SocketAddr, request: ConnectRequest, outbox: Outbox },
    /// It asks.
    Requests { connection: ConnectionId, requests: Vec<(i32, Request)>, arrived: Instant },
    /// It has taken something of what it left unread.
    CaughtUp { connection: ConnectionId },
    /// The connection has ended.
    Gone { connection: ConnectionId },
    /// An operator asks.
    Word { word: Word, reply: oneshot::Sender<String> },
}

/// How many messages one turn takes at most, so that answers go out while more comes in.
const TURN: usize = 256;

pub(super) struct Core {
    config: Arc<Config>,
    listen: SocketAddr,
    tree: Tree,
    journal: Option<Journal>,
    connections: HashMap<ConnectionId, Connection>,
    by_session: HashMap<i64, ConnectionId>,
    expiry: Expiry,
    next_session: i64,
    counters: Counters,
    /// Connections with something in their buffer, in order, so that a turn's end is the same every time.
    dirty: BTreeSet<ConnectionId>,
    /// What this turn will hand over.
    batch: Batch,
    since_snapshot: u64,
    /// How many messages were waiting when this turn began.
    outstanding: usize,
}

struct Connection {
    peer: SocketAddr,
    session: Option<i64>,
    ids: Vec<AuthId>,
    outbox: Outbox,
    buffer: BytesMut,
    /// Asked and not answered yet: while the peer leaves too much unread, the rest has to wait.
    asked: VecDeque<(i32, Request)>,
    received: u64,
    sent: u64,
}

impl Core {
    pub(super) fn new(
        config: Arc<Config>,
        listen: SocketAddr,
        mut tree: Tree,
        journal: Option<Journal>,
        since_snapshot: u64,
    ) -> Self {
        let wall_ms = clock::wall_ms();
        tree.raise_zxid(clock::first_zxid(wall_ms));
        let newest_session = tree.sessions().map(|session| session.id).max().unwrap_or(0);
        let mut expiry = Expiry::default();
        let now = clock::now();
        for session in tree.sessions() {
            expiry.track(session.id, millis(session.timeout_ms), now);
        }
        Self {
            config,
            listen,
            tree,
            journal,
            connections: HashMap::new(),
            by_session: HashMap::new(),
            expiry,
            next_session: clock::first_session(wall_ms).max(newest_session + 1),
            counters: Counters::default(),
            dirty: BTreeSet::new(),
            batch: Batch::default(),
            since_snapshot,
            outstanding: 0,
        }
    }

    /// Serves until told to stop, or until the journal cannot keep its promise any more.
    pub(super) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Inbound>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), crate::store::Error> {
        let mut sweep =
            interval_at(clock::now() + self.config.sweep_interval, self.config.sweep_interval);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut arrived = Vec::with_capacity(TURN);
        loop {
            let look = self.expiry.next_look();
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = disk_failed(self.journal.as_ref()) => break,
                () = async { sleep_until(look.expect("guarded")).await }, if look.is_some() => {
                    // Who was heard of while we waited, for a slow disk say, is not given up.
                    for _ in 0..inbox.len() {
                        let Ok(inbound) = inbox.try_recv() else { break };
                        self.take(inbound);
                    }
                    self.expire();
                }
                _ = sweep.tick() => self.sweep(),
                count = inbox.recv_many(&mut arrived, TURN) => {
                    if count == 0 {
                        break;
                    }
                    self.outstanding = inbox.len();
                    for inbound in arrived.drain(..) {
                        self.take(inbound);
                    }
                }
            }
            if !self.hand_over().await {
                break;
            }
        }
        // Letting go of the connections ends their tasks once everything is sent.
        self.connections.clear();
        match self.journal.take() {
            Some(journal) => journal.finish().await,
            None => Ok(()),
        }
    }

    fn take(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Connect { connection, peer, request, outbox } => {
                self.connect(connection, peer, &request, outbox);
            }
            Inbound::Requests { connection, requests, arrived } => {
                self.counters.received += requests.len() as u64;
                if let Some(known) = self.connections.get_mut(&connection) {
                    known.received += requests.len() as u64;
                    if let Some(session) = known.session {
                        self.expiry.touch(session, arrived);
                    }
                }
                let count = requests.len() as u64;
                self.answer_in_turn(connection, requests);
                let latency = clock::now().saturating_duration_since(arrived);
                self.counters.answered += count;
                self.counters.latency_sum += latency * count as u32;
                self.counters.latency_max = self.counters.latency_max.max(latency);
                let least = self.counters.latency_min.unwrap_or(latency);
                self.counters.latency_min = Some(least.min(latency));
            }
            Inbound::CaughtUp { connection } => self.answer_in_turn(connection, Vec::new()),
            Inbound::Gone { connection } => self.gone(connection),
            Inbound::Word { word, reply } => {
                let _ = reply.send(self.facts().answer(word));
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
        if request.last_zxid_seen > self.tree.zxid() {
            let (seen, ours) = (request.last_zxid_seen, self.tree.zxid());
            tracing::warn!(%peer, seen = format_args!("{seen:#x}"), ours = format_args!("{ours:#x}"),
                "refused: the client has seen transactions this server has not");
            outbox.cut();
            return;
        }
        let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64)
            .clamp(self.config.min_session_timeout, self.config.max_session_timeout);
        let timeout_ms = timeout.as_millis() as i32;
        let mut connection = Connection {
            peer,
            session: None,
            ids: vec![auth::address(peer.ip())],
            outbox,
            buffer: BytesMut::new(),
            asked: VecDeque::new(),
            received: 1,
            sent: 1,
        };
        self.counters.received += 1;
        let response = if request.session_id == 0 {
            if self.expiry.len() >= self.config.max_sessions {
                tracing::warn!(%peer, max_sessions = self.config.max_sessions, "refused: too many sessions");
                connection.outbox.cut();
                return;
            }
            let (session, password) = self.open_session(timeout_ms);
            self.bind(session, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: session,
                password,
                read_only: request.read_only.map(|_| false),
            }
        } else if self.tree.is_session(request.session_id, &request.password) {
            self.bind(request.session_id, id, timeout, &mut connection);
            ConnectResponse {
                protocol_version: 0,
                timeout_ms,
                session_id: request.session_id,
                password: request.password.clone(),
                read_only: request.read_only.map(|_| false),
            }
        } else {
            tracing::debug!(%peer, session = format_args!("{:#x}", request.session_id), "session is gone");
            ConnectResponse::expired(request.read_only)
        };
        self.counters.sent += 1;
        frame::write(&mut connection.buffer, |out| response.encode(out));
        let keep = connection.session.is_some();
        self.connections.insert(id, connection);
        self.dirty.insert(id);
        if !keep {
            self.let_go(id);
        }
    }

    fn open_session(&mut self, timeout_ms: i32) -> (i64, Bytes) {
        let session = self.next_session;
        self.next_session += 1;
        let password = Bytes::copy_from_slice(&rand::rng().random::<[u8; PASSWORD_LEN]>());
        let written =
            self.tree.open_session(session, timeout_ms, password.clone(), clock::wall_ms());
        self.record(written);
        (session, password)
    }

    /// The session now speaks through this connection; one it spoke through before is cut.
    fn bind(
        &mut self,
        session: i64,
        id: ConnectionId,
        timeout: Duration,
        connection: &mut Connection,
    ) {
        connection.session = Some(session);
        self.expiry.track(session, timeout, clock::now());
        if let Some(before) = self.by_session.insert(session, id) {
            self.cut(before);
        }
    }

    /// Answers what was asked, in order, until the peer leaves too much unread: it is slowed down, not served into memory.
    fn answer_in_turn(&mut self, id: ConnectionId, requests: Vec<(i32, Request)>) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.asked.extend(requests);
        }
        while let Some(connection) = self.connections.get_mut(&id)
            && !connection.asked.is_empty()
            && !connection.outbox.is_behind(connection.buffer.len())
            && let Some((xid, request)) = connection.asked.pop_front()
        {
            self.answer(id, xid, &request);
        }
    }

    fn answer(&mut self, id: ConnectionId, xid: i32, request: &Request) {
        // A connection that was cut or let go may still have requests on the way: nobody waits for them.
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(session) = connection.session else {
            return;
        };
        let caller = Caller { session, ids: &connection.ids };
        let (zxid, answer) = match request {
            Request::Auth { scheme, auth } => {
                let proved = auth::prove(scheme, auth, connection.peer.ip());
                let answer = match proved {
                    Some(proved) => {
                        if !connection.ids.contains(&proved) {
                            connection.ids.push(proved);
                        }
                        Ok(Response::Done)
                    }
                    None => Err(Code::AUTH_FAILED),
                };
                (self.tree.zxid(), answer)
            }
            Request::WhoAmI => {
                let ids = connection.ids.iter();
                let users = ids.map(|id| (id.scheme.clone(), auth::user(id).to_owned())).collect();
                (self.tree.zxid(), Ok(Response::WhoAmI(users)))
            }
            Request::CloseSession => {
                let written = self.tree.close_session(session, clock::wall_ms());
                let zxid = written.zxid;
                self.expiry.forget(session);
                self.record(written);
                (zxid, Ok(Response::Done))
            }
            request => {
                let now_ms = clock::wall_ms();
                let outcome = respond(&mut self.tree, caller, WatcherId(id), request, now_ms);
                let zxid =
                    outcome.written.as_ref().map_or(self.tree.zxid(), |written| written.zxid);
                self.tell(zxid, &outcome.missed);
                if let Some(written) = outcome.written {
                    self.record(written);
                }
                (zxid, outcome.answer)
            }
        };
        self.reply(id, xid, zxid, answer.as_ref());
        if matches!(request, Request::CloseSession) || answer == Err(Code::AUTH_FAILED) {
            self.let_go(id);
        }
    }

    fn reply(&mut self, id: ConnectionId, xid: i32, zxid: i64, answer: Result<&Response, &Code>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let code = answer.err().copied().unwrap_or(Code::OK);
        frame::write(&mut connection.buffer, |out| {
            ReplyHeader { xid, zxid, code }.encode(out);
            if let Ok(response) = answer {
                response.encode(out);
            }
        });
        connection.sent += 1;
        self.counters.sent += 1;
        self.dirty.insert(id);
    }

    /// A transaction happened: watchers hear of it, the log keeps it.
    fn record(&mut self, written: Written) {
        self.tell(written.zxid, &written.notifications);
        if let Some(transaction) = written.transaction.filter(|_| self.journal.is_some()) {
            let mut bytes = BytesMut::with_capacity(128);
            transaction.encode(&mut bytes);
            self.batch.records.push((transaction.zxid, bytes.freeze()));
            self.since_snapshot += 1;
        }
    }

    fn tell(&mut self, zxid: i64, notifications: &[Notification]) {
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
            frame::write(&mut connection.buffer, |out| {
                ReplyHeader { xid: xid::NOTIFICATION, zxid, code: Code::OK }.encode(out);
                event.encode(out);
            });
            connection.sent += 1;
            self.counters.sent += 1;
            self.dirty.insert(id);
        }
    }

    fn expire(&mut self) {
        for session in self.expiry.expired(clock::now()) {
            tracing::info!(session = format_args!("{session:#x}"), "session expired");
            let written = self.tree.close_session(session, clock::wall_ms());
            self.record(written);
            if let Some(id) = self.by_session.get(&session).copied() {
                self.cut(id);
            }
        }
    }

    fn sweep(&mut self) {
        for written in self.tree.sweep(clock::wall_ms()) {
            self.record(written);
        }
    }

    /// The connection ends once everything it was to hear is sent.
    fn let_go(&mut self, id: ConnectionId) {
        self.flush(id);
        self.gone(id);
    }

    /// The connection ends now.
    fn cut(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id) {
            connection.outbox.cut();
        }
        self.gone(id);
    }

    fn gone(&mut self, id: ConnectionId) {
        self.tree.forget_watcher(WatcherId(id));
        self.dirty.remove(&id);
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
                tracing::warn!(peer = %connection.peer, "cut: it leaves too much unread");
                self.cut(id);
            }
        }
    }

    /// Ends a turn; `false` when the journal has failed.
    async fn hand_over(&mut self) -> bool {
        for id in std::mem::take(&mut self.dirty) {
            self.flush(id);
        }
        let mut batch = std::mem::take(&mut self.batch);
        let Some(journal) = &self.journal else {
            batch.deliver();
            return true;
        };
        if self.since_snapshot >= self.config.snapshot_every {
            self.since_snapshot = 0;
            batch.snapshot = Some((self.tree.zxid(), self.tree.to_snapshot()));
        }
        batch.is_empty() || journal.write(batch).await
    }

    fn facts(&self) -> Facts<'_> {
        let peers = self.connections.values().map(|connection| Peer {
            address: connection.peer,
            session: connection.session,
            queued: connection.outbox.waiting() + connection.buffer.len(),
            received: connection.received,
            sent: connection.sent,
        });
        Facts {
            tree: &self.tree,
            config: &self.config,
            listen: self.listen,
            counters: self.counters,
            peers: peers.collect(),
            outstanding: self.outstanding,
        }
    }
}

/// Waits until the journal has stopped by itself.
async fn disk_failed(journal: Option<&Journal>) {
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
    use tokio::task::{JoinSet, yield_now};

    use super::*;
    use crate::server::outbox::outbox;

    #[tokio::test(start_paused = true)]
    async fn a_session_heard_of_while_the_server_was_busy_does_not_expire() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 4711));
        let mut core = Core::new(Arc::new(Config::ephemeral()), peer, Tree::new(), None, 0);
        let (outbox, _inbox) = outbox(1 << 20);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: 4000,
            session_id: 0,
            password: Bytes::new(),
            read_only: None,
        };
        core.take(Inbound::Connect { connection: 1, peer, request, outbox });
        let (sender, inbox) = mpsc::channel(8);
        let (_stop, stopped) = watch::channel(false);

        tokio::time::advance(Duration::from_secs(10)).await;
        let requests = vec![(xid::PING, Request::Ping)];
        let ping = Inbound::Requests { connection: 1, requests, arrived: clock::now() };
        sender.send(ping).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(core.run(inbox, stopped));
        yield_now().await;

        let (reply, answer) = oneshot::channel();
        sender.send(Inbound::Word { word: Word::Dump, reply }).await.unwrap();
        let dump = answer.await.unwrap();
        assert!(dump.contains("Sessions (1)"), "{dump}");
    }
}
