//! The server that conformance tests use.

use std::sync::Arc;

use async_trait::async_trait;

use crate::registry::{Digest, Registry};

/// A registry server that clients can join, and whose connections a test can break.
#[async_trait]
pub trait TestServer: Send + Sync {
    /// Connects a new client with this namespace and user.
    async fn join(&self, namespace: &str, user: Option<Digest>) -> TestClient;
}

/// A client and its connection.
#[derive(Debug)]
pub struct TestClient {
    pub registry: Arc<dyn Registry>,
    pub link: Box<dyn TestLink>,
}

/// A client's connection to the registry, which a test can break.
#[async_trait]
pub trait TestLink: std::fmt::Debug + Send + Sync {
    /// Cuts the connection: neither requests nor answers pass until it is healed.
    async fn cut(&self);

    /// Lets requests pass, but no answers, until the connection is cut or healed.
    async fn lose_answers(&self);

    /// Cuts the connection and makes or lets the registry end the session. How long that takes depends on the registry.
    async fn end_session(&self);

    /// Restores the connection.
    async fn heal(&self);
}
