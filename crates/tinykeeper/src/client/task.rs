//! The task that owns the socket: it serves one connection until that is lost, then finds the next, until told to end.
//!
//! Order is its whole point. Requests are encoded in the order they were submitted; frames are dealt with one after the
//! other, each wholly before the next, so a notification is in its queues before a later answer resolves its future. When a
//! connection is lost the state changes first, then watches are told, then callers, so nobody who learns of the loss can still
//! find the client connected.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Sleep, sleep, sleep_until},
};

use super::{
    connection::Connection,
    dial::{AttemptError, Dialer, Established, Hello},
    error::{BoxError, Error},
    exchange::{Answer, Heard, Waiter},
    lease::Contacts,
    line::{Line, now},
    pause,
    session::{SessionState, Shared},
    watch::{GapCause, Watch},
    watches::Watches,
};
use crate::wire::{AddWatchMode, Request, WatcherType};

/// What callers want of the task.
#[derive(Debug)]
pub(super) enum Command {
    /// Send this, in this session if one is named.
    Call { request: Request, session: Option<i64>, reply: oneshot::Sender<Result<Answer, Error>> },
    /// Set a watch.
    Watch { path: String, mode: AddWatchMode, reply: oneshot::Sender<Result<Watch, Error>> },
    /// A watch was dropped.
    Unwatch { path: String, id: u64 },
    /// End the session.
    Close,
}

/// Why a connection is not served any more.
enum Ended {
    Lost(BoxError),
    /// Closed for good.
    Closed,
}

/// How a connection came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    First,
    Reattached,
    Renewed,
}

pub(super) struct Task {
    dialer: Arc<Dialer>,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// For the watches it hands out.
    back: mpsc::WeakUnboundedSender<Command>,
    watches: Watches,
    hello: Hello,
    /// The session [`Command::Call`] may name, and its timeout.
    session: i64,
    timeout: Duration,
    /// How many attempts failed since a connection was last good for something.
    failures: u32,
    /// Whose turn it is.
    turn: usize,
}

impl Task {
    pub(super) fn new(
        dialer: Arc<Dialer>,
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<Command>,
        back: mpsc::WeakUnboundedSender<Command>,
        first: &Established,
        turn: usize,
    ) -> Self {
        Self {
            watches: Watches::new(dialer.config.watch_queue),
            hello: Hello { session: first.session, password: first.password.clone(), last_zxid: 0 },
            session: first.session,
            timeout: first.timeout,
            failures: 0,
            turn,
            dialer,
            shared,
            commands,
            back,
        }
    }

    /// Runs until the client is closed or of no further use.
    pub(super) async fn run(mut self, first: Established) {
        let mut line = self.line(first.connection, first.asked_at);
        let mut arrival = Arrival::First;
        let end = loop {
            let since = now();
            match self.serve(line, arrival).await {
                Ended::Closed => break SessionState::Closed,
                Ended::Lost(cause) => {
                    tracing::warn!(session = %id(self.session), cause = %chain(&*cause), "connection lost");
                }
            }
            // A server that takes us in only to drop us must not keep us busy.
            if since.elapsed() > self.dialer.config.retry.base_sleep {
                self.failures = 0;
            } else {
                self.failures = self.failures.saturating_add(1);
            }
            match self.reconnect().await {
                ControlFlow::Continue(next) => (line, arrival) = next,
                ControlFlow::Break(end) => break end,
            }
        };
        self.finish(end);
    }

    /// Serves one connection until it is lost or the client is closed.
    async fn serve(&mut self, mut line: Line, arrival: Arrival) -> Ended {
        self.greet(&mut line, arrival);
        let mut ended = self.converse(&mut line).await;
        if line.closing.is_some() {
            // Lost or not, this was the last connection.
            ended = Ended::Closed;
        }
        match ended {
            Ended::Closed => self.shared.ended(SessionState::Closed),
            Ended::Lost(_) => {
                self.shared.suspended();
                self.watches.suspend();
            }
        }
        let written = line.connection.written();
        for (waiter, fate) in line.exchange.abandon(written) {
            fail(waiter, fate);
        }
        ended
    }

    /// What comes before anything callers ask.
    fn greet(&mut self, line: &mut Line, arrival: Arrival) {
        let cause = match arrival {
            Arrival::First => return,
            Arrival::Reattached => GapCause::Reconnected,
            Arrival::Renewed => GapCause::NewSession,
        };
        for set in self.watches.set_again(self.hello.last_zxid, self.dialer.config.max_frame) {
            let request = Request::SetWatches(set.clone());
            self.ask(line, &request, Waiter::Rewatch { set: Box::new(set), cause });
        }
        if arrival == Arrival::Reattached {
            // The server that took us up may be cut off from its leader; this finds out, and renews the lease if not.
            self.ask(line, &Request::Sync { path: "/".into() }, Waiter::Nobody);
        }
    }

    async fn converse(&mut self, line: &mut Line) -> Ended {
        let mut alarm = std::pin::pin!(sleep_until(line.next_deadline()));
        loop {
            // Whatever callers have ready leaves in one write.
            while line.accepts() {
                match self.commands.try_recv() {
                    Ok(command) => self.obey(line, command),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => self.begin_close(line),
                }
            }
            // The only deadline that can come nearer.
            if let Some(until) = line.closing.filter(|until| *until < alarm.deadline()) {
                alarm.as_mut().reset(until);
            }
            // Bytes before the alarm: after a standstill of ours the server's answers lie ready and prove that it lives.
            tokio::select! {
                biased;
                moved = line.connection.transfer() => {
                    match moved {
                        Ok(moved) => line.moved(moved),
                        Err(error) => return Ended::Lost(error.into()),
                    }
                    match self.hear(line) {
                        Ok(ControlFlow::Continue(())) => {}
                        Ok(ControlFlow::Break(())) => return Ended::Closed,
                        Err(cause) => return Ended::Lost(cause),
                    }
                }
                command = self.commands.recv(), if line.accepts() => match command {
                    Some(command) => self.obey(line, command),
                    None => self.begin_close(line),
                },
                () = alarm.as_mut() => {}
            }
            if let ControlFlow::Break(ended) = self.watch_time(line, alarm.as_mut()) {
                return ended;
            }
        }
    }

    /// Pings when it is time to, gives up when it is time to. The alarm may ring early: traffic only moves deadlines away.
    fn watch_time(
        &mut self,
        line: &mut Line,
        mut alarm: std::pin::Pin<&mut Sleep>,
    ) -> ControlFlow<Ended> {
        if !alarm.is_elapsed() {
            return ControlFlow::Continue(());
        }
        let now = now();
        if line.closing.is_some_and(|until| until <= now) {
            tracing::warn!(session = %id(self.session), "no answer to closing the session");
            return ControlFlow::Break(Ended::Closed);
        }
        if line.silent_until() <= now {
            let silent = now - line.last_received;
            let cause = format!("the server was silent for {silent:?}");
            return ControlFlow::Break(Ended::Lost(cause.into()));
        }
        if line.ping_at() <= now {
            self.ask(line, &Request::Ping, Waiter::Nobody);
            line.last_sent = now;
        }
        alarm.as_mut().reset(line.next_deadline());
        ControlFlow::Continue(())
    }

    /// Does what a caller wants, on a living connection.
    fn obey(&mut self, line: &mut Line, command: Command) {
        match command {
            Command::Call { request, session, reply } => {
                let waiter = Waiter::Caller(reply);
                match self.objection(&request, session) {
                    Some(error) => fail(waiter, error),
                    None => self.ask(line, &request, waiter),
                }
            }
            Command::Watch { path, mode, reply } => match self.watches.begin(&path, mode) {
                Ok(()) => {
                    let request = Request::AddWatch { path: path.clone(), mode };
                    self.ask(line, &request, Waiter::Watch { path, mode, reply });
                }
                Err(error) => fail(Waiter::Watch { path, mode, reply }, error),
            },
            Command::Unwatch { path, id } => {
                if self.watches.dropped(&path, id) {
                    // Of any kind: servers before 3.9 do not know the kinds of lasting watches here.
                    let request = Request::RemoveWatches { path, kind: WatcherType::Any };
                    self.ask(line, &request, Waiter::Nobody);
                }
            }
            Command::Close => self.begin_close(line),
        }
    }

    fn objection(&self, request: &Request, session: Option<i64>) -> Option<Error> {
        if session.is_some_and(|session| session != self.session) {
            return Some(Error::SessionExpired);
        }
        match request {
            Request::Exists { path, watch: true }
            | Request::GetData { path, watch: true }
            | Request::GetChildren { path, watch: true }
            | Request::GetChildrenStat { path, watch: true }
                if self.watches.covers(path) =>
            {
                Some(Error::WatchConflict { path: path.clone() })
            }
            _ => None,
        }
    }

    /// Ends the session after everything asked so far. Whatever is asked from now on fails.
    fn begin_close(&mut self, line: &mut Line) {
        if line.closing.is_none() {
            line.closing = Some(now() + self.dialer.config.connect_timeout);
            self.ask(line, &Request::CloseSession, Waiter::Close);
        }
    }

    fn ask(&mut self, line: &mut Line, request: &Request, waiter: Waiter) {
        let config = &self.dialer.config;
        // Read before the bytes leave, so that the lease can only come out short.
        let sent_at = (config.clock)();
        // What we ask on our own account is small, and must not fail here unnoticed.
        let limit = match waiter {
            Waiter::Caller(_) | Waiter::Watch { .. } => config.max_frame,
            Waiter::Rewatch { .. } | Waiter::Close | Waiter::Nobody => usize::MAX,
        };
        let begins = line.connection.position();
        let out = line.connection.output();
        let asked = line.exchange.ask(out, begins, request, waiter, sent_at, limit);
        if let Err((waiter, error)) = asked {
            if let Waiter::Watch { path, .. } = &waiter {
                self.watches.not_added(path);
            }
            fail(waiter, error);
        }
    }

    /// Deals with every frame that arrived, in order. Breaks when the session is closed.
    fn hear(&mut self, line: &mut Line) -> Result<ControlFlow<()>, BoxError> {
        let heard_at = (self.dialer.config.clock)();
        while let Some(frame) = line.connection.next_frame()? {
            match line.exchange.hear(frame)? {
                Heard::Notification(event) => {
                    self.watches.dispatch(&event);
                    if let Some(notifications) = &self.dialer.config.notifications {
                        // Whoever no longer listens does not want to know.
                        let _ = notifications.send(event);
                    }
                }
                Heard::Pong { sent_at } => {
                    line.contacts.heard(sent_at, heard_at);
                    self.shared.pong();
                }
                Heard::Answered { waiter, outcome, sent_at, from_leader, zxid } => {
                    if let Some(zxid) = zxid {
                        self.hello.last_zxid = self.hello.last_zxid.max(zxid);
                    }
                    if from_leader && let Some(since) = line.contacts.proven(sent_at) {
                        self.shared.renew(since);
                    }
                    line.contacts.heard(sent_at, heard_at);
                    if self.settle(waiter, outcome)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn settle(
        &mut self,
        waiter: Waiter,
        outcome: Result<Answer, Error>,
    ) -> Result<ControlFlow<()>, BoxError> {
        match waiter {
            // In each case: a caller who went away does not want to know.
            Waiter::Caller(reply) => {
                let _ = reply.send(outcome);
            }
            Waiter::Watch { path, mode, reply } => {
                let watch = match outcome {
                    Ok(_) => self.watches.added(&path).ok_or(Error::Unknown),
                    Err(error) => {
                        self.watches.not_added(&path);
                        Err(error)
                    }
                };
                let back = self.back.clone();
                let _ =
                    reply.send(watch.map(|(id, queue)| Watch::new(path, mode, id, queue, back)));
            }
            Waiter::Rewatch { set, cause } => match outcome {
                Ok(_) => self.watches.gap(&set, cause),
                // Watches that cannot be set would be silent for ever: better another server.
                Err(error) => return Err(format!("cannot set the watches again: {error}").into()),
            },
            Waiter::Close => return Ok(ControlFlow::Break(())),
            Waiter::Nobody => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Tries server after server until one serves us, in the same session or, if that is gone, in a new one.
    async fn reconnect(&mut self) -> ControlFlow<SessionState, (Line, Arrival)> {
        loop {
            let pause =
                pause::after(self.failures, self.dialer.servers(), self.dialer.config.retry);
            self.meanwhile(sleep(pause)).await?;
            let (dialer, hello, turn) = (Arc::clone(&self.dialer), self.hello.clone(), self.turn);
            self.turn = self.turn.wrapping_add(1);
            let attempt =
                self.meanwhile(async move { dialer.establish(turn, &hello).await }).await?;
            match attempt {
                Ok(established) => return ControlFlow::Continue(self.arrive(established)),
                Err(AttemptError::Expired { server }) => {
                    tracing::warn!(session = %id(self.session), server, "session lost");
                    self.shared.lost();
                    self.hello = Hello::new_session(self.hello.last_zxid);
                    // No call may name the lost session any more.
                    self.session = 0;
                }
                Err(AttemptError::AuthRefused { server, scheme }) => {
                    tracing::error!(server, scheme, "credentials refused");
                    return ControlFlow::Break(SessionState::AuthFailed);
                }
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    // Loud at first, then ever more seldom: this may go on for days.
                    if self.failures.is_power_of_two() {
                        tracing::warn!(failures = self.failures, cause = %chain(&error), "attempt failed");
                    } else {
                        tracing::debug!(failures = self.failures, cause = %chain(&error), "attempt failed");
                    }
                }
            }
        }
    }

    fn arrive(&mut self, established: Established) -> (Line, Arrival) {
        let Established { connection, server, session, password, timeout, asked_at } = established;
        tracing::info!(session = %id(session), server = %server.text, ?timeout, "connected");
        self.timeout = timeout;
        let line = self.line(connection, asked_at);
        if session == self.session {
            self.shared.reattached(timeout);
            return (line, Arrival::Reattached);
        }
        self.session = session;
        self.hello.session = session;
        self.hello.password = password;
        self.shared.renewed(session, timeout, asked_at);
        (line, Arrival::Renewed)
    }

    fn line(&self, connection: Connection, asked_at: Duration) -> Line {
        let lag = self.dialer.config.touch_lag.map(|lag| lag.min(self.timeout / 4));
        Line::new(connection, self.timeout, Contacts::new(asked_at, lag))
    }

    /// Waits for something while there is no connection: whatever callers ask fails at once.
    async fn meanwhile<T>(
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
                        self.watches.dropped(&path, id);
                    }
                    Some(Command::Call { session, reply, .. }) => {
                        let gone = session.is_some_and(|session| session != self.session);
                        let error = if gone { Error::SessionExpired } else { Error::NotSent };
                        fail(Waiter::Caller(reply), error);
                    }
                    Some(Command::Watch { path, mode, reply }) => {
                        fail(Waiter::Watch { path, mode, reply }, Error::NotSent);
                    }
                },
            }
        }
    }

    /// Tells everybody that nothing will follow.
    fn finish(&mut self, end: SessionState) {
        self.shared.ended(end);
        self.watches.close();
        self.commands.close();
        let error = Error::of(end);
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

// A runtime that shuts down, or a close that lost its patience, throws the task away: then too nobody may wait for ever.
impl Drop for Task {
    fn drop(&mut self) {
        if !self.shared.session().state.is_final() {
            self.finish(SessionState::Closed);
        }
    }
}

impl Error {
    /// Why nothing can be asked of a client in this final state.
    pub(super) fn of(end: SessionState) -> Self {
        match end {
            SessionState::AuthFailed => Error::AuthFailed,
            _ => Error::Closed,
        }
    }
}

/// Tells whoever waits; one who went away does not want to know.
fn fail(waiter: Waiter, error: Error) {
    match waiter {
        Waiter::Caller(reply) => {
            let _ = reply.send(Err(error));
        }
        Waiter::Watch { reply, .. } => {
            let _ = reply.send(Err(error));
        }
        Waiter::Rewatch { .. } | Waiter::Close | Waiter::Nobody => {}
    }
}

/// A session's id as ZooKeeper's own logs write it.
fn id(session: i64) -> String {
    format!("{session:#x}")
}

/// An error with all its causes in one line.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
