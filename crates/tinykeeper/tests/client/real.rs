//! Tests of the client with a real ZooKeeper.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use testbed::{Ensemble, Proxy, ZooKeeper};
use tinykeeper::{
    client::{
        Client, ConnectError, Credentials, Error, GapCause, SessionState, Watch, WatchEvent,
        boot_clock,
    },
    wire::{
        Acl, AddWatchMode, AuthId, Code, Create, CreateMode, EventKind, MultiResult, Op, Perms,
        Request, Response,
    },
};

use super::{config, is_connected, is_suspended, state, within_timeout};

/// For tests that share one server and do not change its state.
static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

async fn client() -> Client {
    Client::connect(config(&[SERVER.address()])).await.unwrap()
}

async fn make(client: &Client, path: &str) {
    client.create(path, "", CreateMode::Persistent, Acl::open()).await.unwrap();
}

fn create_op(path: &str, mode: CreateMode) -> Op {
    Op::Create(Create {
        path: path.to_owned(),
        data: Some(Bytes::new()),
        acl: Acl::open(),
        mode,
        with_stat: true,
    })
}

fn changed(kind: EventKind, path: &str) -> WatchEvent {
    WatchEvent::Changed { path: path.to_owned(), kind }
}

/// All queued events, without waiting.
fn queued(watch: &mut Watch) -> Vec<WatchEvent> {
    std::iter::from_fn(|| watch.try_next()).collect()
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn pipelined_calls_complete_in_order() {
    let client = client().await;
    make(&client, "/pipeline").await;

    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let create = create_op("/pipeline/n-", CreateMode::PersistentSequential);
            client.submit(Request::Write(create))
        })
        .collect();

    let mut last = 0;
    for (index, call) in calls.into_iter().enumerate() {
        let reply = within_timeout(call).await.unwrap();
        let Response::Create2 { path, stat } = reply.response else { panic!("{reply:?}") };
        assert_eq!(path, format!("/pipeline/n-{index:010}"));
        assert_eq!(reply.zxid, stat.czxid);
        assert!(reply.zxid > last);
        last = reply.zxid;
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn write_resolves_after_all_earlier_notifications() {
    let (mine, theirs) = (client().await, client().await);
    make(&mine, "/order").await;
    let mut watch = mine.watch("/order", AddWatchMode::PersistentRecursive).await.unwrap();

    for round in 0..200 {
        let path = format!("/order/{round}");
        make(&theirs, &path).await;
        theirs.set(&path, "data", 0).await.unwrap();
        // A refused write does not overtake a notification either.
        mine.delete("/order/absent", -1).await.unwrap_err();

        assert_eq!(
            queued(&mut watch),
            [changed(EventKind::NodeCreated, &path), changed(EventKind::NodeDataChanged, &path)]
        );
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn overlapping_watches_each_see_a_change_once() {
    let client = client().await;
    make(&client, "/overlap").await;
    make(&client, "/overlap/a").await;
    let recursive = AddWatchMode::PersistentRecursive;
    let mut above = client.watch("/overlap", recursive).await.unwrap();
    let mut below = client.watch("/overlap/a", AddWatchMode::Persistent).await.unwrap();
    let mut twin = client.watch("/overlap", recursive).await.unwrap();

    client.set("/overlap/a", "data", -1).await.unwrap();
    make(&client, "/overlap/a/b").await;
    client.delete("/overlap/a/b", -1).await.unwrap();
    client.delete("/overlap/a", -1).await.unwrap();

    let seen = [
        changed(EventKind::NodeDataChanged, "/overlap/a"),
        changed(EventKind::NodeCreated, "/overlap/a/b"),
        changed(EventKind::NodeDeleted, "/overlap/a/b"),
        changed(EventKind::NodeDeleted, "/overlap/a"),
    ];
    assert_eq!(queued(&mut above), seen);
    assert_eq!(queued(&mut twin), seen);
    assert_eq!(
        queued(&mut below),
        [
            changed(EventKind::NodeDataChanged, "/overlap/a"),
            changed(EventKind::NodeChildrenChanged, "/overlap/a"),
            changed(EventKind::NodeChildrenChanged, "/overlap/a"),
            changed(EventKind::NodeDeleted, "/overlap/a"),
        ]
    );
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn dropped_watch_is_removed_unless_another_one_remains() {
    let (notified, mut notifications) = tokio::sync::mpsc::unbounded_channel();
    let mut config = config(&[SERVER.address()]);
    config.notifications = Some(notified);
    let client = Client::connect(config).await.unwrap();
    make(&client, "/dropped").await;
    let first = client.watch("/dropped", AddWatchMode::Persistent).await.unwrap();
    let mut second = client.watch("/dropped", AddWatchMode::Persistent).await.unwrap();

    drop(first);
    client.set("/dropped", "1", -1).await.unwrap();
    assert_eq!(queued(&mut second), [changed(EventKind::NodeDataChanged, "/dropped")]);
    assert!(notifications.try_recv().is_ok());
    drop(second);
    client.set("/dropped", "2", -1).await.unwrap();

    assert!(notifications.try_recv().is_err());
    // The path can be watched again, in another mode too.
    let mode = AddWatchMode::PersistentRecursive;
    let mut again = client.watch("/dropped", mode).await.unwrap();
    make(&client, "/dropped/child").await;
    assert_eq!(queued(&mut again), [changed(EventKind::NodeCreated, "/dropped/child")]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn refused_multi_names_the_failed_operation() {
    let client = client().await;
    make(&client, "/multi").await;

    let done = client
        .multi(vec![
            Op::Check { path: "/multi".into(), version: 0 },
            create_op("/multi/a", CreateMode::Persistent),
        ])
        .await;
    let refused = client
        .multi(vec![
            create_op("/multi/b", CreateMode::Persistent),
            create_op("/multi/a", CreateMode::Persistent),
            create_op("/multi/c", CreateMode::Persistent),
        ])
        .await;

    let (zxid, results) = done.unwrap();
    assert_eq!(results[0], MultiResult::Check);
    let (_, stat) = client.get("/multi/a").await.unwrap();
    assert_eq!(stat.czxid, zxid);
    let Err(Error::MultiRefused { index: 1, code: Code::NODE_EXISTS, zxid: later }) = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(later, zxid + 1);
    assert_eq!(client.children("/multi").await.unwrap().0, ["a"]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn typed_requests_return_their_results() {
    let client = client().await;
    make(&client, "/usual").await;

    assert_eq!(client.exists("/usual/absent").await, Ok(None));
    let missing = client.get("/usual/absent").await.unwrap_err();
    assert_eq!(missing.code(), Some(Code::NO_NODE));
    let stat = client.set("/usual", "data", 0).await.unwrap();
    assert_eq!(client.exists("/usual").await, Ok(Some(stat)));
    assert_eq!(client.get("/usual").await, Ok((Bytes::from_static(b"data"), stat)));
    assert_eq!(client.acl("/usual").await.unwrap().0, Acl::open());
    client.sync().await.unwrap();
    let stale = client.set("/usual", "other", 0).await.unwrap_err();
    assert_eq!(stale.code(), Some(Code::BAD_VERSION));
    for mode in [CreateMode::Container, CreateMode::EphemeralSequential] {
        let (path, stat) = client.create("/usual/node-", "", mode, Acl::open()).await.unwrap();
        assert_eq!(client.exists(&path).await, Ok(Some(stat)));
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn request_interrupted_in_flight_is_unknown_and_may_have_taken_effect() {
    let proxy = Proxy::start(SERVER.address()).await;
    let client = Client::connect(config(&[proxy.address()])).await.unwrap();
    let witness = self::client().await;

    proxy.hold_answers();
    let create = create_op("/cut", CreateMode::Persistent);
    let in_flight = client.submit(Request::Write(create));
    let mut seen = witness.watch("/", AddWatchMode::PersistentRecursive).await.unwrap();
    while witness.exists("/cut").await.unwrap().is_none() {
        within_timeout(seen.next()).await;
    }
    proxy.cut();

    assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
    assert!(is_suspended(&client.session().state));
    proxy.heal();
    state(&client, is_connected).await;
    client.sync().await.unwrap();
    assert!(client.exists("/cut").await.unwrap().is_some());
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn reconnect_keeps_session_ephemerals_and_watches() {
    let proxy = Proxy::start(SERVER.address()).await;
    let client = Client::connect(config(&[proxy.address()])).await.unwrap();
    let witness = self::client().await;
    let before = client.session();
    make(&client, "/reconnect").await;
    client.create("/reconnect/mine", "", CreateMode::Ephemeral, Acl::open()).await.unwrap();
    let mode = AddWatchMode::PersistentRecursive;
    let mut recursive = client.watch("/reconnect", mode).await.unwrap();
    let mut plain = client.watch("/reconnect/mine", AddWatchMode::Persistent).await.unwrap();

    for round in 0..3 {
        proxy.cut();
        state(&client, is_suspended).await;
        make(&witness, &format!("/reconnect/missed-{round}")).await;
        proxy.heal();
        for watch in [&mut recursive, &mut plain] {
            assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Suspended));
            assert_eq!(
                within_timeout(watch.next()).await,
                Some(WatchEvent::Gap(GapCause::Reconnected))
            );
        }
        let path = format!("/reconnect/seen-{round}");
        make(&witness, &path).await;
        witness.set("/reconnect/mine", "data", -1).await.unwrap();
        client.sync().await.unwrap();
        let data = changed(EventKind::NodeDataChanged, "/reconnect/mine");
        assert_eq!(queued(&mut recursive), [changed(EventKind::NodeCreated, &path), data.clone()]);
        assert_eq!(queued(&mut plain), [data]);
    }

    assert_eq!(client.session().id, before.id);
    let mine = client.exists("/reconnect/mine").await.unwrap().unwrap();
    assert_eq!(mine.ephemeral_owner, before.id);
    assert!(client.lease_deadline() > before.lease_deadline);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn expired_session_is_replaced_by_a_new_one() {
    let server = ZooKeeper::builder().tick(Duration::from_millis(100)).start();
    let proxy = Proxy::start(server.address()).await;
    let mut config = config(&[proxy.address()]);
    config.session_timeout = Duration::from_secs(1);
    let client = Client::connect(config).await.unwrap();
    let witness = Client::connect(super::config(&[server.address()])).await.unwrap();
    let old = client.session().id;
    make(&client, "/expiry").await;
    client.create("/expiry/mine", "", CreateMode::Ephemeral, Acl::open()).await.unwrap();
    let mut watch = client.watch("/expiry", AddWatchMode::Persistent).await.unwrap();
    let mut gone = witness.watch("/expiry/mine", AddWatchMode::Persistent).await.unwrap();

    proxy.cut();
    assert_eq!(
        within_timeout(gone.next()).await,
        Some(changed(EventKind::NodeDeleted, "/expiry/mine"))
    );
    assert!(
        is_suspended(&client.session().state),
        "only a server decides that a session has expired"
    );
    proxy.heal();
    let new = state(
        &client,
        |state| matches!(state, SessionState::Connected { session } if *session != old),
    )
    .await;

    assert_eq!(new, SessionState::Connected { session: client.session().id });
    let ephemeral = Request::Write(create_op("/expiry/mine", CreateMode::Ephemeral));
    assert_eq!(client.call_in(old, ephemeral).await, Err(Error::SessionExpired));
    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Suspended));
    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Gap(GapCause::NewSession)));
    make(&witness, "/expiry/more").await;
    client.sync().await.unwrap();
    let more = changed(EventKind::NodeChildrenChanged, "/expiry");
    assert_eq!(queued(&mut watch), [more]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn frozen_server_suspends_the_client_until_it_resumes() {
    let server = ZooKeeper::builder().tick(Duration::from_millis(500)).start();
    let mut config = config(&[server.address()]);
    config.session_timeout = Duration::from_secs(6);
    let client = Client::connect(config).await.unwrap();
    let id = client.session().id;
    make(&client, "/frozen").await;

    server.freeze();
    let in_flight = client.submit(Request::Write(create_op("/frozen/a", CreateMode::Persistent)));
    let suspended = client.session().timeout * 2 / 3 + Duration::from_millis(500);
    tokio::time::timeout(suspended, client.states().wait_for(is_suspended))
        .await
        .expect("silence is noticed in time")
        .unwrap();
    assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
    server.thaw();

    state(&client, is_connected).await;
    assert_eq!(client.session().id, id);
    client.sync().await.unwrap();
    client.exists("/frozen/a").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn client_reconnects_after_a_server_restart() {
    let server = ZooKeeper::start();
    let mut config = config(&[server.address()]);
    config.session_timeout = Duration::from_secs(20);
    let client = Client::connect(config).await.unwrap();
    make(&client, "/killed").await;
    client.create("/killed/mine", "", CreateMode::Ephemeral, Acl::open()).await.unwrap();
    let mut watch = client.watch("/killed", AddWatchMode::Persistent).await.unwrap();

    server.stop();
    state(&client, is_suspended).await;
    server.restart();
    state(&client, is_connected).await;

    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Suspended));
    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Gap(GapCause::Reconnected)));
    let mine = client.exists("/killed/mine").await.unwrap().unwrap();
    assert_eq!(mine.ephemeral_owner, client.session().id);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn credentials_grant_access_only_to_their_user() {
    let mut janes = config(&[SERVER.address()]);
    janes.auth.push(Credentials::digest("jane", "secret"));
    let mut strangers = config(&[SERVER.address()]);
    strangers.auth.push(Credentials::digest("jane", "guess"));
    let jane = Client::connect(janes).await.unwrap();
    let stranger = Client::connect(strangers).await.unwrap();
    jane.create("/janes", "", CreateMode::Persistent, Acl::creator_all()).await.unwrap();

    let refused = stranger.get("/janes").await.unwrap_err();

    assert_eq!(refused.code(), Some(Code::NO_AUTH));
    assert!(jane.get("/janes").await.is_ok());
    let (acl, _) = jane.acl("/janes").await.unwrap();
    let id = AuthId::digest("jane:secret");
    assert_eq!(acl, [Acl { perms: Perms::ALL, id }]);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn unknown_auth_scheme_is_refused_finally() {
    let mut config = config(&[SERVER.address()]);
    config.auth.push(Credentials { scheme: "nonsense".into(), secret: "secret".into() });

    let error = Client::connect(config).await.unwrap_err();

    assert!(matches!(error, ConnectError::AuthRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("nonsense"));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn server_accepts_the_largest_request_the_client_sends() {
    let client = client().await;
    make(&client, "/large").await;
    // Headers, path, length and version.
    let around = 8 + 4 + "/large".len() + 4 + 4;
    let largest = 0xf_ffff - around;

    client.set("/large", vec![1; largest], -1).await.unwrap();
    let refused = client.set("/large", vec![1; largest + 1], -1).await;

    assert_eq!(refused, Err(Error::TooLarge { length: 0x10_0000, limit: 0xf_ffff }));
    assert_eq!(client.get("/large").await.unwrap().0.len(), largest);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn close_ends_the_session_on_the_server() {
    let (client, witness) = (client().await, client().await);
    client.create("/closing", "", CreateMode::Ephemeral, Acl::open()).await.unwrap();

    client.close().await;

    witness.sync().await.unwrap();
    assert_eq!(witness.exists("/closing").await, Ok(None));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn leader_never_ends_a_session_before_its_lease() {
    let tick = Duration::from_millis(500);
    let ensemble = Ensemble::builder().tick(tick).start();
    let leader = ensemble.leader();
    let follower = (leader + 1) % 3;
    let proxy = Proxy::start(ensemble.addresses()[follower]).await;
    let client = Client::connect(config(&[proxy.address()])).await.unwrap();
    let witness = Client::connect(config(&[ensemble.addresses()[leader]])).await.unwrap();
    client.create("/leased", "", CreateMode::Ephemeral, Acl::open()).await.unwrap();
    let mut gone = witness.watch("/leased", AddWatchMode::Persistent).await.unwrap();
    let created = client.lease_deadline();

    // The worst moment for a write: the leader has had no report of this session for long.
    let idle = (client.session().timeout / 3).saturating_sub(Duration::from_millis(50));
    tokio::time::sleep(idle).await;
    client.set("/leased", "data", -1).await.unwrap();
    let lease = client.lease_deadline();
    ensemble.server(follower).freeze();
    assert_eq!(
        within_timeout(gone.next()).await,
        Some(changed(EventKind::NodeDataChanged, "/leased"))
    );
    assert_eq!(within_timeout(gone.next()).await, Some(changed(EventKind::NodeDeleted, "/leased")));

    assert!(boot_clock() >= lease, "ended {:?} before", lease.saturating_sub(boot_clock()));
    assert!(lease >= created);
    ensemble.server(follower).thaw();
}
