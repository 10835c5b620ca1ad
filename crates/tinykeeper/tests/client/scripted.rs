//! Tests of the client with a scripted server.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tinykeeper::{
    client::{
        Client, Config, ConnectError, Credentials, Error, GapCause, SessionState, WatchEvent,
    },
    wire::{
        AddWatchMode, Code, EventKind, Op, Request, Response, SetWatches, Stat, WatcherType, xid,
    },
};
use tokio::{
    net::TcpListener,
    sync::mpsc,
    time::{Instant, timeout},
};

use super::{
    config,
    fake::{FakeConnection, FakeServer, PASSWORD},
    is_connected, is_suspended, state, within_timeout,
};

const SESSION: i64 = 0x1234;
const TIMEOUT_MS: i32 = 6000;
const TIMEOUT: Duration = Duration::from_secs(6);

fn exists(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: false }
}

fn delete(path: &str) -> Request {
    Request::Write(Op::Delete { path: path.to_owned(), version: -1 })
}

fn found() -> Response {
    Response::Stat(Stat::default())
}

fn synced() -> Response {
    Response::Sync { path: "/".into() }
}

fn changed(kind: EventKind, path: &str) -> WatchEvent {
    WatchEvent::Changed { path: path.to_owned(), kind }
}

async fn connected_with(fake: &FakeServer, config: Config) -> (Client, FakeConnection) {
    let (client, peer) =
        tokio::join!(Client::connect(config), fake.accept_session(SESSION, TIMEOUT_MS));
    (client.unwrap(), peer)
}

async fn connected(fake: &FakeServer) -> (Client, FakeConnection) {
    connected_with(fake, config(&[fake.address()])).await
}

/// Sets a watch on `/a`.
async fn watched(
    client: &Client,
    peer: &mut FakeConnection,
    mode: AddWatchMode,
) -> tinykeeper::client::Watch {
    let (watch, ()) = tokio::join!(client.watch("/a", mode), async {
        let (number, request) = peer.next_request_except_ping().await;
        assert_eq!(request, Request::AddWatch { path: "/a".into(), mode });
        peer.reply(number, &Response::AddWatch(0)).await;
    });
    watch.unwrap()
}

/// An address without a listener.
async fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test of deadlines asks what time it is")]
fn now() -> Instant {
    Instant::now()
}

/// Installs a manual clock, in seconds.
fn clock(config: &mut Config) -> Arc<AtomicU64> {
    let seconds = Arc::new(AtomicU64::new(100));
    let reading = Arc::clone(&seconds);
    config.clock = Arc::new(move || Duration::from_secs(reading.load(Ordering::SeqCst)));
    seconds
}

#[tokio::test]
async fn requests_are_sent_in_call_order_and_replies_reach_their_callers() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;

    let calls: Vec<_> = (0..100).map(|index| client.submit(exists(&format!("/{index}")))).collect();
    for index in 0..100 {
        let (number, request) = peer.next_request_except_ping().await;
        assert_eq!((number, request), (index + 1, exists(&format!("/{index}"))));
    }
    for index in 0..100 {
        peer.reply_at(index + 1, i64::from(index) + 1000, &found()).await;
    }

    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(within_timeout(call).await.unwrap().zxid, index as i64 + 1000);
    }
}

#[tokio::test]
async fn notification_is_queued_before_a_later_reply_resolves() {
    let fake = FakeServer::start().await;
    let (notified, mut notifications) = mpsc::unbounded_channel();
    let mut config = config(&[fake.address()]);
    config.notifications = Some(notified);
    let (client, mut peer) = connected_with(&fake, config).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::PersistentRecursive).await;

    let call = client.submit(delete("/b"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.notify(EventKind::NodeCreated, "/a/x").await;
    peer.reply(number, &Response::Empty).await;
    peer.notify(EventKind::NodeDeleted, "/a/x").await;
    within_timeout(call).await.unwrap();

    assert_eq!(watch.try_next(), Some(changed(EventKind::NodeCreated, "/a/x")));
    assert_eq!(notifications.try_recv().unwrap().path, "/a/x");
    assert_eq!(within_timeout(watch.next()).await, Some(changed(EventKind::NodeDeleted, "/a/x")));
}

#[tokio::test]
async fn reconnect_restores_auth_and_watches_before_sending_requests() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.auth.push(Credentials::digest("jane", "secret"));
    let proof = Request::Auth { scheme: "digest".into(), auth: "jane:secret".into() };
    let accept_session = async {
        let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
        assert_eq!(peer.next_request().await.unwrap(), (xid::AUTH, proof.clone()));
        peer.reply_at(xid::AUTH, 0, &Response::Empty).await;
        peer
    };
    let (client, mut peer) = tokio::join!(Client::connect(config), accept_session);
    let client = client.unwrap();
    let mut watch = watched(&client, &mut peer, AddWatchMode::PersistentRecursive).await;
    let call = client.submit(exists("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply_at(number, 77, &found()).await;
    within_timeout(call).await.unwrap();

    drop(peer);
    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Suspended));
    let mut peer = fake.accept().await;
    let hello = peer.connect_request().await;
    assert_eq!((hello.session_id, hello.last_zxid_seen), (SESSION, 77));
    assert_eq!((&hello.password[..], hello.read_only), (&PASSWORD[..], Some(false)));
    peer.grant(SESSION, TIMEOUT_MS).await;
    assert_eq!(peer.next_request().await.unwrap(), (xid::AUTH, proof));
    peer.reply_at(xid::AUTH, 0, &Response::Empty).await;
    state(&client, is_connected).await;
    let call = client.submit(exists("/b"));
    let again = SetWatches {
        relative_zxid: 77,
        persistent_recursive: vec!["/a".into()],
        ..SetWatches::default()
    };
    assert_eq!(peer.next_request().await.unwrap(), (xid::SET_WATCHES, Request::SetWatches(again)));
    assert_eq!(peer.next_request().await.unwrap(), (1, Request::Sync { path: "/".into() }));
    assert_eq!(peer.next_request().await.unwrap(), (2, exists("/b")));
    assert_eq!(watch.try_next(), None, "the watch is not set yet");
    peer.reply(xid::SET_WATCHES, &Response::Empty).await;
    peer.reply(1, &synced()).await;
    peer.reply(2, &found()).await;

    within_timeout(call).await.unwrap();
    assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Reconnected)));
}

#[tokio::test]
async fn only_requests_processed_by_the_leader_renew_the_lease() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.touch_lag = None;
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let at = Duration::from_secs;
    assert_eq!(client.lease_deadline(), at(100) + TIMEOUT, "a new session passed the leader");

    seconds.store(110, Ordering::SeqCst);
    let read = client.submit(exists("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;
    within_timeout(read).await.unwrap();
    assert_eq!(client.lease_deadline(), at(100) + TIMEOUT, "a read did not");

    let write = client.submit(delete("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    seconds.store(115, Ordering::SeqCst);
    peer.refuse(number, Code::NO_NODE).await;
    within_timeout(write).await.unwrap_err();
    assert_eq!(client.lease_deadline(), at(110) + TIMEOUT, "counted from sending");

    seconds.store(120, Ordering::SeqCst);
    drop(peer);
    state(&client, is_suspended).await;
    let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
    let (number, request) = peer.next_request_except_ping().await;
    assert_eq!(request, Request::Sync { path: "/".into() });
    state(&client, is_connected).await;
    assert_eq!(client.lease_deadline(), at(110) + TIMEOUT, "taking it up again did not");

    peer.reply(number, &synced()).await;
    let read = client.submit(exists("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;
    within_timeout(read).await.unwrap();
    assert_eq!(client.lease_deadline(), at(120) + TIMEOUT, "the sync after it did");
}

#[tokio::test]
async fn lease_behind_a_follower_counts_from_reported_contacts() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.touch_lag = Some(Duration::from_secs(1));
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let at = Duration::from_secs;
    let mut write = async |now: u64| {
        seconds.store(now, Ordering::SeqCst);
        let write = client.submit(delete("/a"));
        let (number, _) = peer.next_request_except_ping().await;
        peer.reply(number, &Response::Empty).await;
        within_timeout(write).await.unwrap();
        client.lease_deadline()
    };

    assert_eq!(write(110).await, at(100) + TIMEOUT, "the leader may know of the creation only");
    assert_eq!(write(111).await, at(110) + TIMEOUT, "now it must know of the first write");
    assert_eq!(write(111).await, at(110) + TIMEOUT);
    assert_eq!(write(115).await, at(111) + TIMEOUT);
    drop(peer);
    state(&client, is_suspended).await;
    seconds.store(120, Ordering::SeqCst);
    let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
    seconds.store(122, Ordering::SeqCst);
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &synced()).await;
    let read = client.submit(exists("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;
    within_timeout(read).await.unwrap();

    // The leader took part in resuming the session, which was requested at 120.
    assert_eq!(client.lease_deadline(), at(120) + TIMEOUT);
}

#[tokio::test]
async fn expired_session_is_replaced_and_its_requests_are_not_sent() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let in_flight = client.submit(delete("/a"));
    peer.next_request_except_ping().await;

    drop(peer);
    assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
    let mut peer = fake.accept().await;
    peer.connect_request().await;
    peer.report_expired().await;
    state(&client, |state| *state == SessionState::Lost { session: SESSION }).await;
    assert_eq!(client.lease_deadline(), Duration::ZERO);
    assert_eq!(within_timeout(client.call(exists("/a"))).await, Err(Error::NotSent));
    assert_eq!(
        within_timeout(client.call_in(SESSION, exists("/a"))).await,
        Err(Error::SessionExpired)
    );
    drop(peer);
    seconds.store(200, Ordering::SeqCst);
    let mut peer = fake.accept().await;
    assert_eq!(peer.connect_request().await.session_id, 0);
    peer.grant(SESSION + 1, TIMEOUT_MS).await;
    state(&client, |state| *state == SessionState::Connected { session: SESSION + 1 }).await;
    let (number, request) = peer.next_request_except_ping().await;
    assert!(matches!(request, Request::SetWatches(again) if again.persistent == ["/a"]));
    peer.reply(number, &Response::Empty).await;

    assert_eq!(client.lease_deadline(), Duration::from_secs(200) + TIMEOUT);
    assert_eq!(
        within_timeout(client.call_in(SESSION, exists("/a"))).await,
        Err(Error::SessionExpired)
    );
    let call = client.submit_in(SESSION + 1, exists("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;
    within_timeout(call).await.unwrap();
    assert_eq!(watch.try_next(), Some(WatchEvent::Suspended));
    assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::NewSession)));
}

#[tokio::test]
async fn request_without_a_connection_fails_at_once_unsent() {
    let fake = FakeServer::start().await;
    let (client, peer) = connected(&fake).await;
    drop(peer);
    state(&client, is_suspended).await;

    assert_eq!(within_timeout(client.call(delete("/a"))).await, Err(Error::NotSent));
    let watch = within_timeout(client.watch("/a", AddWatchMode::Persistent)).await;
    assert_eq!(watch.unwrap_err(), Error::NotSent);
}

#[tokio::test(start_paused = true)]
async fn idle_client_pings_and_gives_up_a_silent_server() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;
    let (start, lease) = (now(), client.lease_deadline());

    for round in 1..=5 {
        assert_eq!(peer.next_request().await.unwrap(), (xid::PING, Request::Ping));
        assert_eq!(near(start.elapsed()), near(TIMEOUT / 3 * round));
        peer.reply(xid::PING, &Response::Empty).await;
    }
    let in_flight = client.submit(delete("/a"));
    state(&client, is_suspended).await;

    let silent = start.elapsed().saturating_sub(TIMEOUT / 3 * 5);
    assert_eq!(near(silent), near(TIMEOUT * 2 / 3));
    assert_eq!(client.pongs(), 5);
    assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
    assert_eq!(client.lease_deadline(), lease, "a ping renews no lease");
}

/// In tenths of a second, so that a few milliseconds of pauses do not matter.
fn near(duration: Duration) -> u128 {
    (duration.as_millis() + 50) / 100
}

#[tokio::test]
async fn reply_out_of_order_ends_the_connection_not_the_client() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;

    let call = client.submit(delete("/a"));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number + 1, &Response::Empty).await;

    assert_eq!(within_timeout(call).await, Err(Error::Unknown));
    assert_eq!(peer.next_request().await, None, "the client hangs up");
    fake.accept_session(SESSION, TIMEOUT_MS).await;
}

#[tokio::test(start_paused = true)]
async fn server_that_sends_garbage_causes_no_busy_loop() {
    let mut tooth = vec![0xff; 40];
    tooth[..4].copy_from_slice(&36_i32.to_be_bytes());
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0; 64], &[0xff; 64], &tooth] {
        let fake = FakeServer::start().await;
        let (client, peer) = connected(&fake).await;
        drop(peer);

        let mut accepted = 0;
        let minute = async {
            loop {
                fake.accept().await.raw(garbage).await;
                accepted += 1;
            }
        };
        let over: Result<(), _> = timeout(Duration::from_mins(1), minute).await;

        assert!(over.is_err());
        // Pauses reach 100 to 200 ms.
        assert!((200..=700).contains(&accepted), "{accepted} connections in a minute");
        assert!(is_suspended(&client.session().state));
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_drops_every_connection_causes_no_busy_loop() {
    let fake = FakeServer::start().await;
    let (_client, peer) = connected(&fake).await;
    drop(peer);

    let mut accepted = 0;
    let minute = async {
        loop {
            let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
            let (number, _) = peer.next_request_except_ping().await;
            peer.reply(number, &synced()).await;
            accepted += 1;
        }
    };
    let over: Result<(), _> = timeout(Duration::from_mins(1), minute).await;

    assert!(over.is_err());
    assert!((200..=700).contains(&accepted), "{accepted} connections in a minute");
}

#[tokio::test]
async fn invalid_frame_ends_the_connection_not_the_client() {
    let notification = |body: &[u8]| {
        let mut bytes = (16 + body.len() as i32).to_be_bytes().to_vec();
        bytes.extend(xid::NOTIFICATION.to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend(body);
        bytes
    };
    let cases = [
        i32::MAX.to_be_bytes().to_vec(),
        (-1_i32).to_be_bytes().to_vec(),
        vec![0, 0, 0, 1, 0],
        vec![0xff; 300],
        notification(&[]),
        notification(&[0, 0, 0, 99, 0, 0, 0, 3, 0, 0, 0, 0]),
        notification(&[0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0xff]),
    ];
    for case in cases {
        let fake = FakeServer::start().await;
        let (client, mut peer) = connected(&fake).await;

        peer.raw(&case).await;

        assert_eq!(peer.next_request().await, None, "{case:?}");
        let _peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
        state(&client, is_connected).await;
    }
}

#[tokio::test]
async fn refused_credentials_are_final() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.auth.push(Credentials { scheme: "bad".into(), secret: "secret".into() });
    let refuse = async {
        let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
        peer.next_request().await.unwrap();
        peer.refuse(xid::AUTH, Code::AUTH_FAILED).await;
    };
    let (client, ()) = tokio::join!(Client::connect(config.clone()), refuse);

    let error = client.unwrap_err();
    let expected = format!("{} refused the bad credentials", fake.address());
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("secret"));

    let accept = async {
        let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
        peer.next_request().await.unwrap();
        peer.reply_at(xid::AUTH, 0, &Response::Empty).await;
        peer
    };
    let (client, mut peer) = tokio::join!(Client::connect(config), accept);
    let client = client.unwrap();
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    drop(peer);
    let mut peer = fake.accept_session(SESSION, TIMEOUT_MS).await;
    peer.next_request().await.unwrap();
    peer.refuse(xid::AUTH, Code::AUTH_FAILED).await;

    state(&client, |state| *state == SessionState::AuthFailed).await;
    assert_eq!(within_timeout(client.call(exists("/a"))).await, Err(Error::AuthFailed));
    assert_eq!(within_timeout(watch.next()).await, Some(WatchEvent::Suspended));
    assert_eq!(within_timeout(watch.next()).await, None);
}

#[tokio::test]
async fn dropping_the_last_watch_removes_it_on_the_server() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;
    let first = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let second = watched(&client, &mut peer, AddWatchMode::Persistent).await;

    drop(first);
    let call = client.submit(exists("/mark"));
    let (number, request) = peer.next_request_except_ping().await;
    assert_eq!(request, exists("/mark"), "one is left");
    peer.reply(number, &found()).await;
    within_timeout(call).await.unwrap();
    drop(second);

    let (_, request) = peer.next_request_except_ping().await;
    assert_eq!(request, Request::RemoveWatches { path: "/a".into(), kind: WatcherType::Any });
}

#[tokio::test]
async fn request_that_would_end_a_watch_is_refused() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;
    let _watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let conflict = Error::WatchConflict { path: "/a".into() };

    let other_mode = within_timeout(client.watch("/a", AddWatchMode::PersistentRecursive)).await;
    let one_shot = client.call(Request::GetData { path: "/a".into(), watch: true });

    assert_eq!(other_mode.unwrap_err(), conflict);
    assert_eq!(within_timeout(one_shot).await, Err(conflict));
}

#[tokio::test]
async fn oversized_request_is_refused_by_the_client() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.max_frame = 100;
    let (client, mut peer) = connected_with(&fake, config).await;

    let large = client.submit(exists(&"x".repeat(88)));
    let fits = client.submit(exists(&"x".repeat(87)));
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;

    assert_eq!(within_timeout(large).await, Err(Error::TooLarge { length: 101, limit: 100 }));
    within_timeout(fits).await.unwrap();
}

#[tokio::test]
async fn close_waits_for_earlier_requests() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;

    let before = client.submit(delete("/a"));
    let serve = async {
        let (number, _) = peer.next_request_except_ping().await;
        peer.reply(number, &Response::Empty).await;
        let (number, request) = peer.next_request_except_ping().await;
        assert_eq!(request, Request::CloseSession);
        peer.reply(number, &Response::Empty).await;
    };
    within_timeout(async { tokio::join!(client.close(), serve) }).await;

    within_timeout(before).await.unwrap();
    assert_eq!(within_timeout(client.call(exists("/a"))).await, Err(Error::Closed));
    assert_eq!(client.session().state, SessionState::Closed);
    assert_eq!(within_timeout(watch.next()).await, None);
}

#[tokio::test(start_paused = true)]
async fn close_has_a_time_limit() {
    let fake = FakeServer::start().await;
    let mut config = config(&[fake.address()]);
    config.connect_timeout = Duration::from_millis(500);
    let (client, _peer) = connected_with(&fake, config).await;
    let in_flight = client.submit(delete("/a"));
    let start = now();

    client.close().await;

    assert_eq!(near(start.elapsed()), near(Duration::from_millis(500)));
    assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
    assert_eq!(client.session().state, SessionState::Closed);
}

#[test]
fn dropped_runtime_fails_pending_requests() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (client, mut watch, in_flight) = first.block_on(async {
        let fake = FakeServer::start().await;
        let (client, mut peer) = connected(&fake).await;
        let watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
        let in_flight = client.submit(delete("/a"));
        peer.next_request_except_ping().await;
        (client, watch, in_flight)
    });

    drop(first);

    runtime().block_on(async {
        assert_eq!(within_timeout(in_flight).await, Err(Error::Unknown));
        assert_eq!(within_timeout(client.call(exists("/a"))).await, Err(Error::Closed));
        assert_eq!(within_timeout(watch.next()).await, None);
        within_timeout(client.close()).await;
    });
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_session_despite_a_watch() {
    let fake = FakeServer::start().await;
    let (client, mut peer) = connected(&fake).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let clone = client.clone();

    drop(client);
    let before = clone.submit(exists("/a"));
    drop(clone);
    let (number, _) = peer.next_request_except_ping().await;
    peer.reply(number, &found()).await;
    let (number, request) = peer.next_request_except_ping().await;
    peer.reply(number, &Response::Empty).await;

    assert_eq!(request, Request::CloseSession);
    within_timeout(before).await.unwrap();
    assert_eq!(within_timeout(watch.next()).await, None);
    assert_eq!(peer.next_request().await, None);
}

#[tokio::test]
async fn unreachable_server_is_skipped() {
    let fake = FakeServer::start().await;
    for _ in 0..8 {
        let servers = [unused_address().await, fake.address()];

        let (client, _peer) = connected_with(&fake, config(&servers)).await;

        assert_eq!(client.session().id, SESSION);
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_is_skipped() {
    let (mute, fake) = (FakeServer::start().await, FakeServer::start().await);
    for _ in 0..8 {
        let start = now();

        let (client, _peer) =
            connected_with(&fake, config(&[mute.address(), fake.address()])).await;

        assert_eq!(client.session().id, SESSION);
        // Half the session timeout, since there are two servers.
        assert!(start.elapsed() < TIMEOUT / 2 + Duration::from_millis(100));
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_error_names_all_servers() {
    let (one, two) = (unused_address().await, unused_address().await);
    let start = now();

    let error = Client::connect(config(&[one, two])).await.unwrap_err();

    let expected = format!("cannot reach any server of {one}, {two} in 4 rounds");
    assert_eq!(error.to_string(), expected);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        [one, two].iter().any(|server| cause == format!("cannot connect to {server}")),
        "{cause}"
    );
    // Pauses of 50, 100 and 200 ms, shortened by up to a half, and a few for the servers in between.
    let pauses = Duration::from_millis(175)..Duration::from_millis(400);
    assert!(pauses.contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn invalid_configuration_is_refused_at_once() {
    let no_names: [&str; 0] = [];

    let no_servers = Client::connect(config(&no_names)).await.unwrap_err();
    let bad_server = Client::connect(config(&["localhost"])).await.unwrap_err();

    assert!(matches!(no_servers, ConnectError::NoServers));
    assert_eq!(bad_server.to_string(), "\"localhost\" is not host:port");
}
