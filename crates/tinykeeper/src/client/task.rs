//! The task that owns the socket. It serves one connection until that is lost, then connects again, until the client is closed.
//!
//! The task guarantees order. It encodes requests in the order they were submitted and processes frames one after the other,
//! each completely before the next, so a notification is in its queues before a later reply resolves its future. When a
//! connection is lost, the state changes first, then the watches report it, then pending requests fail, so a caller that
//! learns of the loss never finds the client connected.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Sleep, sleep, sleep_until},
};

use super::{
    active::{ActiveConnection, now},
    backoff,
    connection::Connection,
    dial::{DialError, Dialer, EstablishedConnection, SessionRequest},
    error::{BoxError, Error},
    lease::Contacts,
    pending::{Incoming, Reply, Waiter},
    session::{SessionState, SharedSession},
    watch::{GapCause, Watch},
    watches::Watches,
};
use crate::wire::{AddWatchMode, Request, WatcherType};

/// A command of a handle to the task.
#[derive(Debug)]
pub(super) enum Command {
    /// Send a request, only in `session` if given.
    Call {
        request: Request,
        session: Option<i64>,
        reply: oneshot::Sender<Result<Reply, Error>>,
    },
    Watch {
        path: String,
        mode: AddWatchMode,
        reply: oneshot::Sender<Result<Watch, Error>>,
    },
    /// A watch was dropped.
    Unwatch {
        path: String,
        id: u64,
    },
    Close,
}

/// Why the task stopped serving a connection.
enum ServeEnd {
    Lost(BoxError),
    /// The client is closed.
    Closed,
}

/// The session of a connection, compared with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionKind {
    First,
    Resumed,
    NewSession,
}

pub(super) struct ClientTask {
    dialer: Arc<Dialer>,
    shared: Arc<SharedSession>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Sender for the watches that the task creates.
    sender: mpsc::WeakUnboundedSender<Command>,
    watches: Watches,
    session_request: SessionRequest,
    /// The current session, which [`Command::Call`] may name; zero if it is lost.
    session: i64,
    timeout: Duration,
    /// Consecutive failed attempts; a connection that ends soon counts as one.
    failures: u32,
    /// Index of the server to try next.
    next_server: usize,
}

impl ClientTask {
    pub(super) fn new(
        dialer: Arc<Dialer>,
        shared: Arc<SharedSession>,
        commands: mpsc::UnboundedReceiver<Command>,
        sender: mpsc::WeakUnboundedSender<Command>,
        first: &EstablishedConnection,
        next_server: usize,
    ) -> Self {
        Self {
            watches: Watches::new(dialer.config.watch_queue),
            session_request: SessionRequest {
                session: first.session,
                password: first.password.clone(),
                last_zxid: 0,
            },
            session: first.session,
            timeout: first.timeout,
            failures: 0,
            next_server,
            dialer,
            shared,
            commands,
            sender,
        }
    }

    /// Runs until the client is closed or its credentials are refused.
    pub(super) async fn run(mut self, first: EstablishedConnection) {
        let mut active = self.activate(first.connection, first.requested_at);
        let mut kind = ConnectionKind::First;
        let end = loop {
            let since = now();
            match self.serve(active, kind).await {
                ServeEnd::Closed => break SessionState::Closed,
                ServeEnd::Lost(cause) => {
                    tracing::warn!(session = %id(self.session), error = %error_chain(&*cause), "connection lost");
                }
            }
            // A server that accepts connections only to drop them must not cause a busy loop.
            if since.elapsed() > self.dialer.config.retry.base_sleep {
                self.failures = 0;
            } else {
                self.failures = self.failures.saturating_add(1);
            }
            match self.reconnect().await {
                ControlFlow::Continue(next) => (active, kind) = next,
                ControlFlow::Break(end) => break end,
            }
        };
        self.finish(end);
    }

    /// Serves one connection until it is lost or the client is closed.
    async fn serve(&mut self, mut active: ActiveConnection, kind: ConnectionKind) -> ServeEnd {
        self.restore(&mut active, kind);
        let mut ended = self.drive(&mut active).await;
        if active.close_deadline.is_some() {
            // The client is closing, so a lost connection is not replaced.
            ended = ServeEnd::Closed;
        }
        match ended {
            ServeEnd::Closed => self.shared.mark_final(SessionState::Closed),
            ServeEnd::Lost(_) => {
                self.shared.mark_suspended();
                self.watches.suspend();
            }
        }
        let written = active.connection.written();
        for (waiter, error) in active.pending.fail_all(written) {
            fail(waiter, error);
        }
        ended
    }

    /// Restores the watches and checks the session before requests of callers are sent.
    fn restore(&mut self, active: &mut ActiveConnection, kind: ConnectionKind) {
        let cause = match kind {
            ConnectionKind::First => return,
            ConnectionKind::Resumed => GapCause::Reconnected,
            ConnectionKind::NewSession => GapCause::NewSession,
        };
        for set in self
            .watches
            .restore_requests(self.session_request.last_zxid, self.dialer.config.max_frame)
        {
            let request = Request::SetWatches(set.clone());
            self.send(active, &request, Waiter::RestoreWatches { set: Box::new(set), cause });
        }
        if kind == ConnectionKind::Resumed {
            // The server that resumed the session may be partitioned from its leader. The sync renews the lease only if the leader
            // processes it.
            self.send(active, &Request::Sync { path: "/".into() }, Waiter::None);
        }
    }

    /// Sends requests and processes frames until the connection is lost or the client is closed.
    async fn drive(&mut self, active: &mut ActiveConnection) -> ServeEnd {
        let mut alarm = std::pin::pin!(sleep_until(active.next_deadline()));
        loop {
            // Requests that are ready are sent in one write.
            while active.accepts_requests() {
                match self.commands.try_recv() {
                    Ok(command) => self.execute(active, command),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => self.begin_close(active),
                }
            }
            // The close deadline is the only one that can move closer.
            if let Some(until) = active.close_deadline.filter(|until| *until < alarm.deadline()) {
                alarm.as_mut().reset(until);
            }
            // Bytes before the alarm: if this process stalled, replies of the server may be waiting and prove that it is alive.
            tokio::select! {
                biased;
                transfer = active.connection.transfer() => {
                    match transfer {
                        Ok(transfer) => active.record(transfer),
                        Err(error) => return ServeEnd::Lost(error.into()),
                    }
                    match self.process_frames(active) {
                        Ok(ControlFlow::Continue(())) => {}
                        Ok(ControlFlow::Break(())) => return ServeEnd::Closed,
                        Err(cause) => return ServeEnd::Lost(cause),
                    }
                }
                command = self.commands.recv(), if active.accepts_requests() => match command {
                    Some(command) => self.execute(active, command),
                    None => self.begin_close(active),
                },
                () = alarm.as_mut() => {}
            }
            if let ControlFlow::Break(ended) = self.check_deadlines(active, alarm.as_mut()) {
                return ended;
            }
        }
    }

    /// Pings or gives up the connection when the deadline for it has passed. The alarm may fire early, because traffic moves
    /// deadlines to later times.
    fn check_deadlines(
        &mut self,
        active: &mut ActiveConnection,
        mut alarm: std::pin::Pin<&mut Sleep>,
    ) -> ControlFlow<ServeEnd> {
        if !alarm.is_elapsed() {
            return ControlFlow::Continue(());
        }
        let now = now();
        if active.close_deadline.is_some_and(|until| until <= now) {
            tracing::warn!(session = %id(self.session), "no reply to closing the session");
            return ControlFlow::Break(ServeEnd::Closed);
        }
        if active.give_up_at() <= now {
            let silent = now - active.last_received;
            let cause = format!("the server was silent for {silent:?}");
            return ControlFlow::Break(ServeEnd::Lost(cause.into()));
        }
        if active.ping_at() <= now {
            self.send(active, &Request::Ping, Waiter::None);
            active.last_sent = now;
        }
        alarm.as_mut().reset(active.next_deadline());
        ControlFlow::Continue(())
    }

    /// Executes a command on an active connection.
    fn execute(&mut self, active: &mut ActiveConnection, command: Command) {
        match command {
            Command::Call { request, session, reply } => {
                let waiter = Waiter::Caller(reply);
                match self.rejection(&request, session) {
                    Some(error) => fail(waiter, error),
                    None => self.send(active, &request, waiter),
                }
            }
            Command::Watch { path, mode, reply } => match self.watches.begin_add(&path, mode) {
                Ok(()) => {
                    let request = Request::AddWatch { path: path.clone(), mode };
                    self.send(active, &request, Waiter::Watch { path, mode, reply });
                }
                Err(error) => fail(Waiter::Watch { path, mode, reply }, error),
            },
            Command::Unwatch { path, id } => {
                if self.watches.remove(&path, id) {
                    // Kind `Any`, because servers before 3.9 do not accept the persistent kinds here.
                    let request = Request::RemoveWatches { path, kind: WatcherType::Any };
                    self.send(active, &request, Waiter::None);
                }
            }
            Command::Close => self.begin_close(active),
        }
    }

    /// Why a request must not be sent, if there is a reason.
    fn rejection(&self, request: &Request, session: Option<i64>) -> Option<Error> {
        if session.is_some_and(|session| session != self.session) {
            return Some(Error::SessionExpired);
        }
        match request {
            Request::Exists { path, watch: true }
            | Request::GetData { path, watch: true }
            | Request::GetChildren { path, watch: true }
            | Request::GetChildrenStat { path, watch: true }
                if self.watches.contains(path) =>
            {
                Some(Error::WatchConflict { path: path.clone() })
            }
            _ => None,
        }
    }

    /// Closes the session after all requests sent so far. Later requests fail.
    fn begin_close(&mut self, active: &mut ActiveConnection) {
        if active.close_deadline.is_none() {
            active.close_deadline = Some(now() + self.dialer.config.connect_timeout);
            self.send(active, &Request::CloseSession, Waiter::Close);
        }
    }

    fn send(&mut self, active: &mut ActiveConnection, request: &Request, waiter: Waiter) {
        let config = &self.dialer.config;
        // Read before the bytes are sent, so that the lease can only be too short.
        let sent_at = (config.clock)();
        // Requests of the client itself are small, and must not fail here unnoticed.
        let limit = match waiter {
            Waiter::Caller(_) | Waiter::Watch { .. } => config.max_frame,
            Waiter::RestoreWatches { .. } | Waiter::Close | Waiter::None => usize::MAX,
        };
        let offset = active.connection.position();
        let out = active.connection.output();
        let result = active.pending.push(out, offset, request, waiter, sent_at, limit);
        if let Err((waiter, error)) = result {
            if let Waiter::Watch { path, .. } = &waiter {
                self.watches.cancel_add(path);
            }
            fail(waiter, error);
        }
    }

    /// Processes every frame that arrived, in order. Breaks when the session is closed.
    fn process_frames(
        &mut self,
        active: &mut ActiveConnection,
    ) -> Result<ControlFlow<()>, BoxError> {
        let received_at = (self.dialer.config.clock)();
        while let Some(frame) = active.connection.next_frame()? {
            match active.pending.receive(frame)? {
                Incoming::Notification(event) => {
                    self.watches.dispatch(&event);
                    if let Some(notifications) = &self.dialer.config.notifications {
                        // The receiver may have been dropped.
                        let _ = notifications.send(event);
                    }
                }
                Incoming::Pong { sent_at } => {
                    active.contacts.record(sent_at, received_at);
                    self.shared.record_pong();
                }
                Incoming::Reply { waiter, outcome, sent_at, confirmed_by_leader, zxid } => {
                    if let Some(zxid) = zxid {
                        self.session_request.last_zxid = self.session_request.last_zxid.max(zxid);
                    }
                    if confirmed_by_leader && let Some(since) = active.contacts.confirm(sent_at) {
                        self.shared.renew_lease(since);
                    }
                    active.contacts.record(sent_at, received_at);
                    if self.complete(waiter, outcome)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes the result of a request to its waiter. Breaks when the session is closed.
    fn complete(
        &mut self,
        waiter: Waiter,
        outcome: Result<Reply, Error>,
    ) -> Result<ControlFlow<()>, BoxError> {
        match waiter {
            // The receiver of a reply may have been dropped.
            Waiter::Caller(reply) => {
                let _ = reply.send(outcome);
            }
            Waiter::Watch { path, mode, reply } => {
                let watch = match outcome {
                    Ok(_) => self.watches.complete_add(&path).ok_or(Error::Unknown),
                    Err(error) => {
                        self.watches.cancel_add(&path);
                        Err(error)
                    }
                };
                let back = self.sender.clone();
                let _ =
                    reply.send(watch.map(|(id, queue)| Watch::new(path, mode, id, queue, back)));
            }
            Waiter::RestoreWatches { set, cause } => match outcome {
                Ok(_) => self.watches.report_gap(&set, cause),
                // A watch that is not restored would never report anything, so another server is tried.
                Err(error) => return Err(format!("cannot restore the watches: {error}").into()),
            },
            Waiter::Close => return Ok(ControlFlow::Break(())),
            Waiter::None => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Tries the servers in turn until one resumes the session or, if it has expired, opens a new one.
    async fn reconnect(&mut self) -> ControlFlow<SessionState, (ActiveConnection, ConnectionKind)> {
        loop {
            let delay =
                backoff::delay(self.failures, self.dialer.server_count(), self.dialer.config.retry);
            self.while_disconnected(sleep(delay)).await?;
            let (dialer, request, server) =
                (Arc::clone(&self.dialer), self.session_request.clone(), self.next_server);
            self.next_server = self.next_server.wrapping_add(1);
            let attempt =
                self.while_disconnected(async move { dialer.dial(server, &request).await }).await?;
            match attempt {
                Ok(established) => return ControlFlow::Continue(self.adopt(established)),
                Err(DialError::Expired { server }) => {
                    tracing::warn!(session = %id(self.session), server, "session lost");
                    self.shared.mark_lost();
                    self.session_request =
                        SessionRequest::new_session(self.session_request.last_zxid);
                    // From now on calls that name the lost session fail.
                    self.session = 0;
                }
                Err(DialError::AuthRefused { server, scheme }) => {
                    tracing::error!(server, scheme, "credentials refused");
                    return ControlFlow::Break(SessionState::AuthFailed);
                }
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    // Warns with decreasing frequency, because this may continue for days.
                    if self.failures.is_power_of_two() {
                        tracing::warn!(failures = self.failures, error = %error_chain(&error), "connection attempt failed");
                    } else {
                        tracing::debug!(failures = self.failures, error = %error_chain(&error), "connection attempt failed");
                    }
                }
            }
        }
    }

    /// Takes over a new connection and updates the session.
    fn adopt(&mut self, established: EstablishedConnection) -> (ActiveConnection, ConnectionKind) {
        let EstablishedConnection { connection, server, session, password, timeout, requested_at } =
            established;
        tracing::info!(session = %id(session), server = %server.text, ?timeout, "connected");
        self.timeout = timeout;
        let active = self.activate(connection, requested_at);
        if session == self.session {
            self.shared.mark_resumed(timeout);
            return (active, ConnectionKind::Resumed);
        }
        self.session = session;
        self.session_request.session = session;
        self.session_request.password = password;
        self.shared.replace(session, timeout, requested_at);
        (active, ConnectionKind::NewSession)
    }

    fn activate(&self, connection: Connection, requested_at: Duration) -> ActiveConnection {
        let lag = self.dialer.config.touch_lag.map(|lag| lag.min(self.timeout * 5 / 16));
        ActiveConnection::new(connection, self.timeout, Contacts::new(requested_at, lag))
    }

    /// Waits for `future` while there is no connection. Requests of callers fail at once.
    async fn while_disconnected<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> ControlFlow<SessionState, T> {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                biased;
                output = future.as_mut() => return ControlFlow::Continue(output),
                command = self.commands.recv() => match command {
                    None | Some(Command::Close) => return ControlFlow::Break(SessionState::Closed),
                    Some(Command::Unwatch { path, id }) => {
                        self.watches.remove(&path, id);
                    }
                    Some(Command::Call { session, reply, .. }) => {
                        let is_expired = session.is_some_and(|session| session != self.session);
                        let error = if is_expired { Error::SessionExpired } else { Error::NotSent };
                        fail(Waiter::Caller(reply), error);
                    }
                    Some(Command::Watch { path, mode, reply }) => {
                        fail(Waiter::Watch { path, mode, reply }, Error::NotSent);
                    }
                },
            }
        }
    }

    /// Ends the session, closes the watches and fails all queued commands.
    fn finish(&mut self, end: SessionState) {
        self.shared.mark_final(end);
        self.watches.close();
        self.commands.close();
        let error = Error::from_final_state(end);
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Call { reply, .. } => fail(Waiter::Caller(reply), error.clone()),
                Command::Watch { path, mode, reply } => {
                    fail(Waiter::Watch { path, mode, reply }, error.clone());
                }
                Command::Unwatch { .. } | Command::Close => {}
            }
        }
    }
}

// A runtime that shuts down, or a `close` that timed out, drops the task. Callers must not wait forever then either.
impl Drop for ClientTask {
    fn drop(&mut self) {
        if !self.shared.session().state.is_final() {
            self.finish(SessionState::Closed);
        }
    }
}

impl Error {
    /// The error for requests to a client in this final state.
    pub(super) fn from_final_state(state: SessionState) -> Self {
        match state {
            SessionState::AuthFailed => Error::AuthFailed,
            _ => Error::Closed,
        }
    }
}

/// Passes an error to the waiter, whose receiver may have been dropped.
fn fail(waiter: Waiter, error: Error) {
    match waiter {
        Waiter::Caller(reply) => {
            let _ = reply.send(Err(error));
        }
        Waiter::Watch { reply, .. } => {
            let _ = reply.send(Err(error));
        }
        Waiter::RestoreWatches { .. } | Waiter::Close | Waiter::None => {}
    }
}

/// A session id in the format of ZooKeeper's logs.
fn id(session: i64) -> String {
    format!("{session:#x}")
}

/// An error with all its causes in one line.
pub(super) fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
