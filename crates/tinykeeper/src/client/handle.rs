//! The client as callers hold it.

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
    config::Config,
    dial::{AttemptError, Dialer, Established, Hello},
    error::{ConnectError, Error},
    exchange::Answer,
    pause,
    session::{Session, SessionState, Shared},
    task::{Command, Task, chain},
    watch::Watch,
};
use crate::wire::{AddWatchMode, Request};

/// A session with a ZooKeeper server or ensemble. Clones share it; the last one dropped closes it in the background.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    commands: mpsc::UnboundedSender<Command>,
    shared: Arc<Shared>,
    /// How long closing may take.
    patience: Duration,
    // The task ends by itself, in bounded time, once `commands` is dropped; `close` waits for it or ends it.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Client {
    /// Opens a session. Every server is tried, in rounds with pauses between them, as often as the configuration says.
    pub async fn connect(config: Config) -> Result<Self, ConnectError> {
        let dialer = Arc::new(Dialer::new(config)?);
        let (first, turn) = first_session(&dialer).await?;
        Ok(Self::start(dialer, first, turn))
    }

    /// What is asked through this goes out in the order in which it is asked. See [`Client::submit`].
    pub async fn call(&self, request: Request) -> Result<Answer, Error> {
        self.submit(request).await
    }

    /// The same, sent only while `session` is the current one; otherwise it fails with [`Error::SessionExpired`], unsent. For
    /// what makes sense in one session only: an ephemeral node, a claim.
    pub async fn call_in(&self, session: i64, request: Request) -> Result<Answer, Error> {
        self.submit_in(session, request).await
    }

    /// Queues a request at once, before this returns; requests leave in the order they were queued. Awaiting gives the answer;
    /// dropping the future does not take the request back.
    pub fn submit(&self, request: Request) -> InFlight {
        self.queue(None, request)
    }

    /// [`Client::submit`] for one session, as [`Client::call_in`].
    pub fn submit_in(&self, session: i64, request: Request) -> InFlight {
        self.queue(Some(session), request)
    }

    /// Sets a watch. From the moment this is answered it sees every change, until dropped, over reconnects and new sessions.
    pub async fn watch(&self, path: &str, mode: AddWatchMode) -> Result<Watch, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Watch { path: path.to_owned(), mode, reply });
        answer.await.unwrap_or_else(|_| Err(self.ended(Error::Unknown)))
    }

    /// The session as it is known now.
    pub fn session(&self) -> Session {
        self.inner.shared.session()
    }

    /// Tells every change of the session's state; of changes in quick succession only the last.
    pub fn states(&self) -> watch::Receiver<SessionState> {
        self.inner.shared.states()
    }

    /// Until when the session may be believed to live, on the clock of the configuration.
    ///
    /// It is the session's timeout after the *sending* of the newest contact the ensemble's leader must have heard of:
    /// something that was answered, followed — [`Config::touch_lag`] after that answer or later — by an answered request that
    /// had to pass the leader, such as a write, done or refused, or a `sync`. With no lag every such request counts itself.
    /// The session's creation counts at once; taking it up again counts once the `sync` sent right after is answered. Pings
    /// and reads are contacts but prove nothing: a server cut off from its leader goes on answering them after the leader has
    /// ended the session.
    pub fn lease_deadline(&self) -> Duration {
        self.session().lease_deadline
    }

    /// How many pings were answered.
    pub fn pongs(&self) -> u64 {
        self.inner.shared.pongs()
    }

    /// Ends the session, after everything submitted before was answered, and waits for that as long as connecting may take.
    /// Without a connection there is nobody to tell: the server ends the session when its timeout has passed.
    pub async fn close(&self) {
        self.send(Command::Close);
        let mut states = self.states();
        let closed = states.wait_for(|state| state.is_final());
        // The task keeps the same time; this is for a runtime that does not get round to it.
        let closed = timeout(self.inner.patience * 2, closed).await.is_ok();
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            if !closed {
                task.abort();
            }
            // It ended, or was ended: either way nothing of it is left after this.
            let _ = task.await;
        }
    }

    fn start(dialer: Arc<Dialer>, first: Established, turn: usize) -> Self {
        let shared = Arc::new(Shared::new(first.session, first.timeout, first.asked_at));
        let (commands, receiver) = mpsc::unbounded_channel();
        let patience = dialer.config.connect_timeout;
        tracing::info!(
            session = %format_args!("{:#x}", first.session),
            server = %first.server.text,
            timeout = ?first.timeout,
            "connected"
        );
        let back = commands.downgrade();
        let task = Task::new(dialer, Arc::clone(&shared), receiver, back, &first, turn);
        #[expect(
            clippy::disallowed_methods,
            reason = "the handle owns this task: it ends, in bounded time, when the last handle goes"
        )]
        let task = tokio::spawn(task.run(first));
        Self { inner: Arc::new(Inner { commands, shared, patience, task: Mutex::new(Some(task)) }) }
    }

    fn queue(&self, session: Option<i64>, request: Request) -> InFlight {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Call { request, session, reply });
        InFlight { answer }
    }

    /// Hands a command to the task, or tells its sender that there is none.
    fn send(&self, command: Command) {
        let Err(mpsc::error::SendError(command)) = self.inner.commands.send(command) else {
            return;
        };
        let error = self.ended(Error::Closed);
        // Whoever went away does not want to know.
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

    fn ended(&self, otherwise: Error) -> Error {
        match self.session().state {
            state if state.is_final() => Error::of(state),
            _ => otherwise,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.session()).finish()
    }
}

/// A request on its way: a future of its answer.
#[derive(Debug)]
#[must_use = "the request is sent, but only awaiting tells its outcome"]
pub struct InFlight {
    answer: oneshot::Receiver<Result<Answer, Error>>,
}

impl Future for InFlight {
    type Output = Result<Answer, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The task answers everything before it ends; if the runtime threw it away, nobody knows what became of this.
        Poll::Ready(ready!(Pin::new(&mut self.answer).poll(context)).unwrap_or(Err(Error::Unknown)))
    }
}

/// The first session, and whose turn is next.
async fn first_session(dialer: &Dialer) -> Result<(Established, usize), ConnectError> {
    let retry = dialer.config.retry;
    let rounds = retry.max_retries.saturating_add(1);
    let servers = u32::try_from(dialer.servers()).unwrap_or(u32::MAX);
    let mut failures: u32 = 0;
    let mut turn = 0;
    let mut only_tls = true;
    loop {
        let error = match dialer.establish(turn, &Hello::new_session(0)).await {
            Ok(established) => return Ok((established, turn + 1)),
            Err(AttemptError::AuthRefused { server, scheme }) => {
                return Err(ConnectError::AuthRefused { server, scheme });
            }
            Err(error) => error,
        };
        tracing::debug!(cause = %chain(&error), "attempt failed");
        turn += 1;
        failures = failures.saturating_add(1);
        only_tls &= is_tls(&error);
        // Certificates do not get better by waiting.
        if only_tls && failures >= servers {
            return Err(ConnectError::Tls { source: error.into() });
        }
        if failures / servers >= rounds {
            let servers = dialer.config.servers.join(", ");
            return Err(ConnectError::Unreachable { servers, rounds, source: error.into() });
        }
        sleep(pause::after(failures, dialer.servers(), retry)).await;
    }
}

#[cfg(feature = "tls")]
fn is_tls(error: &AttemptError) -> bool {
    matches!(error, AttemptError::Tls { source, .. } if super::tls::is_tls_problem(source))
}

#[cfg(not(feature = "tls"))]
fn is_tls(_: &AttemptError) -> bool {
    false
}
