//! ElasticJob in Rust: a distributed job scheduler without a centre.
//!
//! Start with [`node`]: it runs jobs. The rooms, from the front door inwards:
//!
//! * [`admin`] — what console and command line may ask and do: jobs, shards, servers, and why something did not run.
//! * [`coordination`] — what the cluster agrees on: who leads, who owns which shard, who runs it.
//! * [`execution`] — how a shard runs: handlers of every kind, retries, cancellation, listeners, alerts.
//! * [`history`] — what happened: events, who keeps them, and what can be asked about them.
//! * [`mod@job`] — what is to be done: a job, its policies, its shards, and the YAML it is stored as.
//! * [`node`] — one process: its jobs, its timer, its way in and out.
//! * [`registry`] — the shared tree that instances meet in: in memory, or on ZooKeeper's protocol.
//! * [`runtime`] — the seams that tests turn by hand.
//! * [`schedule`] — when a job is due: Quartz cron, time zones, and the arithmetic of being late.
//! * `testing` (feature) — a cluster in process for tests of jobs, a hand-turned clock, and one named test for each promise of a registry.

pub mod admin;
pub mod coordination;
pub mod execution;
pub mod history;
pub mod job;
pub mod node;
pub mod problem;
pub mod registry;
pub mod runtime;
#[cfg(feature = "testing")]
pub mod testing;

#[doc(inline)]
pub use quartz_cron as schedule;

pub use self::{
    job::{Job, Shard},
    node::{Node, NodeError, NodeJob},
};

/// What a program that runs jobs returns from `main`: why it could not, told in one line with a way out. `?` takes what a
/// [`Node`] says and what is wrong with a [`Job`]; a program with errors of its own returns `Result<(), Box<dyn Error>>`.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

/// Makes a job of an async function. [`Node::discover`] finds all of them.
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
/// The function takes its [`Shard`] and returns a `Result` whose error can be told ([`execution::Failure`]). It stays what it is: tests call
/// it. A plain `fn` says `blocking` and runs on a thread of its own ([`execution::blocking`]). What has state is a struct, given to
/// [`Node::job`].
///
/// All keys may be left out. Defaults and meanings are those of the [`Job`]'s methods.
///
/// | key | value | says |
/// |---|---|---|
/// | `name` | `"settle-orders"` | what the job is called; without, as the function is |
/// | `cron` | `"0/5 * * * * ?"` | [`Job::cron`]; without, it runs when somebody asks for it |
/// | `zone` | `"Europe/Paris"` | [`Job::zone`] |
/// | `dst` | `"default"`, `"quartz"` | [`Job::dst`] |
/// | `shards` | `3` | [`Job::shards`]; without, one |
/// | `items` | `"0=Beijing,1=Shanghai"` | [`Job::items`] |
/// | `parameter` | `"all"` | [`Job::parameter`] |
/// | `failover` | flag | [`Job::if_node_dies`]: another node takes over |
/// | `misfire` | flag, true unless said | [`Job::if_late`]: it runs once more, right after |
/// | `monitor_execution` | flag, true unless said | [`Job::monitor`] |
/// | `overwrite` | flag | [`Job::if_stored_differs`]: what stands here wins |
/// | `disabled` | flag | [`Job::disabled`] |
/// | `static_sharding` | flag | [`Job::resharding`] |
/// | `strategy` | `"ROUND_ROBIN"` | [`Job::strategy`] |
/// | `thread_pool` | `"CPU"`, `"SINGLE_THREAD"` | [`Job::threads`] |
/// | `max_time_diff_seconds` | `60` | [`Job::max_time_diff`] |
/// | `reconcile_interval_minutes` | `10` | [`Job::reconcile`] |
/// | `timeout` | `"90s"` | [`Job::timeout`] |
/// | `retry_max_attempts`, `retry_backoff` | `3`, `"1s..1m"` | [`Job::if_shard_fails`] |
/// | `catch_up` | `"none"`, `"last"`, `"all:6h"` | [`Job::if_nobody_was_there`] |
/// | `on_lease_loss` | `"cancel"`, `"finish-fenced"`, `"continue"` | [`Job::if_lease_is_lost`] |
/// | `alert` | `"EMAIL"` | [`Job::alert`] |
/// | `props` | `(email.host = "mail", "a-b" = "c")` | [`Job::prop`], for each |
/// | `description`, `label` | `"for people"` | [`Job::description`], [`Job::label`] |
/// | `handler` | `"shop::settle"` | [`Job::handler`]; without, none: a function may be renamed and moved |
/// | `java_class` | `"com.acme.SettleOrders"` | [`NodeJob::java_class`] |
/// | `java_listeners` | `("audit", "metrics")` | [`Job::java_listeners`] |
/// | `blocking` | flag | the function is no async one and blocks its thread |
///
/// A flag is written `failover`, `failover = true` or `failover = false`.
///
/// Mistakes in keys, kinds of values, numbers, the number of a cron's fields and the form of `items` are told by the compiler. What else
/// can be wrong with a text (all of a cron, a zone, a duration) is [`NodeError::Declaration`] when a node starts.
#[cfg(feature = "macros")]
pub use elasticjob_macros::job;

/// What the attribute writes names these.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __macros {
    pub use inventory::submit;

    pub use crate::node::Declared;
}

/// What the README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
