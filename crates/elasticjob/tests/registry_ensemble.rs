//! What only an ensemble can show: a leader that dies under load, and a follower that has lost its leader.

mod ground;

use std::{collections::BTreeSet, time::Duration};

use elasticjob::{
    registry::{
        Create, Error, Event, Registry, Watch, ZooKeeperSettings, Zxid, zookeeper::ZooKeeper,
    },
    runtime::{Clock, SystemClock},
    testing::conformance::Ground,
};
use ground::Wire;
use testbed::Ensemble;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn no_acknowledged_write_is_lost_when_the_leader_is_killed_under_load() {
    const WRITES: usize = 600;
    let ensemble = Ensemble::start();
    let wire =
        Wire { servers: ensemble.addresses(), _keep: (), session_timeout: Duration::from_secs(10) };
    let (writer, reader) = (wire.join("load", None).await, wire.join("load", None).await);
    let base = writer.registry.namespace().path().clone();
    let mut watch = reader.registry.watch(&base).await.unwrap();
    let mut newest = Zxid(0);
    let mut unknown = 0;

    for turn in 0..WRITES {
        if turn == WRITES / 3 {
            ensemble.server(ensemble.leader()).stop();
        }
        let path = base.join(format!("n{turn:04}")).unwrap();
        // An unknown fate is settled by reading; a request that did not leave is simply made again.
        loop {
            match writer.registry.create(Create::persistent(&path, "")).await {
                Ok(committed) => {
                    assert!(committed.zxid > newest, "zxids go back");
                    newest = committed.zxid;
                    break;
                }
                Err(Error::Unknown { .. }) => unknown += 1,
                Err(Error::Exists { .. }) => {
                    assert!(unknown > 0, "exists without an unknown write before");
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
    let picture = picture_of(&mut watch, WRITES + 1).await;
    assert_eq!(picture.len(), WRITES + 1, "the watch has seen them all");
}

/// What the watch knows once it knows `count` nodes.
async fn picture_of(watch: &mut Watch, count: usize) -> BTreeSet<String> {
    let mut picture = BTreeSet::new();
    let seeing = async {
        while picture.len() < count || !watch.is_current() {
            match watch.next().await.expect("open") {
                Event::Init => picture.clear(),
                Event::InitApply { path, .. } | Event::Apply { path } => {
                    picture.insert(path.to_string());
                }
                Event::Delete { path } => {
                    picture.remove(path.as_str());
                }
                Event::InitDone => {}
            }
        }
    };
    let seen = tokio::time::timeout(PATIENCE, seeing).await;
    assert!(seen.is_ok(), "the watch never saw all {count}, only {}", picture.len());
    picture
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn a_follower_cut_from_its_leader_answers_pings_while_the_lease_has_ended() {
    // The follower is to wait long for its leader, as one with a slow network would be told to.
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
    let pinged_on = tokio::time::timeout(PATIENCE, async {
        while registry.pongs() < pongs_at_deadline + 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    assert!(pinged_on.is_ok(), "the follower stopped answering pings: this test shows nothing");
    assert_eq!(session.deadline(), deadline, "a ping must never renew a lease");
    assert!(SystemClock.monotonic() > session.deadline());
    assert_eq!(registry.session().id(), session.id(), "and yet nothing tells the client");
    // The leader wakes up and may find that the session is over; either way the member finds its way back.
    ensemble.server(leader).thaw();
    let recovered = tokio::time::timeout(PATIENCE, async {
        while registry.sync().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(recovered.is_ok(), "the leader is back, the member is not");
    assert!(registry.session().deadline() > deadline);
}
