//! ElasticJob in Rust: a distributed job scheduler without a central server.
//!
//! Start with [`node`], which runs jobs. The modules:
//!
//! * [`admin`] — queries and changes for the console and the command line: jobs, shards, servers, and why a job did not run.
//! * [`execution`] — runs shards: handlers of every kind, retries, cancellation, listeners, alerts.
//! * [`extension`] — sharding strategies, alert channels and executors that a program brings.
//! * [`history`] — records events, stores them, and answers queries about past runs.
//! * [`mod@job`] — a job, its policies and shards, and the YAML it is stored as.
//! * [`node`] — one process that runs jobs: its builder, its timer, and how it starts and stops.
//! * [`registry`] — the shared tree that instances meet in: in memory, or over ZooKeeper's protocol.
//! * [`schedule`] — when a job is due: Quartz cron, time zones, missed fires.
//! * `testing` (feature) — a cluster in one process for tests of jobs, a clock that tests control, and one named test for each guarantee of a
//!   registry.
//!
//! Hidden modules, which have no stable interface and need the feature `internals`: `coordination` (what the instances of a job agree on) and `runtime`
//! (what tests replace: clock, random numbers, tasks).

#![cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "tests and tools use these items through the feature"
    )
)]

pub mod admin;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod coordination;
#[cfg(not(feature = "internals"))]
mod coordination;
pub mod execution;
pub mod extension;
pub mod history;
pub mod job;
pub mod node;
pub mod problem;
pub mod registry;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod runtime;
#[cfg(not(feature = "internals"))]
mod runtime;
#[cfg(feature = "testing")]
pub mod testing;

#[doc(inline)]
pub use quartz_cron as schedule;

pub use self::{
    job::{Job, Shard},
    node::{Node, NodeError, NodeJob},
};

/// The result of `main` in a program that runs jobs; the error prints as one line with a hint. `?` converts errors of a [`Node`] and of a [`Job`]; a
/// program with errors of its own returns `Result<(), Box<dyn Error>>`.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

/// Declares an async function as a job. [`Node::discover`] finds all of them.
///
/// ```no_run
/// use elasticjob::{Node, Shard};
///
/// #[elasticjob::job(cron = "0/5 * * * * ?", shards = 3, items = "0=Beijing,1=Shanghai,2=Guangzhou", failover)]
/// async fn settle_orders(shard: Shard) -> Result<(), std::io::Error> {
///     println!("settling the orders of {:?}", shard.parameter);
///     Ok(())
/// }
///
/// #[elasticjob::job(
///     name = "clean-up",
///     cron = "0 0 3 * * ?",
///     zone = "Europe/Paris",
///     blocking,
///     timeout = "10m",
///     retry_max_attempts = 3,
///     alert = "WECHAT",
///     props(wechat.webhook = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…"),
/// )]
/// fn clean_up(_: Shard) -> Result<(), std::io::Error> {
///     std::fs::remove_dir_all("/var/tmp/shop")
/// }
///
/// #[tokio::main]
/// async fn main() -> elasticjob::Result<()> {
///     Node::join("zookeeper://127.0.0.1:2181/shop").discover().run().await
/// }
/// ```
///
/// The function takes a [`Shard`] and returns a `Result` whose error converts into an [`execution::Failure`]. The function itself does not change, so
/// tests can call it. A plain `fn` needs the flag `blocking` and runs on its own thread ([`execution::blocking`]). For a handler with state, give a
/// struct to [`Node::job`].
///
/// All keys are optional. Defaults and meanings are those of the [`Job`]'s methods.
///
/// | key | value | meaning |
/// |---|---|---|
/// | `name` | `"settle-orders"` | the job's name; the default is the function's name |
/// | `cron` | `"0/5 * * * * ?"` | [`Job::cron`]; without it, the job runs only when it is triggered |
/// | `zone` | `"Europe/Paris"` | [`Job::zone`] |
/// | `dst` | `"default"`, `"quartz"` | [`Job::dst`] |
/// | `shards` | `3` | [`Job::shards`]; one by default |
/// | `items` | `"0=Beijing,1=Shanghai"` | [`Job::items`] |
/// | `parameter` | `"all"` | [`Job::parameter`] |
/// | `failover` | flag | [`Job::failover`]: another instance takes over |
/// | `misfire` | flag, on by default | [`Job::misfire`]: a misfire is compensated once, right after the run |
/// | `monitor_execution` | flag, on by default | [`Job::monitor`] |
/// | `overwrite` | flag | [`Job::overwrite`]: these values override the stored configuration |
/// | `disabled` | flag | [`Job::disabled`] |
/// | `static_sharding` | flag | [`Job::resharding`] |
/// | `strategy` | `"ROUND_ROBIN"` | [`Job::strategy`] |
/// | `thread_pool` | `"CPU"`, `"SINGLE_THREAD"` | [`Job::threads`] |
/// | `max_time_diff_seconds` | `60` | [`Job::max_time_diff`] |
/// | `reconcile_interval_minutes` | `10` | [`Job::reconcile`] |
/// | `timeout` | `"90s"` | [`Job::timeout`] |
/// | `retry_max_attempts`, `retry_backoff` | `3`, `"1s..1m"` | [`Job::retry`] |
/// | `catch_up` | `"none"`, `"last"`, `"all:6h"` | [`Job::catch_up`] |
/// | `on_lease_loss` | `"cancel"`, `"finish-fenced"`, `"continue"` | [`Job::on_lease_loss`] |
/// | `alert` | `"EMAIL"` | [`Job::alert`] |
/// | `props` | `(email.host = "mail", "a-b" = "c")` | [`Job::prop`] for each entry |
/// | `description`, `label` | `"for people"` | [`Job::description`], [`Job::label`] |
/// | `handler` | `"shop::settle"` | [`Job::handler`]; none by default, because a function can be renamed or moved |
/// | `java_class` | `"com.acme.SettleOrders"` | [`NodeJob::java_class`] |
/// | `java_listeners` | `("audit", "metrics")` | [`Job::java_listeners`] |
/// | `blocking` | flag | the function is not async and blocks its thread |
///
/// A flag is written `failover`, `failover = true` or `failover = false`.
///
/// The compiler reports invalid keys, value types, numbers, a wrong number of cron fields and a malformed `items`. Other invalid text (the rest of a
/// cron, a zone, a duration) is a [`NodeError::Declaration`] when a node starts.
#[cfg(feature = "macros")]
pub use elasticjob_macros::job;

/// Names that the attribute's generated code uses.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __macros {
    pub use inventory::submit;

    pub use crate::node::JobDeclaration;
}

/// Compiles the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
