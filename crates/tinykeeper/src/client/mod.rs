//! A client: one connection, one ordered stream of answers and notifications.
//!
//! One task owns the socket. Requests reach it in the order [`Client::submit`] was called and leave in that order, many in
//! one write; answers and notifications come back in the order the server sent them, and the task hands each on before it
//! looks at the next. So a notification that came before an answer is in every matching [`Watch`] when the future of that
//! answer resolves: whoever awaits his own write and then drains his watch is current as of that write.
//!
//! The server alone decides whether a session lives; [`SessionState`] tells what this client knows:
//!
//! ```text
//!   connect() ──► Connected ──── socket lost, or silent for 2/3 of the timeout ───► Suspended
//!                   ▲  ▲                                                              │  │
//!                   │  └────── a server takes the session up again: same id ──────────┘  │
//!                   └───────── new session, new id ◄── Lost ◄── a server says: gone ─────┘
//!
//!   any state ── close(), last handle dropped ──► Closed          any state ── credentials refused ──► AuthFailed
//! ```
//!
//! * **A request ends in one of three ways**: done, refused, or unknown. Unknown means that it was sent and the connection
//!   went before the answer; only reading tells. What is asked while there is no connection fails at once, unsent.
//! * **The server stalls**: a ping goes out when nothing was sent for a third of the timeout; after two thirds without a byte
//!   the connection is given up and the next server is tried, for ever, with jittered pauses.
//! * **The server comes back**: credentials, then every watch set again, then a `sync`, and only then what callers ask. Each
//!   watch is told [`WatchEvent::Suspended`] when the connection goes and [`WatchEvent::Gap`] once it is set again: changes in
//!   between are lost, so read again upon a gap.
//! * **The session is gone**: ephemeral nodes are too. A new session is made, the watches are set on it, with a gap.
//!   [`Client::call_in`] is for requests that make sense in one session only.
//! * **We stall**: nothing here runs, so nothing here can tell. [`Client::lease_deadline`] is the end of what may be believed,
//!   on a clock that goes on while the machine sleeps; whoever holds something by virtue of the session looks at it first.

mod config;
mod connection;
mod dial;
mod error;
mod exchange;
mod handle;
mod lease;
mod line;
mod pause;
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
    exchange::Answer,
    handle::{Client, InFlight},
    session::{Session, SessionState},
    watch::{GapCause, Watch, WatchEvent},
};
