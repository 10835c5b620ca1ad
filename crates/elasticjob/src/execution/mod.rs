//! How a shard runs: handlers of every kind, how they are tried, cancelled and watched, and who is told when they fail.
//!
//! ```text
//!   IntoWork ── Work ── prepare(configuration as it is now) ──▶ Handler
//!                                                                 │
//!   Shard + Guard ──▶ Runner (so many at once) ──▶ attempt (timeout, retry, cancel, panic, lease) ──▶ Outcome ──▶ Notice ──▶ Alerts
//! ```
//!
//! * [`Handler`] runs a shard: an async function, a [`SimpleJob`], a [`DataflowJob`], [`blocking`] code, a [script](Script), an HTTP request.
//! * [`Work`] is what a program registers; it makes the handler of a run out of the configuration as it is then.
//! * [`attempt()`] tries one shard until it is done or it makes no sense to try again; [`Runner`] does that for all shards of a run.
//! * [`Guard`] keeps a handler from being polled after its lease. **Who is authoritative**: the lease. A handler that is done
//!   after it has done nothing that counts.
//! * [`Lease`] says how long a handler may go on with what it has outside this process; a [`Supervisor`] holds scripts to it.
//! * [`Listener`]s are called before and after on each instance, [`OnceListener`]s on one of them; [`Alerts`] tell somebody.
//!
//! This room knows jobs and never the registry: who may run what is decided elsewhere, and handed in.

mod alert;
mod attempt;
mod blocking;
mod dataflow;
mod failure;
#[cfg(test)]
mod fixture;
mod guard;
mod handler;
#[cfg(feature = "http")]
mod http;
mod lease;
mod listener;
mod observer;
mod once;
mod outcome;
mod output;
mod runner;
mod script;
#[cfg(feature = "http")]
mod web;
mod work;

pub(crate) use self::failure::with_causes;
pub use self::{
    alert::{Alerts, Messenger, Notice, Verdict, Ways},
    attempt::{Rules, Surroundings, attempt, pause},
    blocking::{Blocking, Threads, blocking},
    dataflow::DataflowJob,
    failure::{BoxError, Failure},
    guard::{Guard, Guarded, Lost, guarded},
    handler::{Handler, SimpleJob},
    lease::Lease,
    listener::{Execution, Listener, Listeners},
    observer::Observer,
    once::{OnceListener, OnceListeners},
    outcome::Outcome,
    output::{Output, Stream},
    runner::{Ran, Runner},
    script::{Script, ScriptWork, Supervisor, supervise_if_asked},
    work::{IntoWork, Setting, Work, kind},
};
#[cfg(feature = "http")]
pub use self::{
    http::{Http, HttpWork},
    web::Web,
};
