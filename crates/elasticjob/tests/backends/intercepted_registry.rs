//! A registry whose writes and reads of nodes a test observes or refuses; everything else is forwarded.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use elasticjob::registry::{
    Committed, Error, Limits, Namespace, Node, Op, Path, Registry, Session, Stat, Watch,
};

/// What a test does with requests on their way to the registry.
#[async_trait]
pub(crate) trait Interceptor: fmt::Debug + Send + Sync + 'static {
    /// Every write: those of a single node are a multi of one operation.
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error>;

    async fn get(&self, registry: &dyn Registry, path: &Path) -> Result<Option<Node>, Error> {
        registry.get(path).await
    }
}

#[derive(Debug)]
pub(crate) struct InterceptedRegistry<I> {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) interceptor: I,
}

#[async_trait]
impl<I: Interceptor> Registry for InterceptedRegistry<I> {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    fn limits(&self) -> Limits {
        self.registry.limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.interceptor.write(&*self.registry, ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.interceptor.get(&*self.registry, path).await
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

    async fn close(&self) {
        self.registry.close().await;
    }
}
