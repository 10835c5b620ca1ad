//! Tests that need an ensemble: a leader that dies under load, and a follower that is cut off from its leader.

mod backends;

use std::{collections::BTreeSet, time::Duration};

use backends::Wire;
use elasticjob::{
    registry::{
        Create, Error, Event, Registry, Watch, ZooKeeperSettings, Zxid, zookeeper::ZooKeeper,
    },
    runtime::{Clock, SystemClock},
    testing::conformance::TestServer,
};
use testbed::Ensemble;

/// Limit for every wait.
const TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn killed_leader_loses_no_acknowledged_write() {
    const WRITES: usize = 600;
    let ensemble = Ensemble::start();
    let wire =
        Wire { servers: ensemble.addresses(), _keep: (), session_timeout: Duration::from_secs(10) };
    let (writer, reader) = (wire.join("load", None).await, wire.join("load", None).await);
    let base = writer.registry.namespace().path().clone();
    let mut watch = reader.registry.watch(&base).await.unwrap();
    let mut newest = Zxid(0);
    let mut unknown = 0;

    for index in 0..WRITES {
        if index == WRITES / 3 {
            ensemble.server(ensemble.leader()).stop();
        }
        let path = base.join(format!("n{index:04}")).unwrap();
        // After an unknown result, `Exists` shows that the write happened; a request that was not sent is repeated.
        loop {
            match writer.registry.create(Create::persistent(&path, "")).await {
                Ok(committed) => {
                    assert!(committed.zxid > newest, "zxid went back");
                    newest = committed.zxid;
                    break;
                }
                Err(Error::Unknown { .. }) => unknown += 1,
                Err(Error::Exists { .. }) => {
                    assert!(unknown > 0, "node exists without an earlier unknown write");
                    break;
                }
                Err(Error::Unreachable { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    reader.registry.sync().await.unwrap();
    let children = reader.registry.children(&base).await.unwrap().unwrap();
    assert_eq!(children.len(), WRITES);
    let paths = watched_paths(&mut watch, WRITES + 1).await;
    assert_eq!(paths.len(), WRITES + 1, "the watch reported every node");
}

/// Reads the watch until it has reported `count` nodes.
async fn watched_paths(watch: &mut Watch, count: usize) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let collecting = async {
        while paths.len() < count || !watch.is_current() {
            match watch.next().await.expect("open") {
                Event::Init => paths.clear(),
                Event::InitApply { path, .. } | Event::Apply { path } => {
                    paths.insert(path.to_string());
                }
                Event::Delete { path } => {
                    paths.remove(path.as_str());
                }
                Event::InitDone => {}
            }
        }
    };
    let collected = tokio::time::timeout(TIMEOUT, collecting).await;
    assert!(collected.is_ok(), "the watch reported {} of {count} nodes", paths.len());
    paths
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn pings_of_an_isolated_follower_do_not_extend_the_lease() {
    // A high sync limit makes the follower wait long for its leader, as it would be configured on a slow network.
    let ensemble = Ensemble::builder().sync_limit(500).start();
    let leader = ensemble.leader();
    let follower = ensemble.server((leader + 1) % 3);
    let settings = ZooKeeperSettings::new([follower.address().into()], "lease".parse().unwrap())
        .session_timeout(Duration::from_secs(2));
    let registry = ZooKeeper::connect(&settings).await.unwrap();
    let session = registry.session();
    registry.sync().await.unwrap();

    ensemble.server(leader).freeze();
    let deadline = session.deadline();
    SystemClock.sleep_until(deadline).await;
    let pongs_at_deadline = registry.pongs();
    let pings_continued = tokio::time::timeout(TIMEOUT, async {
        while registry.pongs() < pongs_at_deadline + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    assert!(
        pings_continued.is_ok(),
        "the follower stopped answering pings, so this test proves nothing"
    );
    assert_eq!(session.deadline(), deadline, "a ping must never extend the lease");
    assert!(SystemClock.monotonic() > session.deadline());
    assert_eq!(registry.session().id(), session.id(), "the client has not noticed anything");
    // The resumed leader may end the session; the member recovers either way.
    ensemble.server(leader).thaw();
    let recovered = tokio::time::timeout(TIMEOUT, async {
        while registry.sync().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(recovered.is_ok(), "the member did not recover");
    assert!(registry.session().deadline() > deadline);
}
