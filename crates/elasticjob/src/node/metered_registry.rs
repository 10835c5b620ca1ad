//! A registry that knows which ephemeral nodes its session has.
//!
//! ZooKeeper writes the paths of all of them into one transaction when the session ends, and cannot restart if that is too large. So claims wait while
//! a session has no room.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    coordination::ephemerals::bytes_of,
    registry::{
        ChildrenWatch, Committed, Create, Error, ExpectedVersion, Kind, Limits, Namespace, Node,
        Op, OpResult, Path, Registry, Session, SessionId, Stat, Watch,
    },
};

/// Forwards every request.
#[derive(Debug)]
pub(super) struct MeteredRegistry {
    registry: Arc<dyn Registry>,
    owned: Mutex<OwnedNodes>,
    /// Claims wait from here on.
    max_bytes: AtomicUsize,
}

/// The ephemeral nodes of the present session.
#[derive(Debug)]
struct OwnedNodes {
    session: SessionId,
    paths: BTreeSet<Path>,
    bytes: usize,
}

impl MeteredRegistry {
    pub(super) fn new(registry: Arc<dyn Registry>, max_bytes: usize) -> Self {
        let session = registry.session().id();
        let owned = Mutex::new(OwnedNodes { session, paths: BTreeSet::new(), bytes: 0 });
        Self { registry, owned, max_bytes: AtomicUsize::new(max_bytes) }
    }

    /// Claims do not wait any more.
    pub(super) fn lift_limit(&self) {
        self.max_bytes.store(usize::MAX, Ordering::Relaxed);
    }

    /// Forgets the nodes below `root`: the job was left, or removed together with them.
    pub(super) fn forget_below(&self, root: &Path) {
        let mut owned = self.lock();
        let below = |path: &Path| path.relative_to(root).is_some();
        let gone: Vec<Path> = owned
            .paths
            .range(root.clone()..)
            .take_while(|path| is_near(path, root))
            .cloned()
            .collect();
        gone.iter().filter(|path| below(path)).for_each(|path| owned.remove(path));
    }

    /// Notes what a write has created and deleted, or may have.
    fn note(&self, ops: &[Op], answer: &Result<Committed, Error>) {
        let session = self.registry.session().id();
        let mut owned = self.lock();
        if owned.session != session {
            *owned = OwnedNodes { session, paths: BTreeSet::new(), bytes: 0 };
        }
        match answer {
            Ok(committed) => {
                for (op, done) in ops.iter().zip(&committed.done) {
                    match (op, done) {
                        (Op::Create(create), OpResult::Created(path))
                            if create.kind.session() == Some(session) =>
                        {
                            owned.insert(path);
                        }
                        (Op::Delete { path, .. }, _) => owned.remove(path),
                        _ => {}
                    }
                }
            }
            // A node that turns out not to exist is forgotten when its deletion is refused.
            Err(Error::Unknown { .. }) => {
                for op in ops {
                    if let Op::Create(Create { path, kind: Kind::Ephemeral(owner), .. }) = op
                        && *owner == session
                    {
                        owned.insert(path);
                    }
                }
            }
            Err(Error::NotFound { path }) => owned.remove(path),
            Err(Error::Operation { cause, .. }) => {
                if let Error::NotFound { path } = &**cause {
                    owned.remove(path);
                }
            }
            Err(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, OwnedNodes> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnedNodes {
    fn insert(&mut self, path: &Path) {
        if self.paths.insert(path.clone()) {
            self.bytes += bytes_of(path);
        }
    }

    fn remove(&mut self, path: &Path) {
        if self.paths.remove(path) {
            self.bytes -= bytes_of(path);
        }
    }
}

/// Whether the path begins as `root` does: those that do follow each other, and others may be between the root and what is below it.
fn is_near(path: &Path, root: &Path) -> bool {
    path.as_str().starts_with(root.as_str())
}

#[async_trait]
impl Registry for MeteredRegistry {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    fn limits(&self) -> Limits {
        self.registry.limits()
    }

    async fn create(&self, node: Create) -> Result<Committed, Error> {
        let ops = [Op::Create(node.clone())];
        let answer = self.registry.create(node).await;
        self.note(&ops, &answer);
        answer
    }

    async fn set(
        &self,
        path: &Path,
        data: Bytes,
        expected: ExpectedVersion,
    ) -> Result<Committed, Error> {
        self.registry.set(path, data, expected).await
    }

    async fn delete(&self, path: &Path, expected: ExpectedVersion) -> Result<Committed, Error> {
        let answer = self.registry.delete(path, expected).await;
        self.note(&[Op::Delete { path: path.clone(), expected }], &answer);
        answer
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let changes = ops.iter().filter(|op| matches!(op, Op::Create(_) | Op::Delete { .. }));
        if changes.count() == 0 {
            return self.registry.multi(ops).await;
        }
        let answer = self.registry.multi(ops.clone()).await;
        self.note(&ops, &answer);
        answer
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.registry.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.registry.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.registry.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.registry.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.registry.watch(prefix).await
    }

    async fn watch_children(&self, parent: &Path) -> Result<ChildrenWatch, Error> {
        self.registry.watch_children(parent).await
    }

    fn ephemeral_room(&self) -> usize {
        self.max_bytes.load(Ordering::Relaxed).saturating_sub(self.lock().bytes)
    }

    async fn close(&self) {
        self.registry.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{registry::memory::MemoryServer, runtime::SystemClock};

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn room_follows_the_ephemeral_nodes_of_the_session() {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let inner = server.join("a".parse().unwrap()).await.unwrap();
        let session = inner.session().id();
        let registry = MeteredRegistry::new(Arc::new(inner), 100);

        let nodes = ["/a/j", "/a/jk", "/a/j/x"].map(path);
        registry.create(Create::persistent(&nodes[0], "")).await.unwrap();
        assert_eq!(registry.ephemeral_room(), 100);
        let ops = nodes[1..].iter().map(|path| Op::Create(Create::ephemeral(path, "", session)));
        registry.multi(ops.collect()).await.unwrap();
        assert_eq!(registry.ephemeral_room(), 100 - bytes_of(&nodes[1]) - bytes_of(&nodes[2]));
        registry.forget_below(&nodes[0]);
        assert_eq!(registry.ephemeral_room(), 100 - bytes_of(&nodes[1]));
        registry.delete(&nodes[1], ExpectedVersion::Any).await.unwrap();
        assert_eq!(registry.ephemeral_room(), 100);

        // Deleted by another member: known once the own deletion is refused.
        registry.create(Create::ephemeral(&nodes[1], "", session)).await.unwrap();
        let other = server.join("a".parse().unwrap()).await.unwrap();
        other.delete(&nodes[1], ExpectedVersion::Any).await.unwrap();
        registry.delete(&nodes[1], ExpectedVersion::Any).await.unwrap_err();
        assert_eq!(registry.ephemeral_room(), 100);
    }
}
