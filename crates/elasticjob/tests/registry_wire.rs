//! The registry's promises over TCP: on tinykeeper, on a real ZooKeeper, and on a real ensemble of three.

mod ground;

use std::{sync::LazyLock, time::Duration};

use elasticjob::registry_conformance;
use ground::Wire;
use testbed::{Ensemble, ZooKeeper};
use tinykeeper::server::{Config, Server};

// One server for all tests of this process: each works under a namespace of its own, and a JVM takes its time to start. They end
// with the process.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);
static ENSEMBLE: LazyLock<Ensemble> = LazyLock::new(Ensemble::start);

const SESSION: Duration = Duration::from_secs(3);

async fn tinykeeper_ground() -> Wire<Server> {
    let mut config = Config::ephemeral();
    config.min_session_timeout = Duration::from_millis(100);
    let server = Server::start(config).await.unwrap();
    Wire { servers: vec![server.address()], _keep: server, session_timeout: SESSION }
}

fn zookeeper_ground() -> Wire<()> {
    Wire { servers: vec![ZOOKEEPER.address()], _keep: (), session_timeout: SESSION }
}

fn ensemble_ground() -> Wire<()> {
    Wire { servers: ENSEMBLE.addresses(), _keep: (), session_timeout: SESSION }
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
