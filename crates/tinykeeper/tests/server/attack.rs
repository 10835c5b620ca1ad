//! Attacks by clients that need no password: few bytes that would cost the server much time or memory, or take what others need.

use std::time::Duration;

use tinykeeper::{
    server::Config,
    tree::{MAX_ACL_ENTRIES, MAX_ID_BYTES},
    wire::{
        Acl, AddWatchMode, AuthId, Code, Op, Perms, ReadOp, Request, Response, SetWatches, frame,
    },
};

use super::{
    log::Log,
    raw::{RawClient, create, create_for, exists, get, new_session_request, set},
    send_word, serve, within_timeout,
};

const SECOND: Duration = Duration::from_secs(1);

/// This many different entries, of which the last allows everything to everyone.
fn entries(count: usize) -> Vec<Acl> {
    let digest = |number| AuthId { scheme: "digest".into(), id: format!("u{number}:x") };
    let closed = (1..count).map(|number| Acl { perms: Perms::READ, id: digest(number) });
    closed.chain(Acl::open()).collect()
}

fn auth(user: &str) -> Request {
    Request::Auth { scheme: "digest".into(), auth: format!("{user}:secret").into() }
}

#[tokio::test]
async fn access_list_of_40000_entries_is_refused() {
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    client.call(&create_for("/a", entries(MAX_ACL_ENTRIES))).await.expect("a list at the limit");

    for count in [MAX_ACL_ENTRIES + 1, 40_000] {
        let set_acl = Op::SetAcl { path: "/a".into(), acl: entries(count), version: -1 };
        for request in [create_for("/b", entries(count)), Request::Write(set_acl)] {
            assert_eq!(client.call(&request).await, Err(Code::INVALID_ACL), "{count} entries");
        }
    }

    assert_eq!(client.call(&exists("/b")).await, Err(Code::NO_NODE));
    let Ok(Response::Acl { acl, .. }) = client.call(&Request::GetAcl { path: "/a".into() }).await
    else {
        panic!("the list is readable");
    };
    assert_eq!(acl, entries(MAX_ACL_ENTRIES));
}

#[tokio::test]
async fn connection_with_too_many_or_too_long_ids_fails_to_authenticate() {
    let server = serve(|_| {}).await;
    let mut many = RawClient::connect(server.address()).await;
    let mut long = RawClient::connect(server.address()).await;

    // The address is an id, too.
    for number in 1..16 {
        many.call(&auth(&format!("user{number}"))).await.unwrap();
    }
    many.call(&auth("user1")).await.expect("an id that the connection has");
    assert_eq!(many.call(&auth("another")).await, Err(Code::AUTH_FAILED));
    assert_eq!(long.call(&auth(&"u".repeat(MAX_ID_BYTES))).await, Err(Code::AUTH_FAILED));

    many.wait_closed().await;
    long.wait_closed().await;
}

#[tokio::test]
async fn multi_read_larger_than_any_client_accepts_is_refused() {
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    client.call(&create("/large")).await.unwrap();
    client.call(&set("/large", vec![b'x'; 1_000_000])).await.unwrap();

    let reads = |count| Request::MultiRead(vec![ReadOp::GetData { path: "/large".into() }; count]);

    // One request of 800 kB would have a reply of 35 gigabytes.
    assert_eq!(client.call(&reads(35_000)).await, Err(Code::MARSHALLING_ERROR));
    let Ok(Response::Multi(results)) = client.call(&reads(10)).await else {
        panic!("a reply of ten megabytes is sent");
    };
    assert_eq!(results.len(), 10);
}

#[tokio::test]
async fn first_frame_is_refused_if_it_is_larger_than_a_handshake() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut client = RawClient::open(server.address()).await;

    client.send_bytes(&(frame::DEFAULT_LIMIT as i32).to_be_bytes()).await;

    client.wait_closed().await;
    log.wait_for_line(&["connection closed", "a frame of 1048576 bytes"]).await;
}

#[tokio::test]
async fn address_over_its_connections_is_refused_until_one_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_connections_per_address = 2).await;
    let mut first = RawClient::connect(server.address()).await;
    let mut second = RawClient::connect(server.address()).await;

    let mut refused = RawClient::open(server.address()).await;
    assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);

    log.wait_for_line(&["too many connections of this address", "max_connections_per_address=2"])
        .await;
    first.call(&get("/zookeeper")).await.expect("open connections are served");
    second.call(&Request::CloseSession).await.unwrap();
    within_timeout(async {
        let request = new_session_request(SECOND);
        while RawClient::open(server.address()).await.handshake(&request).await.is_none() {}
    })
    .await;
}

#[tokio::test]
async fn four_letter_word_is_answered_while_clients_have_all_connections() {
    let limits: [fn(&mut Config); 2] =
        [|config| config.max_connections_per_address = 2, |config| config.max_connections = 2];
    for limit in limits {
        let server = serve(limit).await;
        let _clients = [
            RawClient::connect(server.address()).await,
            RawClient::connect(server.address()).await,
        ];

        for _ in 0..20 {
            let mut refused = RawClient::open(server.address()).await;
            assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);
            assert_eq!(send_word(server.address(), "ruok").await, "imok");
            assert_eq!(send_word(server.address(), "isro").await, "rw");
        }
        let stat = send_word(server.address(), "stat").await;
        assert!(stat.contains("not executed"), "{stat}");
    }
}

#[tokio::test]
async fn silent_connections_do_not_keep_the_slots_of_four_letter_words() {
    let server = serve(|config| {
        config.max_connections_per_address = 1;
        config.io_timeout = 1000 * SECOND;
    })
    .await;
    let mut client = RawClient::connect(server.address()).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(RawClient::open(server.address()).await);
    }

    for connection in &mut silent {
        connection.wait_closed().await;
    }

    assert_eq!(send_word(server.address(), "ruok").await, "imok");
    client.call(&get("/zookeeper")).await.expect("the client has its connection");
}

#[tokio::test]
async fn client_refused_again_and_again_is_logged_once_and_counted() {
    let log = Log::capture();
    let server = serve(|config| {
        config.max_connections_per_address = 3;
        config.max_sessions_per_address = 2;
        config.max_watch_bytes = 8 * 100;
    })
    .await;
    let mut first = RawClient::connect(server.address()).await;
    let _second = RawClient::connect(server.address()).await;
    for _ in 0..10 {
        let mut refused = RawClient::open(server.address()).await;
        assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);
    }
    for _ in 0..20 {
        let watch = Request::Exists { path: format!("/{}", "x".repeat(1000)), watch: true };
        assert_eq!(first.call(&watch).await, Err(Code::QUOTA_EXCEEDED));
    }
    for _ in 0..30 {
        let mut stranger = RawClient::open(server.address()).await;
        stranger.send_bytes(b"nonsense").await;
        stranger.wait_closed().await;
    }
    let _third = RawClient::open(server.address()).await;
    for _ in 0..40 {
        let mut refused = RawClient::open(server.address()).await;
        assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);
    }

    within_timeout(server.shutdown()).await.unwrap();

    for (line, reason, count) in [
        ("refused: too many sessions of this address", "too many sessions of this address", 9),
        ("request refused: too many watches", "too many watches", 19),
        ("connection closed", "frame outside the limit", 29),
        (
            "refused: too many connections of this address",
            "too many connections of this address",
            39,
        ),
    ] {
        assert_eq!(log.count_lines(&["WARN", line, "peer=127.0.0.1:"]), 1, "{line}");
        let count = format!("count={count}");
        assert_eq!(log.count_lines(&["WARN", "repeated", reason, &count]), 1, "{reason}");
    }
}

#[tokio::test]
async fn address_over_its_sessions_is_refused_until_one_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_sessions_per_address = 2).await;
    let mut first = RawClient::connect(server.address()).await;
    let abandoned = RawClient::connect(server.address()).await;
    let again = abandoned.resume(server.address()).await;

    let mut refused = RawClient::open(server.address()).await;
    assert_eq!(refused.handshake(&new_session_request(SECOND)).await, None);

    log.wait_for_line(&["too many sessions of this address", "max_sessions_per_address=2"]).await;
    assert_eq!(again.session, abandoned.session, "resuming a session opens no new one");
    first.call(&Request::CloseSession).await.unwrap();
    let mut now = RawClient::open(server.address()).await;
    assert!(now.handshake(&new_session_request(SECOND)).await.is_some());
}

#[tokio::test]
async fn expired_session_makes_room_for_another_of_its_address() {
    let server = serve(|config| {
        config.max_sessions_per_address = 1;
        config.min_session_timeout = Duration::from_millis(100);
    })
    .await;
    let mut idle = RawClient::connect_for(server.address(), Duration::from_millis(100)).await;

    idle.wait_closed().await;

    let mut next = RawClient::open(server.address()).await;
    assert!(next.handshake(&new_session_request(SECOND)).await.is_some());
}

#[tokio::test]
async fn watches_over_the_limit_are_refused_until_others_are_removed() {
    // An eighth of it is for one connection: room for one watch on a path of 1000 bytes.
    let server = serve(|config| config.max_watch_bytes = 8 * 1500).await;
    let mut client = RawClient::connect(server.address()).await;
    let mut other = RawClient::connect(server.address()).await;
    let path = |letter: &str| format!("/{}", letter.repeat(1000));
    let watch = |path| Request::AddWatch { path, mode: AddWatchMode::Persistent };
    let read = |path| Request::Exists { path, watch: true };

    client.call(&watch(path("a"))).await.unwrap();
    assert_eq!(client.call(&watch(path("b"))).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(client.call(&read(path("b"))).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(client.call(&exists("/b")).await, Err(Code::NO_NODE), "without a watch");
    assert_eq!(other.call(&read(path("b"))).await, Err(Code::NO_NODE), "of another connection");

    let kind = tinykeeper::wire::WatcherType::Any;
    client.call(&Request::RemoveWatches { path: path("a"), kind }).await.unwrap();
    assert_eq!(client.call(&read(path("b"))).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn client_whose_watches_cannot_be_restored_is_disconnected() {
    let log = Log::capture();
    let server = serve(|config| config.max_watch_bytes = 100_000).await;
    let mut client = RawClient::connect(server.address()).await;

    let exist = (0..1000).map(|number| format!("/{number}")).collect();
    let watches = Request::SetWatches(SetWatches { exist, ..SetWatches::default() });
    assert_eq!(client.call(&watches).await, Err(Code::QUOTA_EXCEEDED));

    client.wait_closed().await;
    log.wait_for_line(&["WARN", "request refused: too many watches", "peer=127.0.0.1:"]).await;
}

/// These measure time, and run when nothing else does.
#[expect(clippy::disallowed_methods, reason = "they measure the time of a real server")]
mod alone {
    use std::time::Instant;

    use bytes::BytesMut;
    use tinykeeper::wire::{CreateMode, MultiResult};

    use super::*;
    use crate::{
        process::Process,
        raw::{create_op, encode, set_op},
    };

    #[tokio::test]
    async fn bystander_is_served_while_another_client_floods_the_server() {
        let process = Process::start(&[]).await;
        let mut attacker = RawClient::connect(process.address).await;
        let mut bystander = RawClient::connect(process.address).await;
        for _ in 0..5 {
            let create = || create_op("/n", CreateMode::PersistentSequential);
            let ops = std::iter::repeat_with(create).take(1000).collect();
            attacker.call(&Request::Multi(ops)).await.unwrap();
        }

        // Each request is 21 bytes long and visits all nodes.
        let mut flood = BytesMut::new();
        let count = Request::GetAllChildrenNumber { path: "/".into() };
        (0..5000).for_each(|xid| encode(&mut flood, xid, &count));
        attacker.send_bytes(&flood).await;
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let started = Instant::now();
            bystander.call(&exists("/")).await.unwrap();
            slowest = slowest.max(started.elapsed());
        }

        assert!(slowest < SECOND, "{slowest:?}");
    }

    #[tokio::test]
    async fn write_to_a_deep_node_does_not_look_for_watches_at_every_level() {
        const DEPTH: usize = 1000;
        let process = Process::start(&[]).await;
        let mut client = RawClient::connect(process.address).await;
        let watch = Request::AddWatch { path: "/".into(), mode: AddWatchMode::PersistentRecursive };
        let mut watcher = RawClient::connect(process.address).await;
        watcher.call(&watch).await.unwrap();
        let path = |depth| "/x".repeat(depth);
        let create = |depth| create_op(&path(depth), CreateMode::Persistent);
        for first in (1..=DEPTH).step_by(200) {
            let ops = (first..first + 200).map(create).collect();
            client.call(&Request::Multi(ops)).await.unwrap();
        }

        let started = Instant::now();
        let writes = vec![set_op(&path(DEPTH), "", -1); 480];
        let results = client.call(&Request::Multi(writes)).await;
        let took = started.elapsed();

        assert!(
            matches!(results, Ok(Response::Multi(all)) if !matches!(all[0], MultiResult::Error(_)))
        );
        // Looking at every level takes many seconds in a debug build.
        assert!(took < 2 * SECOND, "{took:?}");
        assert_eq!(watcher.event().await.path, "/x", "the watch still sees everything");
    }

    #[tokio::test]
    async fn multi_compares_a_long_access_list_once() {
        let process = Process::start(&[]).await;
        let mut client = RawClient::connect(process.address).await;
        let user = |number| format!("{number:0200}");
        for number in 0..15 {
            client.call(&auth(&user(number))).await.unwrap();
        }
        let id =
            |number| AuthId { scheme: "digest".into(), id: format!("{}:{:028}", user(number), 0) };
        let closed = (1..MAX_ACL_ENTRIES).map(|number| Acl { perms: Perms::READ, id: id(number) });
        client.call(&create_for("/a", closed.chain(Acl::open()).collect())).await.unwrap();

        let started = Instant::now();
        let checks = vec![Op::Check { path: "/a".into(), version: -1 }; 40_000];
        client.call(&Request::Multi(checks)).await.unwrap();
        let took = started.elapsed();

        // Comparing each time takes half a minute in a debug build.
        assert!(took < 10 * SECOND, "{took:?}");
    }
}
