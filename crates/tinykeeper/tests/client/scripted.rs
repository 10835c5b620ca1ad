//! What can be seen best against a server that follows a script.

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
    fake::{Fake, PASSWORD, Peer},
    is_connected, is_suspended, soon, state,
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

async fn connected_with(fake: &Fake, config: Config) -> (Client, Peer) {
    let (client, peer) = tokio::join!(Client::connect(config), fake.welcome(SESSION, TIMEOUT_MS));
    (client.unwrap(), peer)
}

async fn connected(fake: &Fake) -> (Client, Peer) {
    connected_with(fake, config(&[fake.address()])).await
}

/// A watch on `/a`, set at once.
async fn watched(
    client: &Client,
    peer: &mut Peer,
    mode: AddWatchMode,
) -> tinykeeper::client::Watch {
    let (watch, ()) = tokio::join!(client.watch("/a", mode), async {
        let (number, request) = peer.asked_for_something().await;
        assert_eq!(request, Request::AddWatch { path: "/a".into(), mode });
        peer.answer(number, &Response::Watching(0)).await;
    });
    watch.unwrap()
}

/// A port where nobody listens.
async fn deserted() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test of deadlines asks what time it is")]
fn now() -> Instant {
    Instant::now()
}

/// A clock turned by hand, in seconds.
fn clock(config: &mut Config) -> Arc<AtomicU64> {
    let seconds = Arc::new(AtomicU64::new(100));
    let reading = Arc::clone(&seconds);
    config.clock = Arc::new(move || Duration::from_secs(reading.load(Ordering::SeqCst)));
    seconds
}

#[tokio::test]
async fn requests_leave_in_the_order_of_the_calls_and_answers_find_their_callers() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;

    let calls: Vec<_> = (0..100).map(|index| client.submit(exists(&format!("/{index}")))).collect();
    for index in 0..100 {
        let (number, request) = peer.asked_for_something().await;
        assert_eq!((number, request), (index + 1, exists(&format!("/{index}"))));
    }
    for index in 0..100 {
        peer.answer_at(index + 1, i64::from(index) + 1000, &found()).await;
    }

    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(soon(call).await.unwrap().zxid, index as i64 + 1000);
    }
}

#[tokio::test]
async fn a_notification_is_in_the_queue_before_a_later_answer_resolves() {
    let fake = Fake::start().await;
    let (notified, mut notifications) = mpsc::unbounded_channel();
    let mut config = config(&[fake.address()]);
    config.notifications = Some(notified);
    let (client, mut peer) = connected_with(&fake, config).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::PersistentRecursive).await;

    let call = client.submit(delete("/b"));
    let (number, _) = peer.asked_for_something().await;
    peer.notify(EventKind::NodeCreated, "/a/x").await;
    peer.answer(number, &Response::Done).await;
    peer.notify(EventKind::NodeDeleted, "/a/x").await;
    soon(call).await.unwrap();

    assert_eq!(watch.try_next(), Some(changed(EventKind::NodeCreated, "/a/x")));
    assert_eq!(notifications.try_recv().unwrap().path, "/a/x");
    assert_eq!(soon(watch.next()).await, Some(changed(EventKind::NodeDeleted, "/a/x")));
}

#[tokio::test]
async fn on_a_new_connection_everything_is_set_up_before_callers_are_served() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.auth.push(Credentials::digest("jane", "secret"));
    let proof = Request::Auth { scheme: "digest".into(), auth: "jane:secret".into() };
    let welcome = async {
        let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
        assert_eq!(peer.asked().await.unwrap(), (xid::AUTH, proof.clone()));
        peer.answer_at(xid::AUTH, 0, &Response::Done).await;
        peer
    };
    let (client, mut peer) = tokio::join!(Client::connect(config), welcome);
    let client = client.unwrap();
    let mut watch = watched(&client, &mut peer, AddWatchMode::PersistentRecursive).await;
    let call = client.submit(exists("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer_at(number, 77, &found()).await;
    soon(call).await.unwrap();

    drop(peer);
    assert_eq!(soon(watch.next()).await, Some(WatchEvent::Suspended));
    let mut peer = fake.accept().await;
    let hello = peer.hello().await;
    assert_eq!((hello.session_id, hello.last_zxid_seen), (SESSION, 77));
    assert_eq!((&hello.password[..], hello.read_only), (&PASSWORD[..], Some(false)));
    peer.grant(SESSION, TIMEOUT_MS).await;
    assert_eq!(peer.asked().await.unwrap(), (xid::AUTH, proof));
    peer.answer_at(xid::AUTH, 0, &Response::Done).await;
    state(&client, is_connected).await;
    let call = client.submit(exists("/b"));
    let again = SetWatches {
        relative_zxid: 77,
        persistent_recursive: vec!["/a".into()],
        ..SetWatches::default()
    };
    assert_eq!(peer.asked().await.unwrap(), (xid::SET_WATCHES, Request::SetWatches(again)));
    assert_eq!(peer.asked().await.unwrap(), (1, Request::Sync { path: "/".into() }));
    assert_eq!(peer.asked().await.unwrap(), (2, exists("/b")));
    assert_eq!(watch.try_next(), None, "the watch is not set yet");
    peer.answer(xid::SET_WATCHES, &Response::Done).await;
    peer.answer(1, &synced()).await;
    peer.answer(2, &found()).await;

    soon(call).await.unwrap();
    assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::Reconnected)));
}

#[tokio::test]
async fn only_what_passed_the_leader_renews_the_lease_counted_from_sending() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.touch_lag = None;
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let at = Duration::from_secs;
    assert_eq!(client.lease_deadline(), at(100) + TIMEOUT, "a new session passed the leader");

    seconds.store(110, Ordering::SeqCst);
    let read = client.submit(exists("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;
    soon(read).await.unwrap();
    assert_eq!(client.lease_deadline(), at(100) + TIMEOUT, "a read did not");

    let write = client.submit(delete("/a"));
    let (number, _) = peer.asked_for_something().await;
    seconds.store(115, Ordering::SeqCst);
    peer.refuse(number, Code::NO_NODE).await;
    soon(write).await.unwrap_err();
    assert_eq!(client.lease_deadline(), at(110) + TIMEOUT, "counted from sending");

    seconds.store(120, Ordering::SeqCst);
    drop(peer);
    state(&client, is_suspended).await;
    let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
    let (number, request) = peer.asked_for_something().await;
    assert_eq!(request, Request::Sync { path: "/".into() });
    state(&client, is_connected).await;
    assert_eq!(client.lease_deadline(), at(110) + TIMEOUT, "taking it up again did not");

    peer.answer(number, &synced()).await;
    let read = client.submit(exists("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;
    soon(read).await.unwrap();
    assert_eq!(client.lease_deadline(), at(120) + TIMEOUT, "the sync after it did");
}

#[tokio::test]
async fn behind_a_follower_the_lease_counts_from_what_the_leader_must_have_heard_of() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.touch_lag = Some(Duration::from_secs(1));
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let at = Duration::from_secs;
    let mut write = async |now: u64| {
        seconds.store(now, Ordering::SeqCst);
        let write = client.submit(delete("/a"));
        let (number, _) = peer.asked_for_something().await;
        peer.answer(number, &Response::Done).await;
        soon(write).await.unwrap();
        client.lease_deadline()
    };

    assert_eq!(write(110).await, at(100) + TIMEOUT, "the leader may know of the creation only");
    assert_eq!(write(111).await, at(110) + TIMEOUT, "now it must know of the first write");
    assert_eq!(write(111).await, at(110) + TIMEOUT);
    assert_eq!(write(115).await, at(111) + TIMEOUT);
    drop(peer);
    state(&client, is_suspended).await;
    seconds.store(120, Ordering::SeqCst);
    let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
    seconds.store(122, Ordering::SeqCst);
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &synced()).await;
    let read = client.submit(exists("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;
    soon(read).await.unwrap();

    // The leader had part in taking the session up again, and that was asked for at 120.
    assert_eq!(client.lease_deadline(), at(120) + TIMEOUT);
}

#[tokio::test]
async fn a_session_that_is_gone_is_replaced_and_its_requests_are_not_sent() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    let seconds = clock(&mut config);
    let (client, mut peer) = connected_with(&fake, config).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let in_flight = client.submit(delete("/a"));
    peer.asked_for_something().await;

    drop(peer);
    assert_eq!(soon(in_flight).await, Err(Error::Unknown));
    let mut peer = fake.accept().await;
    peer.hello().await;
    peer.say_gone().await;
    state(&client, |state| *state == SessionState::Lost { session: SESSION }).await;
    assert_eq!(client.lease_deadline(), Duration::ZERO);
    assert_eq!(soon(client.call(exists("/a"))).await, Err(Error::NotSent));
    assert_eq!(soon(client.call_in(SESSION, exists("/a"))).await, Err(Error::SessionExpired));
    drop(peer);
    seconds.store(200, Ordering::SeqCst);
    let mut peer = fake.accept().await;
    assert_eq!(peer.hello().await.session_id, 0);
    peer.grant(SESSION + 1, TIMEOUT_MS).await;
    state(&client, |state| *state == SessionState::Connected { session: SESSION + 1 }).await;
    let (number, request) = peer.asked_for_something().await;
    assert!(matches!(request, Request::SetWatches(again) if again.persistent == ["/a"]));
    peer.answer(number, &Response::Done).await;

    assert_eq!(client.lease_deadline(), Duration::from_secs(200) + TIMEOUT);
    assert_eq!(soon(client.call_in(SESSION, exists("/a"))).await, Err(Error::SessionExpired));
    let call = client.submit_in(SESSION + 1, exists("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;
    soon(call).await.unwrap();
    assert_eq!(watch.try_next(), Some(WatchEvent::Suspended));
    assert_eq!(watch.try_next(), Some(WatchEvent::Gap(GapCause::NewSession)));
}

#[tokio::test]
async fn without_a_connection_a_request_fails_at_once_and_unsent() {
    let fake = Fake::start().await;
    let (client, peer) = connected(&fake).await;
    drop(peer);
    state(&client, is_suspended).await;

    assert_eq!(soon(client.call(delete("/a"))).await, Err(Error::NotSent));
    let watch = soon(client.watch("/a", AddWatchMode::Persistent)).await;
    assert_eq!(watch.unwrap_err(), Error::NotSent);
}

#[tokio::test(start_paused = true)]
async fn pings_go_out_when_idle_and_silence_ends_the_connection() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;
    let (start, lease) = (now(), client.lease_deadline());

    for round in 1..=5 {
        assert_eq!(peer.asked().await.unwrap(), (xid::PING, Request::Ping));
        assert_eq!(near(start.elapsed()), near(TIMEOUT / 3 * round));
        peer.answer(xid::PING, &Response::Done).await;
    }
    let in_flight = client.submit(delete("/a"));
    state(&client, is_suspended).await;

    let silent = start.elapsed().saturating_sub(TIMEOUT / 3 * 5);
    assert_eq!(near(silent), near(TIMEOUT * 2 / 3));
    assert_eq!(client.pongs(), 5);
    assert_eq!(soon(in_flight).await, Err(Error::Unknown));
    assert_eq!(client.lease_deadline(), lease, "a ping renews no lease");
}

/// In tenths of a second, so that a few milliseconds of pauses do not matter.
fn near(duration: Duration) -> u128 {
    (duration.as_millis() + 50) / 100
}

#[tokio::test]
async fn an_answer_out_of_order_costs_the_connection_and_not_the_client() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;

    let call = client.submit(delete("/a"));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number + 1, &Response::Done).await;

    assert_eq!(soon(call).await, Err(Error::Unknown));
    assert_eq!(peer.asked().await, None, "the client hangs up");
    fake.welcome(SESSION, TIMEOUT_MS).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_talks_garbage_does_not_keep_us_busy() {
    let mut tooth = vec![0xff; 40];
    tooth[..4].copy_from_slice(&36_i32.to_be_bytes());
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0; 64], &[0xff; 64], &tooth] {
        let fake = Fake::start().await;
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
async fn a_server_that_takes_us_in_only_to_drop_us_does_not_keep_us_busy() {
    let fake = Fake::start().await;
    let (_client, peer) = connected(&fake).await;
    drop(peer);

    let mut accepted = 0;
    let minute = async {
        loop {
            let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
            let (number, _) = peer.asked_for_something().await;
            peer.answer(number, &synced()).await;
            accepted += 1;
        }
    };
    let over: Result<(), _> = timeout(Duration::from_mins(1), minute).await;

    assert!(over.is_err());
    assert!((200..=700).contains(&accepted), "{accepted} connections in a minute");
}

#[tokio::test]
async fn nonsense_on_a_living_connection_costs_the_connection_and_not_the_client() {
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
        let fake = Fake::start().await;
        let (client, mut peer) = connected(&fake).await;

        peer.raw(&case).await;

        assert_eq!(peer.asked().await, None, "{case:?}");
        let _peer = fake.welcome(SESSION, TIMEOUT_MS).await;
        state(&client, is_connected).await;
    }
}

#[tokio::test]
async fn refused_credentials_are_final() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.auth.push(Credentials { scheme: "bad".into(), secret: "secret".into() });
    let refuse = async {
        let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
        peer.asked().await.unwrap();
        peer.refuse(xid::AUTH, Code::AUTH_FAILED).await;
    };
    let (client, ()) = tokio::join!(Client::connect(config.clone()), refuse);

    let error = client.unwrap_err();
    let expected = format!("{} refused our bad credentials", fake.address());
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("secret"));

    let accept = async {
        let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
        peer.asked().await.unwrap();
        peer.answer_at(xid::AUTH, 0, &Response::Done).await;
        peer
    };
    let (client, mut peer) = tokio::join!(Client::connect(config), accept);
    let client = client.unwrap();
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    drop(peer);
    let mut peer = fake.welcome(SESSION, TIMEOUT_MS).await;
    peer.asked().await.unwrap();
    peer.refuse(xid::AUTH, Code::AUTH_FAILED).await;

    state(&client, |state| *state == SessionState::AuthFailed).await;
    assert_eq!(soon(client.call(exists("/a"))).await, Err(Error::AuthFailed));
    assert_eq!(soon(watch.next()).await, Some(WatchEvent::Suspended));
    assert_eq!(soon(watch.next()).await, None);
}

#[tokio::test]
async fn the_last_watch_dropped_is_removed_on_the_server() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;
    let first = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let second = watched(&client, &mut peer, AddWatchMode::Persistent).await;

    drop(first);
    let call = client.submit(exists("/mark"));
    let (number, request) = peer.asked_for_something().await;
    assert_eq!(request, exists("/mark"), "one is left");
    peer.answer(number, &found()).await;
    soon(call).await.unwrap();
    drop(second);

    let (_, request) = peer.asked_for_something().await;
    assert_eq!(request, Request::RemoveWatches { path: "/a".into(), kind: WatcherType::Any });
}

#[tokio::test]
async fn what_would_silently_end_a_watch_is_refused() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;
    let _watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let conflict = Error::WatchConflict { path: "/a".into() };

    let other_mode = soon(client.watch("/a", AddWatchMode::PersistentRecursive)).await;
    let one_shot = client.call(Request::GetData { path: "/a".into(), watch: true });

    assert_eq!(other_mode.unwrap_err(), conflict);
    assert_eq!(soon(one_shot).await, Err(conflict));
}

#[tokio::test]
async fn what_no_server_takes_is_refused_here() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.max_frame = 100;
    let (client, mut peer) = connected_with(&fake, config).await;

    let large = client.submit(exists(&"x".repeat(88)));
    let fits = client.submit(exists(&"x".repeat(87)));
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;

    assert_eq!(soon(large).await, Err(Error::TooLarge { length: 101, limit: 100 }));
    soon(fits).await.unwrap();
}

#[tokio::test]
async fn closing_lets_everything_before_it_finish() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;

    let before = client.submit(delete("/a"));
    let serve = async {
        let (number, _) = peer.asked_for_something().await;
        peer.answer(number, &Response::Done).await;
        let (number, request) = peer.asked_for_something().await;
        assert_eq!(request, Request::CloseSession);
        peer.answer(number, &Response::Done).await;
    };
    soon(async { tokio::join!(client.close(), serve) }).await;

    soon(before).await.unwrap();
    assert_eq!(soon(client.call(exists("/a"))).await, Err(Error::Closed));
    assert_eq!(client.session().state, SessionState::Closed);
    assert_eq!(soon(watch.next()).await, None);
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_ever() {
    let fake = Fake::start().await;
    let mut config = config(&[fake.address()]);
    config.connect_timeout = Duration::from_millis(500);
    let (client, _peer) = connected_with(&fake, config).await;
    let in_flight = client.submit(delete("/a"));
    let start = now();

    client.close().await;

    assert_eq!(near(start.elapsed()), near(Duration::from_millis(500)));
    assert_eq!(soon(in_flight).await, Err(Error::Unknown));
    assert_eq!(client.session().state, SessionState::Closed);
}

#[test]
fn a_runtime_that_goes_away_leaves_nobody_waiting() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (client, mut watch, in_flight) = first.block_on(async {
        let fake = Fake::start().await;
        let (client, mut peer) = connected(&fake).await;
        let watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
        let in_flight = client.submit(delete("/a"));
        peer.asked_for_something().await;
        (client, watch, in_flight)
    });

    drop(first);

    runtime().block_on(async {
        assert_eq!(soon(in_flight).await, Err(Error::Unknown));
        assert_eq!(soon(client.call(exists("/a"))).await, Err(Error::Closed));
        assert_eq!(soon(watch.next()).await, None);
        soon(client.close()).await;
    });
}

#[tokio::test]
async fn the_last_handle_dropped_closes_the_session_even_if_a_watch_is_left() {
    let fake = Fake::start().await;
    let (client, mut peer) = connected(&fake).await;
    let mut watch = watched(&client, &mut peer, AddWatchMode::Persistent).await;
    let clone = client.clone();

    drop(client);
    let before = clone.submit(exists("/a"));
    drop(clone);
    let (number, _) = peer.asked_for_something().await;
    peer.answer(number, &found()).await;
    let (number, request) = peer.asked_for_something().await;
    peer.answer(number, &Response::Done).await;

    assert_eq!(request, Request::CloseSession);
    soon(before).await.unwrap();
    assert_eq!(soon(watch.next()).await, None);
    assert_eq!(peer.asked().await, None);
}

#[tokio::test]
async fn a_dead_server_is_passed_over() {
    let fake = Fake::start().await;
    for _ in 0..8 {
        let servers = [deserted().await, fake.address()];

        let (client, _peer) = connected_with(&fake, config(&servers)).await;

        assert_eq!(client.session().id, SESSION);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_swallows_everything_is_passed_over() {
    let (mute, fake) = (Fake::start().await, Fake::start().await);
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
async fn when_nobody_listens_the_error_names_whom_we_tried() {
    let (one, two) = (deserted().await, deserted().await);
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
async fn a_configuration_that_cannot_work_is_refused_at_once() {
    let nobody: [&str; 0] = [];

    let no_servers = Client::connect(config(&nobody)).await.unwrap_err();
    let bad_server = Client::connect(config(&["localhost"])).await.unwrap_err();

    assert!(matches!(no_servers, ConnectError::NoServers));
    assert_eq!(bad_server.to_string(), "\"localhost\" is not host:port");
}
