//! A ZooKeeper server in one process.
//!
//! ```text
//! socket ─ connection ──requests──▶ core ──batch──▶ journal ──replies──▶ outbox ─ connection ─ socket
//!          (one task each)          (one task,      (one thread: append,  (bounded)
//!                                    owns the tree)  one fsync per batch)
//! ```
//!
//! *Order.* Only the [`core`] accesses the tree. It processes requests in the order of arrival and immediately appends every
//! notification and every reply to the buffer of its connection. On one connection, the notifications of earlier transactions
//! therefore precede the reply to a later write. Everything above this crate relies on this rule.
//!
//! *Durability.* With a data directory, the server sends nothing before the transactions it may reveal are on disk: replies to
//! writes and reads as well as notifications pass through the [`journal`], which writes all waiting batches with one fsync.
//! Without a data directory there is no journal, and the core sends directly.
//!
//! *Snapshots.* The core only freezes the tree, which copies references to its nodes; a thread beside the journal encodes and
//! writes it. A node that changes meanwhile is copied first.
//!
//! *Sessions* are part of the tree; [`expiry`] decides when they end. After a restart every session has its full timeout to
//! reconnect.
//!
//! *Memory.* What waits is limited in bytes, so clients that write faster than the disk wait, and the server neither grows nor
//! stops: requests that the core has not processed ([`budget`], 8 MiB and 64 KiB more for each connection), a turn of the core
//! (1 MiB and one message more), batches that wait for the disk (8 MiB), one commit (4 MiB), and the output of each connection
//! ([`Config::max_outbox`]). A connection that waits for the budget is not read.
//!
//! *Protection.* The server closes a connection, and logs why (repetitions are counted), if it sends a frame over the limit or invalid data, does not
//! complete the handshake, does not read its replies, or exceeds the number of connections or sessions, in all or of its
//! address. The server itself continues. Requests of one connection are processed for a few milliseconds, then other
//! connections have their turn. Access lists, ids of a connection, the memory of watches and the size of a `multiRead` are
//! limited. [`FourLetterWords`] that would tell session ids, addresses of clients or the data directory are not executed
//! unless they are configured.

mod addresses;
mod admission;
mod auth;
mod budget;
mod client_warnings;
mod clock;
mod config;
mod connection;
mod core;
mod expiry;
mod four_letter;
mod handle;
mod journal;
mod outbox;
mod respond;
mod start;

pub use self::{
    config::Config,
    four_letter::{FourLetterWords, UnknownWord},
    handle::{Server, ServerError},
};
