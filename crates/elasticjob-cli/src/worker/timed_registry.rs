//! A registry that measures how long requests take.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use elasticjob::{
    registry::{
        ChildrenWatch, Committed, Create, Error, ExpectedVersion, Limits, Namespace, Node, Op,
        Path, Registry, Session, Stat, Watch,
    },
    runtime::{Clock, SystemClock},
};

use super::metrics::{Metrics, Request};

/// Forwards every request and records its duration.
#[derive(Debug)]
pub(super) struct TimedRegistry {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) metrics: Arc<Metrics>,
}

impl TimedRegistry {
    async fn timed<T>(
        &self,
        request: Request,
        request_future: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let since = SystemClock.monotonic();
        let answer = request_future.await;
        let is_answered = !answer.as_ref().is_err_and(Error::is_outage);
        let took = SystemClock.monotonic().saturating_since(since);
        self.metrics.record_request(request, is_answered, took);
        answer
    }
}

#[async_trait]
impl Registry for TimedRegistry {
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
        self.timed(Request::Write, self.registry.create(node)).await
    }

    async fn set(
        &self,
        path: &Path,
        data: Bytes,
        expected: ExpectedVersion,
    ) -> Result<Committed, Error> {
        self.timed(Request::Write, self.registry.set(path, data, expected)).await
    }

    async fn delete(&self, path: &Path, expected: ExpectedVersion) -> Result<Committed, Error> {
        self.timed(Request::Write, self.registry.delete(path, expected)).await
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.timed(Request::Write, self.registry.multi(ops)).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.timed(Request::Read, self.registry.get(path)).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.timed(Request::Read, self.registry.exists(path)).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.timed(Request::Read, self.registry.children(path)).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.timed(Request::Sync, self.registry.sync()).await
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
