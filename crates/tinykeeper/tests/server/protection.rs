//! Protection against untrusted, broken and overly demanding peers: their connection is closed with a log message, and the server
//! continues.

use std::{ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};
use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};
use tinykeeper::{
    server::Server,
    wire::{AddWatchMode, Code, CreateMode, Request, Response, frame, op},
};
use tokio::task::JoinSet;

use super::{
    log::Log,
    process::Process,
    raw::{RawClient, create, create_as, delete, encode, get, new_session_request, set},
    serve, within_timeout,
};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(200);

/// Checks that the server works: a new client gets a session and a response.
async fn check_serves(server: &Server) {
    let mut client = RawClient::connect(server.address()).await;
    client.call(&get("/zookeeper/quota")).await.expect("a reply");
    client.call(&Request::CloseSession).await.expect("a reply");
}

/// A request whose frame has this many bytes.
fn request_of(length: usize) -> Request {
    let fixed = {
        let mut out = BytesMut::new();
        encode(&mut out, 0, &set("/a", Bytes::new()));
        out.len() - 4
    };
    set("/a", vec![b'x'; length - fixed])
}

#[tokio::test]
async fn frame_over_the_limit_ends_the_connection() {
    for limit in [1000, frame::DEFAULT_LIMIT] {
        let log = Log::capture();
        let server = serve(|config| config.max_frame = limit).await;
        let mut client = RawClient::connect(server.address()).await;
        client.call(&create("/a")).await.unwrap();

        assert!(client.call(&request_of(limit)).await.is_ok(), "{limit} bytes");
        client.submit(&request_of(limit + 1)).await;
        client.wait_closed().await;

        let length = format!("a frame of {} bytes", limit + 1);
        log.wait_for_line(&["connection closed", &length, "outside the limit"]).await;
        check_serves(&server).await;
    }
}

#[tokio::test]
async fn invalid_frame_length_ends_the_connection_before_allocating() {
    for length in [-1, i32::MIN, i32::MAX] {
        let log = Log::capture();
        let server = serve(|_| {}).await;
        let mut stranger = RawClient::open(server.address()).await;
        let mut client = RawClient::connect(server.address()).await;

        stranger.send_bytes(&length.to_be_bytes()).await;
        client.send_bytes(&length.to_be_bytes()).await;

        stranger.wait_closed().await;
        client.wait_closed().await;
        log.wait_for_line(&["connection closed", &format!("a frame of {length} bytes")]).await;
        check_serves(&server).await;
    }
}

#[tokio::test]
async fn garbage_ends_only_its_own_connection() {
    let log = Log::capture();
    let server = serve(|_| {}).await;

    for seed in 0..100 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut garbage = vec![0; random.random_range(1..2000)];
        random.fill_bytes(&mut garbage);
        let mut framed = BytesMut::new();
        frame::write(&mut framed, |out| out.extend_from_slice(&garbage));

        // As the first bytes, as a first frame, and as a request.
        let mut unframed = RawClient::open(server.address()).await;
        unframed.send_bytes(&garbage).await;
        let mut hello = RawClient::open(server.address()).await;
        hello.send_bytes(&framed).await;
        let mut request = RawClient::connect(server.address()).await;
        request.send_bytes(&framed).await;

        for mut client in [unframed, hello, request] {
            client.shutdown_write().await;
            // The random bytes may happen to be a valid request.
            while client.frame().await.is_some() {}
        }
        check_serves(&server).await;
    }
    log.wait_for_line(&["connection closed", "invalid data"]).await;
}

#[tokio::test]
async fn truncated_request_ends_the_connection() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let mut whole = BytesMut::new();
    encode(&mut whole, 1, &create("/a"));
    let short = &whole[4..whole.len() - 1];

    let mut bytes = BytesMut::new();
    frame::write(&mut bytes, |out| out.extend_from_slice(short));
    client.send_bytes(&bytes).await;

    client.wait_closed().await;
    log.wait_for_line(&["connection closed", "invalid data: record ends inside flags"]).await;
    check_serves(&server).await;
}

#[tokio::test]
async fn connection_without_a_handshake_is_closed() {
    let log = Log::capture();
    let server = serve(|config| config.io_timeout = MOMENT).await;
    let mut hello = BytesMut::new();
    frame::write(&mut hello, |out| new_session_request(SECOND).encode(out));

    for said in [&b""[..], b"ru", &hello[..4], &hello[..hello.len() - 1]] {
        let mut client = RawClient::open(server.address()).await;
        client.send_bytes(said).await;

        client.wait_closed().await;
    }

    log.wait_for_line(&["connection closed", "no complete handshake in time"]).await;
    check_serves(&server).await;
}

#[tokio::test]
async fn incomplete_request_does_not_keep_the_session_alive() {
    let log = Log::capture();
    let server = serve(|config| config.min_session_timeout = MOMENT).await;
    let mut client = RawClient::connect_for(server.address(), MOMENT).await;
    client.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();
    let mut whole = BytesMut::new();
    encode(&mut whole, 7, &create("/a"));

    client.send_bytes(&whole[..whole.len() / 2]).await;

    client.wait_closed().await;
    log.wait_for_line(&["session expired"]).await;
    log.wait_for_line(&["connection closed", "its session moved or ended"]).await;
    let mut other = RawClient::connect(server.address()).await;
    assert_eq!(other.call(&get("/mine")).await, Err(Code::NO_NODE));
    assert_eq!(other.call(&get("/a")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn incomplete_request_before_a_disconnect_has_no_effect() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let mut whole = BytesMut::new();
    encode(&mut whole, 7, &create("/a"));
    client.send_bytes(&whole[..whole.len() - 1]).await;

    client.shutdown_write().await;

    client.wait_closed().await;
    log.wait_for_line(&["connection ended"]).await;
    let mut again = client.resume(server.address()).await;
    assert_eq!(again.session, client.session);
    assert_eq!(again.call(&get("/a")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn client_with_unread_notifications_is_aborted_while_others_are_served() {
    let log = Log::capture();
    let server = serve(|config| config.max_outbox = 1 << 20).await;
    let watch = Request::AddWatch { path: "/".into(), mode: AddWatchMode::PersistentRecursive };
    let mut lazy = Vec::new();
    for _ in 0..3 {
        let mut client = RawClient::connect(server.address()).await;
        client.call(&watch).await.unwrap();
        lazy.push(client);
    }
    let mut busy = RawClient::connect(server.address()).await;
    let path = format!("/{}", "x".repeat(100_000));

    // Each of these causes a notification of 100 kB. The kernel buffers a few megabytes, the outbox the rest.
    for _ in 0..200 {
        busy.call(&create(&path)).await.expect("a reply");
        busy.call(&delete(&path)).await.expect("a reply");
    }

    let line = ["WARN", "connection aborted: too many unread bytes", "peer=127.0.0.1:"];
    log.wait_for_line(&line).await;
    log.wait_for_line(&["connection closed", "aborted: too many unread bytes"]).await;
    for client in &mut lazy {
        client.wait_closed().await;
    }
    check_serves(&server).await;
    assert_eq!(log.count_lines(&line), 1, "further ones are counted");
}

#[tokio::test]
async fn client_that_never_reads_is_closed_after_the_io_timeout() {
    let log = Log::capture();
    let server = serve(|config| config.io_timeout = SECOND).await;
    let mut heavy_client = heavy_client(&server).await;
    request_large(&mut heavy_client, 0..100).await;

    log.wait_for_line(&["connection closed", "the peer does not read its replies"]).await;

    check_serves(&server).await;
    let mut replies = 0;
    while heavy_client.incoming().await.is_some() {
        replies += 1;
    }
    assert!(replies < 100, "all {replies} replies fit into the kernel");
}

/// A client that has created a large node.
async fn heavy_client(server: &Server) -> RawClient {
    let mut client = RawClient::connect(server.address()).await;
    client.call(&create("/large")).await.unwrap();
    client.call(&set("/large", vec![b'x'; 1_000_000])).await.unwrap();
    client
}

/// Requests a megabyte with each of these request numbers, all at once, and reads nothing.
async fn request_large(client: &mut RawClient, numbers: Range<i32>) {
    let mut asked = BytesMut::new();
    for xid in numbers {
        encode(&mut asked, xid, &get("/large"));
        client.expect_reply(xid, op::GET_DATA);
    }
    client.send_bytes(&asked).await;
}

#[tokio::test]
async fn client_with_many_large_requests_is_throttled_not_aborted() {
    let server = serve(|config| config.max_outbox = 4 << 20).await;

    let mut heavy_client = heavy_client(&server).await;

    request_large(&mut heavy_client, 0..50).await;
    check_serves(&server).await;
    request_large(&mut heavy_client, 50..100).await;
    check_serves(&server).await;

    for xid in 0..100 {
        let reply = heavy_client.reply().await;
        assert_eq!(reply.xid, xid);
        assert!(
            matches!(reply.result, Ok(Response::Data { data: Some(data), .. }) if data.len() == 1_000_000)
        );
    }
}

#[tokio::test]
async fn unread_responses_do_not_exhaust_memory() {
    const ANSWERS: usize = 5000;
    let process = Process::start(&[]).await;
    let mut client = RawClient::connect(process.address).await;
    client.call(&create("/large")).await.unwrap();
    client.call(&set("/large", vec![b'x'; 1_000_000])).await.unwrap();
    let before = process.peak_memory();

    // The responses would be ten gigabytes. The clients cannot send all their requests, because the server stops reading them.
    let mut heavy_client = JoinSet::new();
    for _ in 0..2 {
        let mut raw = RawClient::connect(process.address).await;
        heavy_client.spawn(async move {
            let mut asked = BytesMut::new();
            (0..ANSWERS).for_each(|xid| encode(&mut asked, xid as i32, &get("/large")));
            raw.send_bytes(&asked).await;
            // Keeps the connection open until the end of the test.
            std::future::pending::<()>().await;
        });
    }
    for _ in 0..200 {
        client.call(&set("/zookeeper/quota", "still here")).await.expect("a reply");
        client.call(&get("/large")).await.expect("a reply");
    }

    let grown = process.peak_memory() - before;
    assert!(grown < 200 << 20, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn connection_over_the_limit_is_refused_until_another_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_connections = 3).await;
    let mut first = RawClient::connect(server.address()).await;
    let mut others =
        [RawClient::connect(server.address()).await, RawClient::open(server.address()).await];

    let mut refused = RawClient::open(server.address()).await;
    assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);

    log.wait_for_line(&["refused: too many connections", "max_connections=3"]).await;
    first.call(&get("/zookeeper")).await.expect("open connections are served");
    others[1]
        .handshake(&new_session_request(SECOND))
        .await
        .expect("an open connection may still handshake");
    first.call(&Request::CloseSession).await.unwrap();
    within_timeout(async {
        while RawClient::open(server.address())
            .await
            .handshake(&new_session_request(SECOND))
            .await
            .is_none()
        {}
    })
    .await;
}

#[tokio::test]
async fn session_over_the_limit_is_refused_until_another_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_sessions = 2).await;
    let mut first = RawClient::connect(server.address()).await;
    let second = RawClient::connect(server.address()).await;

    let mut refused = RawClient::open(server.address()).await;
    assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);

    log.wait_for_line(&["refused: too many sessions", "max_sessions=2"]).await;
    first.call(&get("/zookeeper")).await.expect("open sessions are served");
    let again = second.resume(server.address()).await;
    assert_eq!(again.session, second.session, "resuming a session opens no new one");
    first.call(&Request::CloseSession).await.unwrap();
    let mut now = RawClient::open(server.address()).await;
    assert!(now.handshake(&new_session_request(SECOND)).await.is_some());
}

#[tokio::test]
async fn silent_connection_does_not_delay_shutdown() {
    let server = serve(|config| config.io_timeout = 1000 * SECOND).await;
    let mut silent = RawClient::open(server.address()).await;
    let mut client = RawClient::connect(server.address()).await;
    client.call(&get("/zookeeper")).await.unwrap();

    within_timeout(server.shutdown()).await.unwrap();

    silent.wait_closed().await;
    client.wait_closed().await;
}
