//! Runs shards: handlers of every kind, attempts with timeout, retry and cancellation, listeners, and alerts about failures.
//!
//! ```text
//!   IntoWork ── Work ── prepare(current configuration) ──▶ Handler
//!                                                             │
//!   Shard + Guard ──▶ Runner (limited concurrency) ──▶ attempt (timeout, retry, cancel, panic, lease) ──▶ Outcome ──▶ Notice ──▶ Alerts
//! ```
//!
//! * [`Handler`] runs a shard: an async function, a [`SimpleJob`], a [`DataflowJob`], [`blocking`] code, a [script](Script), an HTTP request.
//! * [`Work`] is what a program registers for a job; it makes the handler of each run from the configuration at that time.
//! * [`attempt()`] tries one shard until it succeeds or another attempt makes no sense; [`Runner`] does that for all shards of a run.
//! * [`Guard`] stops polling a handler whose lease is over. The lease is authoritative: the result of a handler that ends after it does not count.
//! * [`Lease`] tells a handler how long work outside this process may continue; a [`Supervisor`] enforces it for scripts.
//! * [`Listener`]s are called before and after an execution on each instance, [`OnceListener`]s on one instance of the cluster.
//! * [`Alerts`] notify people about failures.
//!
//! This module knows jobs and never the registry: which instance may run which shard is decided elsewhere and passed in.
pub(crate) mod alert;
mod attempt;
mod attempt_result;
mod blocking;
mod dataflow;
pub(crate) mod executor;
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
mod once_listener;
#[cfg_attr(
    not(any(feature = "http", feature = "email")),
    expect(dead_code, reason = "nothing leaves the machine without these features")
)]
mod outbound;
mod output;
mod runner;
mod script;
mod secrets;
#[cfg(feature = "http")]
mod http_client;
mod work;

#[cfg(feature = "http")]
pub use self::http::Http;
pub use self::{
    alert::AlertOutcome,
    attempt_result::ShardResult,
    blocking::{Blocking, Threads, blocking},
    dataflow::DataflowJob,
    failure::{BoxError, Failure},
    handler::{Handler, SimpleJob},
    listener::{Execution, Listener},
    once_listener::OnceListener,
    outbound::{Outbound, Outgoing},
    output::{Output, Stream},
    script::{Script, Supervisor, supervise_if_requested},
    secrets::{SecretUse, Secrets},
    work::{IntoWork, kind},
};
pub(crate) use self::{executor::Executors, outbound::OutboundPolicy};
pub use crate::{
    job::Outcome,
    runtime::{CancelReason, CancelToken},
};

#[cfg(not(feature = "internals"))]
pub(crate) use self::internals::*;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use self::internals::*;

/// What the other modules use; with the feature `internals` also the tests and tools of this project.
mod internals {
    pub use super::{
        alert::{AlertChannel, AlertChannels, Alerts, Notice, Routing},
        attempt::{AttemptContext, AttemptPolicy, attempt, retry_delay},
        attempt_result::AttemptResult,
        executor::{Executor, RuntimeExecutor},
        guard::{Guard, Guarded, LeaseLost, guarded},
        lease::Lease,
        listener::Listeners,
        observer::Observer,
        once_listener::OnceListeners,
        runner::Runner,
        script::ScriptWork,
        work::{RunSettings, Work},
    };
    #[cfg(feature = "http")]
    pub use super::{http::HttpWork, http_client::HttpClient};
}
