//! Conformance tests on the registry in memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::test_server::{TestClient, TestLink, TestServer};
use crate::registry::{
    Digest,
    memory::{Link, MemoryServer},
};

/// A [`MemoryServer`] to test on.
#[derive(Debug, Clone)]
pub struct MemoryTestServer {
    server: MemoryServer,
}

impl MemoryTestServer {
    pub fn new(server: MemoryServer) -> Self {
        Self { server }
    }
}

#[async_trait]
impl TestServer for MemoryTestServer {
    async fn join(&self, namespace: &str, user: Option<Digest>) -> TestClient {
        let namespace = namespace.parse().expect("the namespace is valid");
        let registry =
            self.server.join_as(namespace, user).await.expect("a registry in memory is reachable");
        let link = Box::new(registry.link());
        TestClient { registry: Arc::new(registry), link }
    }
}

#[async_trait]
impl TestLink for Link {
    async fn cut(&self) {
        Link::cut(self);
    }

    async fn lose_answers(&self) {
        Link::cut_after_next_request(self);
    }

    async fn end_session(&self) {
        Link::cut(self);
        Link::expire(self);
    }

    async fn heal(&self) {
        Link::heal(self);
    }
}
