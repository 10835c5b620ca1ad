//! In-memory model of ZooKeeper's tree: nodes, versions, ephemerals, sequences, containers, access lists, multi and watches.
//!
//! The model does no I/O and reads neither clock nor random numbers: time, session ids and passwords are arguments. The same
//! operations therefore always produce the same transaction ids, results and notifications. The server puts sockets around
//! the model, the memory registry uses it in process, and the simulation drives it step by step.
//!
//! A write takes three steps. [`prepare`] reads the tree and either refuses with a protocol [`Code`](crate::wire::Code) or
//! returns a [`Change`], in which everything is decided: sequence numbers are drawn, access lists resolved. [`apply`] makes
//! the change and cannot fail. [`watches`] determines which watchers to notify. A multi prepares each operation against the
//! tree as the previous operations left it; if one is refused, the previous ones are undone. A successful write returns a
//! [`Transaction`], which a log stores and [`Tree::replay`] applies again.
//!
//! Every write consumes one transaction id, even a refused one, as in ZooKeeper.

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
    access::{MAX_ACL_ENTRIES, MAX_ID_BYTES, is_allowed},
    lifetime::Lifetime,
    model::{Caller, Notification, OpResult, Refusal, SessionInfo, Tree, WriteResult},
    snapshot::{FrozenTree, SnapshotError},
    transaction::{Change, Transaction},
    watches::{WatcherId, watch_bytes},
};

#[cfg(test)]
mod tests;
