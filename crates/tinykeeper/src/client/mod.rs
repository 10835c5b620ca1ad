//! A ZooKeeper client: one connection, one ordered stream of replies and notifications.
//!
//! One task owns the socket. It sends requests in the order of the calls to [`Client::submit`], many in one write. It receives
//! replies and notifications in the order the server sent them, and delivers each before it processes the next. A notification
//! that precedes a reply is therefore in every matching [`Watch`] when the future of that reply resolves: a caller that awaits
//! its own write and then drains its watch has seen every change up to that write.
//!
//! Only the server decides whether a session is alive; [`SessionState`] is what this client knows about it:
//!
//! ```text
//!   connect() ──► Connected ──── socket lost, or silent for 2/3 of the timeout ───► Suspended
//!                   ▲  ▲                                                              │  │
//!                   │  └────────── a server resumes the session: same id ─────────────┘  │
//!                   └───────── new session, new id ◄── Lost ◄── a server reports expiry ─┘
//!
//!   any state ── close(), last handle dropped ──► Closed          any state ── credentials refused ──► AuthFailed
//! ```
//!
//! * **A request ends in one of three ways**: done, refused, or unknown. Unknown means that the request was sent and the
//!   connection was lost before the reply; only a read can tell whether it took effect. A request made while there is no
//!   connection fails at once, unsent.
//! * **The server stalls**: the client sends a ping when it has sent nothing for a third of the timeout. After two thirds
//!   without a byte received, it gives up the connection and tries the next server, without end, with jittered delays.
//! * **The client reconnects**: it sends its credentials, restores every watch, sends a `sync`, and only then sends requests of
//!   callers. Each watch reports [`WatchEvent::Suspended`] when the connection is lost and [`WatchEvent::Gap`] once it is
//!   restored. Changes in between are not reported, so a caller must read again after a gap.
//! * **The session expired**: the server has deleted its ephemeral nodes. The client opens a new session and restores the
//!   watches on it, with a gap. Use [`Client::call_in`] for requests that are valid in one session only.
//! * **This process stalls**: the client cannot notice that. [`Client::lease_deadline`] is the time until which the session may
//!   be trusted, on a clock that also advances while the machine sleeps. Code that relies on the session must check it first.

mod active;
mod backoff;
mod config;
mod connection;
mod dial;
mod error;
mod handle;
mod lease;
mod pending;
mod session;
mod task;
#[cfg(feature = "tls")]
mod tls;
mod typed;
mod watch;
mod watches;

#[cfg(feature = "tls")]
pub use self::tls::{Identity, Pem, TlsOptions};
pub use self::{
    config::{Clock, Config, Credentials, Retry, boot_clock},
    error::{BoxError, ConnectError, Error},
    handle::{Client, ResponseFuture},
    pending::Reply,
    session::{Session, SessionState},
    watch::{GapCause, Watch, WatchEvent},
};
