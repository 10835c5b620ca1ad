//! The ground for registries behind sockets: every member has a proxy in front of each server, so that its line can be cut.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use elasticjob::{
    registry::{Digest, Retry, ZooKeeperSettings, zookeeper::ZooKeeper},
    testing::conformance::{Ground, Line, Member},
};
use testbed::Proxy;

/// Servers to test on.
pub(crate) struct Wire<S> {
    pub(crate) servers: Vec<SocketAddr>,
    /// Whatever keeps them alive.
    pub(crate) _keep: S,
    pub(crate) session_timeout: Duration,
}

#[async_trait::async_trait]
impl<S: Send + Sync> Ground for Wire<S> {
    async fn join(&self, namespace: &str, user: Option<Digest>) -> Member {
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
        Member { registry: Arc::new(registry), line: Box::new(Lines(proxies)) }
    }
}

/// All lines of one member.
struct Lines(Vec<Proxy>);

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines", self.0.len())
    }
}

#[async_trait::async_trait]
impl Line for Lines {
    async fn cut(&self) {
        self.0.iter().for_each(Proxy::cut);
    }

    async fn lose_answers(&self) {
        self.0.iter().for_each(Proxy::hold_answers);
    }

    async fn end_session(&self) {
        // The registry ends it by itself when it has not heard of it for long enough.
        self.cut().await;
    }

    async fn heal(&self) {
        self.0.iter().for_each(Proxy::heal);
    }
}
