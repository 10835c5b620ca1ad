//! The shared tree through which instances coordinate: a small trait over paths and bytes, and its guarantees.
//!
//! The data model is ZooKeeper's because the coordination protocol needs exactly that: nodes with versions, ephemeral nodes that end
//! with their session, sequence numbers, conditional writes, all-or-nothing multis, one recursive watch on a prefix. Three rules hold
//! in every adapter; named tests in [`testing::conformance`](crate::testing) check each of them:
//!
//! * **Absent is not unknown.** A read returns `None` only if the registry said that the node does not exist. A lost connection is a
//!   separate error: [`Error::Unreachable`] if the request was not sent, [`Error::Unknown`] if it may have been executed. After an
//!   unknown write, wait until the session is connected again, [`sync`](Registry::sync) and read.
//! * **A watch delivers a snapshot, then changes, and a new snapshot after every gap**: see [`Event`].
//! * **A write is also a sync.** Every change committed before a member's write is in the queues of that member's watches before the
//!   write is answered. So after awaiting a write and [draining](Watch::try_next) the watch, the view is current as of that write.
//!
//! A [`Session`] has an id, a deadline until which it is certain to be alive, and a stream of states. Ephemeral nodes name the
//! session they are created for, so that a task left over from an old session cannot create nodes in a new one.

mod children_watch;
mod combiner;
mod connect;
mod error;
#[cfg(test)]
mod golden;
mod limits;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod memory;
#[cfg(not(feature = "internals"))]
pub(crate) mod memory;
mod operation;
mod path;
mod session;
mod settings;
mod stat;
mod translate;
mod url;
mod watch;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod zookeeper;
#[cfg(not(feature = "internals"))]
pub(crate) mod zookeeper;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::{
    connect::connect,
    error::{Error, SizeUnit},
    settings::{Digest, Endpoint, Retry, Tls, ZooKeeperSettings},
    stat::Version,
    url::{RegistryUrl, UrlError},
};

#[cfg(not(feature = "internals"))]
pub(crate) use self::internals::*;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use self::internals::*;

/// What the other modules use; with the feature `internals` also the tests and tools of this project.
mod internals {
    pub use super::{
        children_watch::{ChildrenSource, ChildrenWatch},
        combiner::Combiner,
        connect::{connect_read_only, ensure_path},
        limits::Limits,
        operation::{Committed, Create, ExpectedVersion, Kind, Op, OpResult},
        path::{Namespace, Path, PathError},
        session::{Lease, Session, SessionId, SessionState, SessionStates, StateSource},
        stat::{Node, Stat, Zxid},
        watch::{Event, Watch, WatchSource},
    };
}

/// A connection to the shared tree. One value is one member of the cluster and holds one session at a time.
#[async_trait]
pub trait Registry: fmt::Debug + Send + Sync + 'static {
    /// The prefix that this member works under; connecting creates it if it does not exist.
    fn namespace(&self) -> &Namespace;

    /// The current session.
    fn session(&self) -> Session;

    /// What fits into one request. Required, so that a registry that wraps another one does not forget to forward it.
    fn limits(&self) -> Limits;

    /// Creates one node. Its parent must exist.
    async fn create(&self, node: Create) -> Result<Committed, Error> {
        self.multi(vec![Op::Create(node)]).await.map_err(Error::unwrap_single_op)
    }

    /// Replaces a node's data.
    async fn set(
        &self,
        path: &Path,
        data: Bytes,
        expected: ExpectedVersion,
    ) -> Result<Committed, Error> {
        let op = Op::Set { path: path.clone(), data, expected };
        self.multi(vec![op]).await.map_err(Error::unwrap_single_op)
    }

    /// Deletes a node without children.
    async fn delete(&self, path: &Path, expected: ExpectedVersion) -> Result<Committed, Error> {
        let op = Op::Delete { path: path.clone(), expected };
        self.multi(vec![op]).await.map_err(Error::unwrap_single_op)
    }

    /// Executes all operations in one transaction or none. [`Error::Operation`] says which operation was refused.
    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error>;

    /// Executes all operations or none, like [`multi`](Self::multi), possibly in one transaction with the units of other callers. No two callers
    /// may write the same node at the same time. A registry that does not [combine](Combiner) units, and one that wraps such a registry, keeps
    /// this default.
    async fn commit_unit(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.multi(ops).await
    }

    /// A node with its data; `None` if it does not exist.
    async fn get(&self, path: &Path) -> Result<Option<Node>, Error>;

    /// A node's metadata; `None` if it does not exist.
    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error>;

    /// The names of a node's children, in no particular order; `None` if the node does not exist.
    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error>;

    /// Returns when this member sees everything that was committed before the call.
    async fn sync(&self) -> Result<(), Error>;

    /// Watches `prefix` and everything below it, whether or not it exists.
    async fn watch(&self, prefix: &Path) -> Result<Watch, Error>;

    /// Watches the children of `parent`, and nothing below them, whether or not it exists. A registry that wraps another one should forward it:
    /// the default watches everything below `parent`.
    async fn watch_children(&self, parent: &Path) -> Result<ChildrenWatch, Error> {
        Ok(ChildrenWatch::of_subtree(parent, self.watch(parent).await?))
    }

    /// Connects once more, with the same settings and a session of its own; `None` if this registry cannot.
    async fn another_session(&self) -> Result<Option<Arc<dyn Registry>>, Error> {
        Ok(None)
    }

    /// How many bytes of ephemeral paths claims may still add to this session. When a session ends, ZooKeeper writes all its ephemeral paths into one
    /// transaction, and cannot restart if that has more than about 2 MB.
    fn ephemeral_room(&self) -> usize {
        usize::MAX
    }

    /// Ends the session, which deletes its ephemeral nodes.
    async fn close(&self);
}
