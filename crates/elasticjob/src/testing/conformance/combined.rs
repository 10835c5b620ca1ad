//! Conformance tests through the combiner.

use std::sync::Arc;

use async_trait::async_trait;

use super::test_server::{TestClient, TestServer};
use crate::registry::{
    Combiner, Committed, Digest, Error, Limits, Namespace, Node, Op, Path, Registry, Session, Stat,
    Watch,
};

/// A server whose clients write everything as units: what holds for a request has to hold for a unit, too.
#[derive(Debug, Clone)]
pub struct CombinedTestServer<S> {
    server: S,
}

impl<S: TestServer> CombinedTestServer<S> {
    pub fn new(server: S) -> Self {
        Self { server }
    }
}

#[async_trait]
impl<S: TestServer> TestServer for CombinedTestServer<S> {
    async fn join(&self, namespace: &str, user: Option<Digest>) -> TestClient {
        // The tests without the combiner may use the same server.
        let namespace = format!("{namespace}-combined");
        let TestClient { registry, link } = self.server.join(&namespace, user).await;
        TestClient { registry: Arc::new(WritesUnits(Combiner::new(registry))), link }
    }
}

/// Writes every change as a unit.
#[derive(Debug)]
struct WritesUnits(Combiner);

#[async_trait]
impl Registry for WritesUnits {
    fn namespace(&self) -> &Namespace {
        self.0.namespace()
    }

    fn session(&self) -> Session {
        self.0.session()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.0.commit_unit(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.0.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.0.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.0.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.0.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.0.watch(prefix).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
