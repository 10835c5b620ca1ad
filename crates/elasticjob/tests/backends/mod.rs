//! Runs conformance tests and scenarios on registry servers. Each member connects through its own proxy to every server, so that its
//! connections can be cut.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use elasticjob::{
    registry::{Digest, Retry, ZooKeeperSettings, zookeeper::ZooKeeper},
    testing::conformance::{TestClient, TestLink, TestServer},
};
use testbed::Proxy;

/// Registry servers, which members reach through proxies.
pub(crate) struct Wire<S> {
    pub(crate) servers: Vec<SocketAddr>,
    /// Keeps the servers alive.
    pub(crate) _keep: S,
    pub(crate) session_timeout: Duration,
}

#[async_trait::async_trait]
impl<S: Send + Sync> TestServer for Wire<S> {
    async fn join(&self, namespace: &str, user: Option<Digest>) -> TestClient {
        let mut proxies = Vec::new();
        for server in &self.servers {
            proxies.push(Proxy::start(*server).await);
        }
        let servers = proxies.iter().map(|proxy| proxy.address().into());
        let mut settings = ZooKeeperSettings::new(servers, namespace.parse().unwrap())
            .session_timeout(self.session_timeout)
            .connection_timeout(Duration::from_millis(500))
            .retry(Retry {
                base_sleep: Duration::from_millis(20),
                max_sleep: Duration::from_millis(100),
                max_retries: 100,
            });
        settings.digest = user;
        let registry = ZooKeeper::connect(&settings).await.unwrap();
        TestClient { registry: Arc::new(registry), link: Box::new(Proxies(proxies)) }
    }
}

/// The proxies of one member, one for each server.
struct Proxies(Vec<Proxy>);

impl std::fmt::Debug for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} proxies", self.0.len())
    }
}

#[async_trait::async_trait]
impl TestLink for Proxies {
    async fn cut(&self) {
        self.0.iter().for_each(Proxy::cut);
    }

    async fn lose_answers(&self) {
        self.0.iter().for_each(Proxy::hold_answers);
    }

    async fn end_session(&self) {
        // The registry ends the session itself when it has not heard from the member for the session timeout.
        self.cut().await;
    }

    async fn heal(&self) {
        self.0.iter().for_each(Proxy::heal);
    }
}
