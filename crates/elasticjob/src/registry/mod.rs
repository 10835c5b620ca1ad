//! The shared tree that instances meet in: a small trait over paths and bytes, and what it promises.
//!
//! The model is ZooKeeper's because it is the one the protocol above needs: nodes with versions, ephemerals that end with
//! their session, sequence numbers, conditional writes, all-or-nothing multis, one recursive watch on a prefix. Three rules hold
//! in every adapter, each kept by a named test in [`testing::conformance`](crate::testing):
//!
//! * **Absent is not unknown.** A read answers `None` only when the registry said that there is no such node. A lost connection
//!   is an error of its own: [`Error::Unreachable`] when the request never left, [`Error::Unknown`] when it may have happened.
//!   The fate of such a write is settled by a [`sync`](Registry::sync) and a read once the session is connected again.
//! * **A watch is a snapshot, then changes, and a fresh snapshot after every gap**: see [`Event`].
//! * **A write is also a sync.** Every change committed before my write is in the queue of my watches before my write is
//!   answered. So: await the write, [drain](Watch::try_next) the watch, and the picture is current as of that write.
//!
//! A [`Session`] is a value: it has an id, a deadline until which it may be believed in, and a stream of states. Ephemerals name
//! the session they are meant for, so that nothing of an old life is created in a new one.

mod connect;
mod error;
#[cfg(test)]
mod golden;
pub mod memory;
mod operation;
mod path;
mod session;
mod settings;
mod stat;
mod translate;
mod url;
mod watch;
pub mod zookeeper;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::{
    connect::{connect, plant, visit},
    error::Error,
    operation::{Committed, Create, Done, Expected, Kind, Op},
    path::{Namespace, Path, PathError},
    session::{Lease, Session, SessionId, SessionState, StateSource, States},
    settings::{Digest, Endpoint, Retry, Tls, ZooKeeperSettings},
    stat::{Node, Stat, Version, Zxid},
    url::{RegistryUrl, UrlError},
    watch::{Event, Watch, WatchSource},
};

/// A shared tree. One value is one member of the cluster: it holds one session at a time.
#[async_trait]
pub trait Registry: fmt::Debug + Send + Sync + 'static {
    /// The prefix this member works under; the registry makes sure that it exists.
    fn namespace(&self) -> &Namespace;

    /// The session as it is now.
    fn session(&self) -> Session;

    /// Creates one node. Its parent must exist.
    async fn create(&self, node: Create) -> Result<Committed, Error> {
        self.multi(vec![Op::Create(node)]).await.map_err(Error::of_only_member)
    }

    /// Replaces a node's data.
    async fn set(&self, path: &Path, data: Bytes, expected: Expected) -> Result<Committed, Error> {
        let op = Op::Set { path: path.clone(), data, expected };
        self.multi(vec![op]).await.map_err(Error::of_only_member)
    }

    /// Deletes a node without children.
    async fn delete(&self, path: &Path, expected: Expected) -> Result<Committed, Error> {
        let op = Op::Delete { path: path.clone(), expected };
        self.multi(vec![op]).await.map_err(Error::of_only_member)
    }

    /// Does all of this or none of it. Refusals come as [`Error::Member`], which says which one was refused.
    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error>;

    /// A node with its data; `None` if there is none.
    async fn get(&self, path: &Path) -> Result<Option<Node>, Error>;

    /// What is known about a node besides its data; `None` if there is none.
    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error>;

    /// The names of a node's children, in no particular order; `None` if there is no such node.
    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error>;

    /// Returns when this member has seen everything that was committed before the call.
    async fn sync(&self) -> Result<(), Error>;

    /// Watches `prefix` and everything below it, whether or not it exists.
    async fn watch(&self, prefix: &Path) -> Result<Watch, Error>;

    /// Ends the session, and with it its ephemerals.
    async fn close(&self);
}
