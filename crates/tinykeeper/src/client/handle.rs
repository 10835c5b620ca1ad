//! The public handle of a client.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    backoff,
    config::Config,
    dial::{DialError, Dialer, EstablishedConnection, SessionRequest},
    error::{ConnectError, Error},
    pending::Reply,
    session::{Session, SessionState, SharedSession},
    task::{ClientTask, Command, error_chain},
    watch::Watch,
};
use crate::wire::{AddWatchMode, Request};

/// A client with one session at a ZooKeeper server or ensemble. Clones share the session; dropping the last one closes it in
/// the background.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    commands: mpsc::UnboundedSender<Command>,
    shared: Arc<SharedSession>,
    close_timeout: Duration,
    // The task ends by itself, in bounded time, once `commands` is dropped; `close` waits for it or aborts it.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Client {
    /// Opens a session. Tries every server, in rounds with delays between them, as often as [`Config::retry`] allows.
    pub async fn connect(config: Config) -> Result<Self, ConnectError> {
        let dialer = Arc::new(Dialer::new(config)?);
        let (first, next_server) = open_first_session(&dialer).await?;
        Ok(Self::start(dialer, first, next_server))
    }

    /// Sends a request and waits for its reply. Requests are sent in the order of the calls; see [`Client::submit`].
    pub async fn call(&self, request: Request) -> Result<Reply, Error> {
        self.submit(request).await
    }

    /// Like [`Client::call`], but sent only while `session` is the current one; otherwise it fails with
    /// [`Error::SessionExpired`], unsent. For requests that are valid in one session only, such as creating an ephemeral node.
    pub async fn call_in(&self, session: i64, request: Request) -> Result<Reply, Error> {
        self.submit_in(session, request).await
    }

    /// Queues a request before returning; requests are sent in the order they were queued. Dropping the future does not cancel
    /// the request.
    pub fn submit(&self, request: Request) -> ResponseFuture {
        self.queue(None, request)
    }

    /// Like [`Client::submit`], but for one session only, as [`Client::call_in`].
    pub fn submit_in(&self, session: i64, request: Request) -> ResponseFuture {
        self.queue(Some(session), request)
    }

    /// Sets a watch. Once this returns, the watch reports changes until it is dropped, across reconnects and new sessions.
    pub async fn watch(&self, path: &str, mode: AddWatchMode) -> Result<Watch, Error> {
        let (reply, receiver) = oneshot::channel();
        self.send(Command::Watch { path: path.to_owned(), mode, reply });
        receiver.await.unwrap_or_else(|_| Err(self.final_error_or(Error::Unknown)))
    }

    /// The current state of the session.
    pub fn session(&self) -> Session {
        self.inner.shared.session()
    }

    /// A receiver of the session's state; of changes in quick succession it sees only the last.
    pub fn states(&self) -> watch::Receiver<SessionState> {
        self.inner.shared.states()
    }

    /// The time until which the session may be trusted to be alive, on the configured clock.
    ///
    /// The lease ends the session timeout after the *sending* of the newest contact that the ensemble's leader must know of. A
    /// contact is a request with a reply. The leader must know of it once a second request that the leader processes (a write,
    /// done or refused, or a `sync`) was sent at least [`Config::touch_lag`] after the reply to the first and has a reply
    /// itself. Without a lag every request that the leader processes counts by itself. The creation of the session counts at
    /// once; resuming it counts once the `sync` sent right after it has a reply. Pings and reads are contacts but prove
    /// nothing: a server that is partitioned from its leader still replies to them after the leader has ended the session.
    pub fn lease_deadline(&self) -> Duration {
        self.session().lease_deadline
    }

    /// Number of pings with a reply.
    pub fn pongs(&self) -> u64 {
        self.inner.shared.pongs()
    }

    /// Closes the session after all requests submitted before have their replies, and waits for that up to
    /// [`Config::connect_timeout`]. Without a connection the server ends the session itself when its timeout has passed.
    pub async fn close(&self) {
        self.send(Command::Close);
        let mut states = self.states();
        let closed = states.wait_for(|state| state.is_final());
        // The task has the same time limit; this one is for a runtime that does not run the task.
        let closed = timeout(self.inner.close_timeout * 2, closed).await.is_ok();
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            if !closed {
                task.abort();
            }
            // The task has ended or was aborted; after this nothing of it is left.
            let _ = task.await;
        }
    }

    fn start(dialer: Arc<Dialer>, first: EstablishedConnection, next_server: usize) -> Self {
        let shared = Arc::new(SharedSession::new(first.session, first.timeout, first.requested_at));
        let (commands, receiver) = mpsc::unbounded_channel();
        let close_timeout = dialer.config.connect_timeout;
        tracing::info!(
            session = %format_args!("{:#x}", first.session),
            server = %first.server.text,
            timeout = ?first.timeout,
            "connected"
        );
        let sender = commands.downgrade();
        let task =
            ClientTask::new(dialer, Arc::clone(&shared), receiver, sender, &first, next_server);
        #[expect(
            clippy::disallowed_methods,
            reason = "the handle owns this task: it ends, in bounded time, when the last handle is dropped"
        )]
        let task = tokio::spawn(task.run(first));
        let task = Mutex::new(Some(task));
        Self { inner: Arc::new(Inner { commands, shared, close_timeout, task }) }
    }

    fn queue(&self, session: Option<i64>, request: Request) -> ResponseFuture {
        let (reply, receiver) = oneshot::channel();
        self.send(Command::Call { request, session, reply });
        ResponseFuture { receiver }
    }

    /// Sends a command to the task, or fails it if the task has ended.
    fn send(&self, command: Command) {
        let Err(mpsc::error::SendError(command)) = self.inner.commands.send(command) else {
            return;
        };
        let error = self.final_error_or(Error::Closed);
        // A caller that dropped its receiver needs no reply.
        match command {
            Command::Call { reply, .. } => {
                let _ = reply.send(Err(error));
            }
            Command::Watch { reply, .. } => {
                let _ = reply.send(Err(error));
            }
            Command::Unwatch { .. } | Command::Close => {}
        }
    }

    fn final_error_or(&self, default: Error) -> Error {
        match self.session().state {
            state if state.is_final() => Error::from_final_state(state),
            _ => default,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.session()).finish()
    }
}

/// The future of the reply to a submitted request.
#[derive(Debug)]
#[must_use = "the request is sent, but only awaiting tells its outcome"]
pub struct ResponseFuture {
    receiver: oneshot::Receiver<Result<Reply, Error>>,
}

impl Future for ResponseFuture {
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The task completes every request before it ends. If the runtime dropped the task, the outcome is unknown.
        let result = ready!(Pin::new(&mut self.receiver).poll(context));
        Poll::Ready(result.unwrap_or(Err(Error::Unknown)))
    }
}

/// Opens the first session; returns its connection and the index of the server to try next.
async fn open_first_session(
    dialer: &Dialer,
) -> Result<(EstablishedConnection, usize), ConnectError> {
    let retry = dialer.config.retry;
    let rounds = retry.max_retries.saturating_add(1);
    let servers = u32::try_from(dialer.server_count()).unwrap_or(u32::MAX);
    let mut failures: u32 = 0;
    let mut server = 0;
    let mut only_tls = true;
    loop {
        let error = match dialer.dial(server, &SessionRequest::new_session(0)).await {
            Ok(established) => return Ok((established, server + 1)),
            Err(DialError::AuthRefused { server, scheme }) => {
                return Err(ConnectError::AuthRefused { server, scheme });
            }
            Err(error) => error,
        };
        tracing::debug!(error = %error_chain(&error), "connection attempt failed");
        server += 1;
        failures = failures.saturating_add(1);
        only_tls &= is_tls(&error);
        // Waiting does not fix certificates.
        if only_tls && failures >= servers {
            return Err(ConnectError::Tls { source: error.into() });
        }
        if failures / servers >= rounds {
            let servers = dialer.config.servers.join(", ");
            return Err(ConnectError::Unreachable { servers, rounds, source: error.into() });
        }
        sleep(backoff::delay(failures, dialer.server_count(), retry)).await;
    }
}

#[cfg(feature = "tls")]
fn is_tls(error: &DialError) -> bool {
    matches!(error, DialError::Tls { source, .. } if super::tls::is_tls_problem(source))
}

#[cfg(not(feature = "tls"))]
fn is_tls(_: &DialError) -> bool {
    false
}
