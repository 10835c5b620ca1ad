//! What ZooKeeper's tree *is*: nodes, versions, ephemerals, sequences, containers, access lists, multi and watches.
//!
//! No I/O, no clock, no randomness: time, session ids and passwords come in as arguments, so the same operations give the same
//! transaction ids, the same answers and the same notifications, every time. The server puts sockets around it, the registry
//! tests use it in process, the simulation turns it by hand.
//!
//! A write goes through three steps. [`prepare`] looks at the tree and either refuses in the protocol's own words or says
//! exactly what will change (a [`Change`]: sequence numbers drawn, access lists resolved). [`apply`] does it, and cannot fail.
//! [`watches`] tells whom. A multi prepares each member against the tree as the members before left it; when one is refused the
//! others are undone. Whatever was written is handed out as a [`Transaction`], which is what a log keeps and [`Tree::replay`]
//! takes.
//!
//! Every write takes one transaction id, refused or not, as in ZooKeeper.

mod access;
mod apply;
mod lifetime;
mod model;
pub mod path;
mod prepare;
mod read;
mod snapshot;
mod transaction;
mod watches;

pub use self::{
    access::is_allowed,
    lifetime::Lifetime,
    model::{Caller, Done, Notification, Refused, SessionInfo, Tree, Written},
    snapshot::SnapshotError,
    transaction::{Change, Transaction},
    watches::WatcherId,
};

#[cfg(test)]
mod tests;
