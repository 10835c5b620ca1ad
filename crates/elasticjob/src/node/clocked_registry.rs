//! A registry whose answers tell the schedule clock the registry's time.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::schedule_clock::ScheduleClock;
use crate::{
    registry::{
        ChildrenWatch, Committed, Create, Error, ExpectedVersion, Limits, Namespace, Node, Op,
        Path, Registry, Session, Stat, Watch,
    },
    runtime::Clock,
};

/// Forwards every request.
#[derive(Debug)]
pub(super) struct ClockedRegistry {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<ScheduleClock>,
}

impl ClockedRegistry {
    async fn observe(
        &self,
        write: impl Future<Output = Result<Committed, Error>> + Send,
    ) -> Result<Committed, Error> {
        let sent = self.clock.monotonic();
        let committed = write.await?;
        if let Some(written_at_ms) = committed.written_at_ms {
            self.clock.observe(written_at_ms, sent);
        }
        Ok(committed)
    }
}

#[async_trait]
impl Registry for ClockedRegistry {
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
        self.registry.create(node).await
    }

    async fn set(
        &self,
        path: &Path,
        data: Bytes,
        expected: ExpectedVersion,
    ) -> Result<Committed, Error> {
        self.observe(self.registry.set(path, data, expected)).await
    }

    async fn delete(&self, path: &Path, expected: ExpectedVersion) -> Result<Committed, Error> {
        self.registry.delete(path, expected).await
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.observe(self.registry.multi(ops)).await
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

    async fn close(&self) {
        self.registry.close().await;
    }
}
