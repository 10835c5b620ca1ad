//! Sessions: opening, keeping alive, moving and expiring.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tinykeeper::{
    server::Server,
    wire::{Code, ConnectRequest, CreateMode, EventKind, PASSWORD_LEN, Request, Response, frame},
};
use tokio::time::timeout;

use super::{
    log::Log,
    raw::{RawClient, create, create_as, exists, get, new_session_request},
    serve,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// A server that grants arbitrarily short session timeouts.
async fn server() -> Server {
    serve(|config| config.min_session_timeout = Duration::from_millis(1)).await
}

/// A client with a watch on `path`.
async fn watcher_of(server: &Server, path: &str) -> RawClient {
    let mut watcher = RawClient::connect(server.address()).await;
    let watch = Request::Exists { path: path.to_owned(), watch: true };
    watcher.call(&watch).await.expect("it is there");
    watcher
}

async fn is_there(server: &Server, path: &str) -> bool {
    let mut client = RawClient::connect(server.address()).await;
    client.call(&exists(path)).await.is_ok()
}

#[tokio::test]
async fn session_timeout_is_clamped_to_the_configured_bounds() {
    let server = serve(|config| {
        config.min_session_timeout = 2 * SECOND;
        config.max_session_timeout = 20 * SECOND;
    })
    .await;

    for (wished, granted) in [(-1, 2000), (0, 2000), (1999, 2000), (7123, 7123), (20_001, 20_000)] {
        let mut client = RawClient::open(server.address()).await;
        let request = ConnectRequest { timeout_ms: wished, ..new_session_request(SECOND) };

        let response = client.handshake(&request).await.unwrap();

        assert_eq!(response.timeout_ms, granted, "{wished} ms were wished");
    }
}

#[tokio::test]
async fn every_session_has_its_own_id_and_password() {
    let server = server().await;

    let one = RawClient::connect(server.address()).await;
    let other = RawClient::connect(server.address()).await;

    assert!(one.session > 0 && other.session > 0);
    assert_ne!(one.session, other.session);
    assert_ne!(one.password, other.password);
    assert_eq!(one.password.len(), PASSWORD_LEN);
}

#[tokio::test]
async fn resumed_session_keeps_its_id_and_ephemerals() {
    let server = server().await;
    let mut before = RawClient::connect(server.address()).await;
    let stat = before.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    before.shutdown_write().await;
    before.wait_closed().await;

    let mut after = before.resume(server.address()).await;

    assert_eq!((after.session, &after.password), (before.session, &before.password));
    assert_eq!(after.stat(&exists("/mine")).await, stat);
    assert_eq!(stat.ephemeral_owner, after.session);
}

#[tokio::test]
async fn wrong_password_gets_the_response_of_an_expired_session() {
    let server = server().await;
    let mut owner = RawClient::connect(server.address()).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;

    for password in [&[0; PASSWORD_LEN][..], b"", &owner.password[1..]] {
        let mut thief = RawClient::open(server.address()).await;
        let request =
            ConnectRequest { password: Bytes::copy_from_slice(password), ..owner.resume_request() };
        let response = thief.handshake(&request).await.expect("a reply");
        assert_eq!((response.session_id, response.timeout_ms), (0, 0));
        assert_eq!(response.password, [0; PASSWORD_LEN][..]);
        thief.wait_closed().await;
    }

    assert_eq!(owner.stat(&exists("/mine")).await.ephemeral_owner, owner.session);
}

#[tokio::test]
async fn unknown_session_is_reported_as_expired() {
    let server = server().await;
    let mut client = RawClient::open(server.address()).await;

    let request = ConnectRequest { session_id: 4711, ..new_session_request(SECOND) };
    let response = client.handshake(&request).await.expect("a reply");

    assert_eq!((response.session_id, response.timeout_ms), (0, 0));
    client.wait_closed().await;
}

#[tokio::test]
async fn session_moves_to_its_newest_connection() {
    let server = server().await;
    let mut old = RawClient::connect(server.address()).await;
    old.stat(&create_as("/mine", CreateMode::Ephemeral)).await;

    let mut new = old.resume(server.address()).await;
    old.submit(&create("/late")).await;
    old.wait_closed().await;

    assert_eq!(new.call(&exists("/late")).await, Err(Code::NO_NODE));
    assert_eq!(new.stat(&exists("/mine")).await.ephemeral_owner, new.session);
}

#[tokio::test]
async fn silent_session_expires_after_its_timeout() {
    let server = server().await;
    let mut owner = RawClient::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;
    // The timeout counts from here, give or take the network latency.
    owner.call(&Request::Ping).await.unwrap();

    watcher.expect_silence(SECOND / 2).await;
    let event = timeout(2 * SECOND, watcher.event()).await.expect("expires soon after the timeout");

    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
    owner.wait_closed().await;
    let mut returning = RawClient::open(server.address()).await;
    let response = returning.handshake(&owner.resume_request()).await.expect("a reply");
    assert_eq!((response.session_id, response.timeout_ms), (0, 0));
}

#[tokio::test]
async fn disconnected_session_expires_after_its_timeout() {
    let server = server().await;
    let mut owner = RawClient::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;
    owner.call(&Request::Ping).await.unwrap();

    drop(owner);

    watcher.expect_silence(SECOND / 2).await;
    let event = timeout(2 * SECOND, watcher.event()).await.expect("expires soon after the timeout");
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
}

#[tokio::test]
async fn ping_keeps_a_session_alive() {
    let server = server().await;
    let mut owner = RawClient::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;

    for _ in 0..10 {
        owner.call(&Request::Ping).await.expect("the session lives");
        watcher.expect_silence(SECOND / 4).await;
    }

    assert!(is_there(&server, "/mine").await);
}

#[tokio::test]
async fn closing_a_session_deletes_its_ephemerals_at_once() {
    let server = server().await;
    let mut owner = RawClient::connect(server.address()).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    owner.stat(&create("/public")).await;
    let mut watcher = watcher_of(&server, "/mine").await;

    let closed = owner.request(&Request::CloseSession).await;

    assert_eq!(closed.result, Ok(Response::Empty));
    let event = watcher.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
    assert_eq!(event.zxid, closed.zxid, "the end of a session is one transaction");
    assert!(is_there(&server, "/public").await);
    owner.wait_closed().await;
    let mut returning = RawClient::open(server.address()).await;
    assert_eq!(returning.handshake(&owner.resume_request()).await.unwrap().session_id, 0);
}

#[tokio::test]
async fn client_ahead_of_a_server_with_data_is_refused() {
    let log = Log::capture();
    let dir = tempfile::TempDir::new().unwrap();
    let server = serve(|config| config.data = Some(dir.path().to_owned())).await;
    let mut other = RawClient::connect(server.address()).await;
    let newest = other.request(&create("/a")).await.zxid;

    let mut ahead = RawClient::open(server.address()).await;
    let request = ConnectRequest { last_zxid_seen: newest + 1, ..new_session_request(SECOND) };
    assert_eq!(ahead.handshake(&request).await, None);
    let mut abreast = RawClient::open(server.address()).await;
    let request = ConnectRequest { last_zxid_seen: newest, ..new_session_request(SECOND) };

    assert!(abreast.handshake(&request).await.is_some());
    log.wait_for_line(&["refused", "client is ahead of this server"]).await;
}

#[tokio::test]
async fn client_ahead_of_a_server_without_data_gets_larger_zxids() {
    let log = Log::capture();
    let server = server().await;
    let mut other = RawClient::connect(server.address()).await;
    // The client saw a transaction of the server's previous start, when the clock was an hour ahead.
    let last_zxid_seen = other.request(&create("/a")).await.zxid + zxids_of(HOUR);

    let mut ahead = RawClient::open(server.address()).await;
    let request = ConnectRequest { last_zxid_seen, ..new_session_request(40 * SECOND) };

    assert!(ahead.handshake(&request).await.is_some());
    let zxid = ahead.request(&create("/b")).await.zxid;
    assert!(zxid > last_zxid_seen, "{zxid:#x} after {last_zxid_seen:#x}");
    log.wait_for_line(&["WARN", "was the clock set back?"]).await;
}

#[tokio::test]
async fn client_years_ahead_of_a_server_without_data_is_refused() {
    let log = Log::capture();
    let server = server().await;
    let mut other = RawClient::connect(server.address()).await;
    let newest = other.request(&create("/a")).await.zxid;

    for last_zxid_seen in [newest + zxids_of(2 * 366 * 24 * HOUR), i64::MAX] {
        let mut ahead = RawClient::open(server.address()).await;
        let request = ConnectRequest { last_zxid_seen, ..new_session_request(SECOND) };
        assert_eq!(ahead.handshake(&request).await, None);
    }

    log.wait_for_line(&["refused", "client is ahead of this server"]).await;
    let next = other.request(&create("/b")).await.zxid;
    assert!(next < newest + zxids_of(HOUR), "{next:#x} after {newest:#x}");
}

/// By how much the first zxid of a server in memory grows in this time.
fn zxids_of(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap() << 22
}

#[tokio::test]
async fn response_has_the_read_only_field_only_if_the_request_has_it() {
    const WITHOUT_READ_ONLY: usize = 4 + 4 + 8 + 4 + PASSWORD_LEN;
    let server = server().await;

    for (read_only, length) in [(None, WITHOUT_READ_ONLY), (Some(true), WITHOUT_READ_ONLY + 1)] {
        let mut client = RawClient::open(server.address()).await;
        let request = ConnectRequest { read_only, ..new_session_request(SECOND) };
        let mut bytes = BytesMut::new();
        frame::write(&mut bytes, |out| request.encode(out));
        client.send_bytes(&bytes).await;

        let reply = client.frame().await.expect("a reply");

        assert_eq!(reply.len(), length);
        assert!(client.call(&get("/zookeeper/quota")).await.is_ok());
    }
}

#[tokio::test]
async fn zxids_and_session_ids_grow_across_restarts_in_memory() {
    let (mut newest, mut last_session) = (0, 0);
    for _ in 0..20 {
        let server = serve(|_| {}).await;
        let mut client = RawClient::connect(server.address()).await;

        let first = client.request(&create("/a")).await.zxid;

        assert!(first > newest, "{first:#x} after {newest:#x}");
        assert!(client.session > last_session);
        newest = client.request(&create("/b")).await.zxid;
        last_session = client.session;
        // Dropped, because that is the fastest stop: the clock hardly advances before the next start.
        drop(server);
    }
}
