//! Sessions: granted, kept alive, moved, lost.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tinykeeper::{
    server::Server,
    wire::{Code, ConnectRequest, CreateMode, EventKind, PASSWORD_LEN, Request, Response, frame},
};
use tokio::time::timeout;

use super::{
    log::Log,
    raw::{Raw, create, create_as, exists, get, newcomer},
    serve,
};

const SECOND: Duration = Duration::from_secs(1);

/// A server that grants sessions as short as a test likes.
async fn server() -> Server {
    serve(|config| config.min_session_timeout = Duration::from_millis(1)).await
}

/// Somebody who is told when `path` changes.
async fn watcher_of(server: &Server, path: &str) -> Raw {
    let mut watcher = Raw::connect(server.address()).await;
    let watch = Request::Exists { path: path.to_owned(), watch: true };
    watcher.call(&watch).await.expect("it is there");
    watcher
}

async fn is_there(server: &Server, path: &str) -> bool {
    let mut client = Raw::connect(server.address()).await;
    client.call(&exists(path)).await.is_ok()
}

#[tokio::test]
async fn a_timeout_is_granted_within_the_servers_bounds() {
    let server = serve(|config| {
        config.min_session_timeout = 2 * SECOND;
        config.max_session_timeout = 20 * SECOND;
    })
    .await;

    for (wished, granted) in [(-1, 2000), (0, 2000), (1999, 2000), (7123, 7123), (20_001, 20_000)] {
        let mut client = Raw::dial(server.address()).await;
        let request = ConnectRequest { timeout_ms: wished, ..newcomer(SECOND) };

        let response = client.hello(&request).await.unwrap();

        assert_eq!(response.timeout_ms, granted, "{wished} ms were wished");
    }
}

#[tokio::test]
async fn every_session_has_its_own_number_and_password() {
    let server = server().await;

    let one = Raw::connect(server.address()).await;
    let other = Raw::connect(server.address()).await;

    assert!(one.session > 0 && other.session > 0);
    assert_ne!(one.session, other.session);
    assert_ne!(one.password, other.password);
    assert_eq!(one.password.len(), PASSWORD_LEN);
}

#[tokio::test]
async fn a_session_taken_up_again_is_the_same_and_keeps_its_ephemerals() {
    let server = server().await;
    let mut before = Raw::connect(server.address()).await;
    let stat = before.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    before.hang_up().await;
    before.ended().await;

    let mut after = before.resume(server.address()).await;

    assert_eq!((after.session, &after.password), (before.session, &before.password));
    assert_eq!(after.stat(&exists("/mine")).await, stat);
    assert_eq!(stat.ephemeral_owner, after.session);
}

#[tokio::test]
async fn a_wrong_password_gets_the_answer_of_an_expired_session_and_harms_nobody() {
    let server = server().await;
    let mut owner = Raw::connect(server.address()).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;

    for password in [&[0; PASSWORD_LEN][..], b"", &owner.password[1..]] {
        let mut thief = Raw::dial(server.address()).await;
        let request =
            ConnectRequest { password: Bytes::copy_from_slice(password), ..owner.returning() };
        let response = thief.hello(&request).await.expect("an answer");
        assert_eq!((response.session_id, response.timeout_ms), (0, 0));
        assert_eq!(response.password, [0; PASSWORD_LEN][..]);
        thief.ended().await;
    }

    assert_eq!(owner.stat(&exists("/mine")).await.ephemeral_owner, owner.session);
}

#[tokio::test]
async fn a_session_that_never_was_has_expired() {
    let server = server().await;
    let mut client = Raw::dial(server.address()).await;

    let request = ConnectRequest { session_id: 4711, ..newcomer(SECOND) };
    let response = client.hello(&request).await.expect("an answer");

    assert_eq!((response.session_id, response.timeout_ms), (0, 0));
    client.ended().await;
}

#[tokio::test]
async fn a_session_speaks_through_its_newest_connection_only() {
    let server = server().await;
    let mut old = Raw::connect(server.address()).await;
    old.stat(&create_as("/mine", CreateMode::Ephemeral)).await;

    let mut new = old.resume(server.address()).await;
    old.submit(&create("/late")).await;
    old.ended().await;

    assert_eq!(new.call(&exists("/late")).await, Err(Code::NO_NODE));
    assert_eq!(new.stat(&exists("/mine")).await.ephemeral_owner, new.session);
}

#[tokio::test]
async fn a_silent_session_ends_after_its_timeout_and_not_before() {
    let server = server().await;
    let mut owner = Raw::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;
    // The session counts from here, give or take the way to the server.
    owner.call(&Request::Ping).await.unwrap();

    watcher.hears_nothing_for(SECOND / 2).await;
    let event = timeout(2 * SECOND, watcher.event()).await.expect("soon after the timeout");

    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
    owner.ended().await;
    let mut returning = Raw::dial(server.address()).await;
    let response = returning.hello(&owner.returning()).await.expect("an answer");
    assert_eq!((response.session_id, response.timeout_ms), (0, 0));
}

#[tokio::test]
async fn a_session_whose_connection_broke_ends_after_its_timeout() {
    let server = server().await;
    let mut owner = Raw::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;
    owner.call(&Request::Ping).await.unwrap();

    drop(owner);

    watcher.hears_nothing_for(SECOND / 2).await;
    let event = timeout(2 * SECOND, watcher.event()).await.expect("soon after the timeout");
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
}

#[tokio::test]
async fn a_ping_keeps_a_session_alive() {
    let server = server().await;
    let mut owner = Raw::connect_for(server.address(), SECOND).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    let mut watcher = watcher_of(&server, "/mine").await;

    for _ in 0..10 {
        owner.call(&Request::Ping).await.expect("the session lives");
        watcher.hears_nothing_for(SECOND / 4).await;
    }

    assert!(is_there(&server, "/mine").await);
}

#[tokio::test]
async fn a_closed_session_takes_its_ephemerals_with_it_at_once() {
    let server = server().await;
    let mut owner = Raw::connect(server.address()).await;
    owner.stat(&create_as("/mine", CreateMode::Ephemeral)).await;
    owner.stat(&create("/everybodys")).await;
    let mut watcher = watcher_of(&server, "/mine").await;

    let closed = owner.ask(&Request::CloseSession).await;

    assert_eq!(closed.result, Ok(Response::Empty));
    let event = watcher.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/mine"));
    assert_eq!(event.zxid, closed.zxid, "the end of a session is one transaction");
    assert!(is_there(&server, "/everybodys").await);
    owner.ended().await;
    let mut returning = Raw::dial(server.address()).await;
    assert_eq!(returning.hello(&owner.returning()).await.unwrap().session_id, 0);
}

#[tokio::test]
async fn a_client_that_has_seen_the_future_is_refused() {
    let log = Log::capture();
    let server = server().await;
    let mut other = Raw::connect(server.address()).await;
    let newest = other.ask(&create("/a")).await.zxid;

    let mut ahead = Raw::dial(server.address()).await;
    let request = ConnectRequest { last_zxid_seen: newest + 1, ..newcomer(SECOND) };
    assert_eq!(ahead.hello(&request).await, None);
    let mut abreast = Raw::dial(server.address()).await;
    let request = ConnectRequest { last_zxid_seen: newest, ..newcomer(SECOND) };

    assert!(abreast.hello(&request).await.is_some());
    log.says(&["refused", "client is ahead of this server"]).await;
}

#[tokio::test]
async fn a_client_from_before_read_only_servers_is_answered_in_its_own_words() {
    const WITHOUT_READ_ONLY: usize = 4 + 4 + 8 + 4 + PASSWORD_LEN;
    let server = server().await;

    for (read_only, length) in [(None, WITHOUT_READ_ONLY), (Some(true), WITHOUT_READ_ONLY + 1)] {
        let mut client = Raw::dial(server.address()).await;
        let request = ConnectRequest { read_only, ..newcomer(SECOND) };
        let mut bytes = BytesMut::new();
        frame::write(&mut bytes, |out| request.encode(out));
        client.send_bytes(&bytes).await;

        let answer = client.frame().await.expect("an answer");

        assert_eq!(answer.len(), length);
        assert!(client.call(&get("/zookeeper/quota")).await.is_ok());
    }
}

#[tokio::test]
async fn numbers_of_transactions_and_sessions_only_grow_over_restarts_in_memory() {
    let (mut newest, mut last_session) = (0, 0);
    for _ in 0..20 {
        let server = serve(|_| {}).await;
        let mut client = Raw::connect(server.address()).await;

        let first = client.ask(&create("/a")).await.zxid;

        assert!(first > newest, "{first:#x} after {newest:#x}");
        assert!(client.session > last_session);
        newest = client.ask(&create("/b")).await.zxid;
        last_session = client.session;
        // Dropped, because that is fastest: the clock has hardly moved when the next one starts.
        drop(server);
    }
}
