//! Registry conformance over TCP: tinykeeper, a real ZooKeeper, and a real ensemble of three; each alone and through the combiner.

mod backends;

use std::{sync::LazyLock, time::Duration};

use backends::Wire;
use elasticjob::{registry_conformance, testing::conformance::CombinedTestServer};
use testbed::{Ensemble, ZooKeeper};
use tinykeeper::server::{Config, Server};

// All tests of this process share one server, each with its own namespace, because a JVM is slow to start. The servers end with the
// process.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);
static ENSEMBLE: LazyLock<Ensemble> = LazyLock::new(Ensemble::start);

const SESSION_TIMEOUT: Duration = Duration::from_secs(3);

async fn tinykeeper_ground() -> Wire<Server> {
    let mut config = Config::in_memory();
    config.min_session_timeout = Duration::from_millis(100);
    let server = Server::start(config).await.unwrap();
    Wire { servers: vec![server.address()], _keep: server, session_timeout: SESSION_TIMEOUT }
}

fn zookeeper_ground() -> Wire<()> {
    Wire { servers: vec![ZOOKEEPER.address()], _keep: (), session_timeout: SESSION_TIMEOUT }
}

fn ensemble_ground() -> Wire<()> {
    Wire { servers: ENSEMBLE.addresses(), _keep: (), session_timeout: SESSION_TIMEOUT }
}

registry_conformance!(on_tinykeeper, tinykeeper_ground().await);
registry_conformance!(
    #[ignore = "needs a real ZooKeeper: make test"]
    on_zookeeper,
    zookeeper_ground()
);
registry_conformance!(
    #[ignore = "needs a real ZooKeeper: make test"]
    on_ensemble,
    ensemble_ground()
);

registry_conformance!(on_tinykeeper_combined, CombinedTestServer::new(tinykeeper_ground().await));
registry_conformance!(
    #[ignore = "needs a real ZooKeeper: make test"]
    on_zookeeper_combined,
    CombinedTestServer::new(zookeeper_ground())
);
registry_conformance!(
    #[ignore = "needs a real ZooKeeper: make test"]
    on_ensemble_combined,
    CombinedTestServer::new(ensemble_ground())
);
