//! A ZooKeeper server in one process.
//!
//! ```text
//! socket ─ connection ──requests──▶ core ──batch──▶ journal ──answers──▶ outbox ─ connection ─ socket
//!          (one task each)          (one task,      (one thread: append,  (bounded)
//!                                    owns the tree)  one fsync per batch)
//! ```
//!
//! *Order.* The [`core`] is the only one who touches the tree. It takes requests in the order they arrive, and puts every
//! notification and every answer into its connection's buffer at once. So on one connection the notifications of earlier
//! transactions stand before the answer to a later write: the rule everything above this crate relies on.
//!
//! *Durability.* With a data folder nothing leaves the server before the transactions it may tell about are on disk: answers,
//! notifications and reads alike travel through the [`journal`], which writes whatever has gathered with one fsync. Without a
//! folder there is no journal and the core delivers itself.
//!
//! *Sessions* live in the tree; when they end is decided here ([`expiry`]). After a restart every session has its full timeout
//! to come back.
//!
//! *Self-defence.* Frames over the limit, garbage, connections that never say who they are, readers that do not read, too
//! many connections or sessions: the connection is closed with a log line that says why, and the server lives on.

mod auth;
mod clock;
mod config;
mod connection;
mod core;
mod expiry;
mod handle;
mod journal;
mod outbox;
mod respond;
mod start;
mod words;

pub use self::{
    config::Config,
    handle::{Server, ServerError},
};
