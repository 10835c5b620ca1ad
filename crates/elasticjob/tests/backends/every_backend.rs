//! Defines each scenario as a test on the memory registry, on tinykeeper and on a real ZooKeeper. Needs `mod backends` in the same crate.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use elasticjob::{
    registry::memory::MemoryServer, runtime::SystemClock, testing::conformance::MemoryTestServer,
};
use testbed::ZooKeeper;
use tinykeeper::server::{Config, Server};

use crate::backends::Wire;

// One server for all scenarios, because each has its own namespace. The server ends with the process.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const SESSION: Duration = Duration::from_secs(10);

pub(crate) fn memory() -> MemoryTestServer {
    MemoryTestServer::new(MemoryServer::new(Arc::new(SystemClock)))
}

pub(crate) async fn tinykeeper() -> Wire<Server> {
    let server = Server::start(Config::in_memory()).await.unwrap();
    Wire { servers: vec![server.address()], _keep: server, session_timeout: SESSION }
}

pub(crate) fn zookeeper() -> Wire<()> {
    Wire { servers: vec![ZOOKEEPER.address()], _keep: (), session_timeout: SESSION }
}

macro_rules! on_every_backend {
    ($($module:ident: $($scenario:ident)*;)*) => {
        mod in_memory {
            $($(
                #[tokio::test]
                async fn $scenario() {
                    crate::$module::$scenario(&crate::every_backend::memory()).await;
                }
            )*)*
        }

        mod on_tinykeeper {
            $($(
                #[tokio::test]
                async fn $scenario() {
                    crate::$module::$scenario(&crate::every_backend::tinykeeper().await).await;
                }
            )*)*
        }

        mod on_zookeeper {
            $($(
                #[tokio::test]
                #[ignore = "needs a real ZooKeeper: make test"]
                async fn $scenario() {
                    crate::$module::$scenario(&crate::every_backend::zookeeper()).await;
                }
            )*)*
        }
    };
}
