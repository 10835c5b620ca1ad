//! What strangers, broken peers and greedy ones cannot do: the connection ends with a line in the log, the server lives.

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
    raw::{Raw, create, create_as, delete, encode, get, newcomer, set},
    serve, soon,
};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(200);

/// The server lives: a stranger gets a session and an answer.
async fn serves(server: &Server) {
    let mut client = Raw::connect(server.address()).await;
    client.call(&get("/zookeeper/quota")).await.expect("an answer");
    client.call(&Request::CloseSession).await.expect("an answer");
}

/// A request that is a frame of this many bytes.
fn request_of(length: usize) -> Request {
    let fixed = {
        let mut out = BytesMut::new();
        encode(&mut out, 0, &set("/a", Bytes::new()));
        out.len() - 4
    };
    set("/a", vec![b'x'; length - fixed])
}

#[tokio::test]
async fn a_frame_one_byte_over_the_limit_ends_the_connection_and_one_at_the_limit_is_served() {
    for limit in [1000, frame::DEFAULT_LIMIT] {
        let log = Log::capture();
        let server = serve(|config| config.max_frame = limit).await;
        let mut client = Raw::connect(server.address()).await;
        client.call(&create("/a")).await.unwrap();

        assert!(client.call(&request_of(limit)).await.is_ok(), "{limit} bytes");
        client.submit(&request_of(limit + 1)).await;
        client.ended().await;

        let length = format!("a frame of {} bytes", limit + 1);
        log.says(&["connection closed", &length, "outside the limit"]).await;
        serves(&server).await;
    }
}

#[tokio::test]
async fn a_length_that_makes_no_sense_ends_the_connection_before_anything_is_allocated() {
    for length in [-1, i32::MIN, i32::MAX] {
        let log = Log::capture();
        let server = serve(|_| {}).await;
        let mut stranger = Raw::dial(server.address()).await;
        let mut client = Raw::connect(server.address()).await;

        stranger.send_bytes(&length.to_be_bytes()).await;
        client.send_bytes(&length.to_be_bytes()).await;

        stranger.ended().await;
        client.ended().await;
        log.says(&["connection closed", &format!("a frame of {length} bytes")]).await;
        serves(&server).await;
    }
}

#[tokio::test]
async fn garbage_ends_the_connection_it_came_on_and_nothing_else() {
    let log = Log::capture();
    let server = serve(|_| {}).await;

    for seed in 0..100 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut garbage = vec![0; random.random_range(1..2000)];
        random.fill_bytes(&mut garbage);
        let mut framed = BytesMut::new();
        frame::write(&mut framed, |out| out.extend_from_slice(&garbage));

        // As the first bytes, as a first frame, and as a request.
        let mut unframed = Raw::dial(server.address()).await;
        unframed.send_bytes(&garbage).await;
        let mut hello = Raw::dial(server.address()).await;
        hello.send_bytes(&framed).await;
        let mut request = Raw::connect(server.address()).await;
        request.send_bytes(&framed).await;

        for mut client in [unframed, hello, request] {
            client.hang_up().await;
            // What was sent may by chance be something that has an answer.
            while client.frame().await.is_some() {}
        }
        serves(&server).await;
    }
    log.says(&["connection closed", "invalid data"]).await;
}

#[tokio::test]
async fn a_request_that_ends_too_early_ends_the_connection() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut client = Raw::connect(server.address()).await;
    let mut whole = BytesMut::new();
    encode(&mut whole, 1, &create("/a"));
    let short = &whole[4..whole.len() - 1];

    let mut bytes = BytesMut::new();
    frame::write(&mut bytes, |out| out.extend_from_slice(short));
    client.send_bytes(&bytes).await;

    client.ended().await;
    log.says(&["connection closed", "invalid data: record ends inside flags"]).await;
    serves(&server).await;
}

#[tokio::test]
async fn a_connection_that_does_not_say_who_it_is_is_closed() {
    let log = Log::capture();
    let server = serve(|config| config.io_timeout = MOMENT).await;
    let mut hello = BytesMut::new();
    frame::write(&mut hello, |out| newcomer(SECOND).encode(out));

    for said in [&b""[..], b"ru", &hello[..4], &hello[..hello.len() - 1]] {
        let mut client = Raw::dial(server.address()).await;
        client.send_bytes(said).await;

        client.ended().await;
    }

    log.says(&["connection closed", "no complete handshake in time"]).await;
    serves(&server).await;
}

#[tokio::test]
async fn half_a_request_and_then_silence_ends_with_the_session() {
    let log = Log::capture();
    let server = serve(|config| config.min_session_timeout = MOMENT).await;
    let mut client = Raw::connect_for(server.address(), MOMENT).await;
    client.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();
    let mut whole = BytesMut::new();
    encode(&mut whole, 7, &create("/a"));

    client.send_bytes(&whole[..whole.len() / 2]).await;

    client.ended().await;
    log.says(&["session expired"]).await;
    log.says(&["connection closed", "its session moved or ended"]).await;
    let mut other = Raw::connect(server.address()).await;
    assert_eq!(other.call(&get("/mine")).await, Err(Code::NO_NODE));
    assert_eq!(other.call(&get("/a")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn half_a_request_and_then_the_end_does_nothing_and_leaves_the_session() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut client = Raw::connect(server.address()).await;
    let mut whole = BytesMut::new();
    encode(&mut whole, 7, &create("/a"));
    client.send_bytes(&whole[..whole.len() - 1]).await;

    client.hang_up().await;

    client.ended().await;
    log.says(&["connection ended"]).await;
    let mut again = client.resume(server.address()).await;
    assert_eq!(again.session, client.session);
    assert_eq!(again.call(&get("/a")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn a_reader_that_leaves_its_notifications_lying_is_cut_and_others_are_served_all_the_while() {
    let log = Log::capture();
    let server = serve(|config| config.max_outbox = 1 << 20).await;
    let mut lazy = Raw::connect(server.address()).await;
    let watch = Request::AddWatch { path: "/".into(), mode: AddWatchMode::PersistentRecursive };
    lazy.call(&watch).await.unwrap();
    let mut busy = Raw::connect(server.address()).await;
    let path = format!("/{}", "x".repeat(100_000));

    // Each of these is a notification of 100 kB. The kernel takes a few megabytes, then the outbox is all there is.
    for _ in 0..200 {
        busy.call(&create(&path)).await.expect("an answer");
        busy.call(&delete(&path)).await.expect("an answer");
    }

    log.says(&["WARN", "connection aborted: too many unread bytes", "peer=127.0.0.1:"]).await;
    log.says(&["connection closed", "aborted: too many unread bytes"]).await;
    lazy.ended().await;
    serves(&server).await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_at_all_is_cut_after_a_while() {
    let log = Log::capture();
    let server = serve(|config| config.io_timeout = SECOND).await;
    let mut greedy = greedy(&server).await;
    ask_for(&mut greedy, 0..100).await;

    log.says(&["connection closed", "the peer does not read its replies"]).await;

    serves(&server).await;
    let mut answers = 0;
    while greedy.incoming().await.is_some() {
        answers += 1;
    }
    assert!(answers < 100, "all {answers} answers fit into the kernel");
}

/// Somebody who has put something large where it can be asked for.
async fn greedy(server: &Server) -> Raw {
    let mut client = Raw::connect(server.address()).await;
    client.call(&create("/large")).await.unwrap();
    client.call(&set("/large", vec![b'x'; 1_000_000])).await.unwrap();
    client
}

/// Asks for a megabyte with each of these numbers, all at once, and reads nothing.
async fn ask_for(client: &mut Raw, numbers: Range<i32>) {
    let mut asked = BytesMut::new();
    for xid in numbers {
        encode(&mut asked, xid, &get("/large"));
        client.expect_answer(xid, op::GET_DATA);
    }
    client.send_bytes(&asked).await;
}

#[tokio::test]
async fn who_asks_for_much_at_once_is_slowed_down_and_not_cut() {
    let server = serve(|config| config.max_outbox = 4 << 20).await;

    let mut greedy = greedy(&server).await;

    ask_for(&mut greedy, 0..50).await;
    serves(&server).await;
    ask_for(&mut greedy, 50..100).await;
    serves(&server).await;

    for xid in 0..100 {
        let answer = greedy.answer().await;
        assert_eq!(answer.xid, xid);
        assert!(
            matches!(answer.result, Ok(Response::Data { data: Some(data), .. }) if data.len() == 1_000_000)
        );
    }
}

#[tokio::test]
async fn unread_answers_are_not_kept_in_memory_however_many_are_asked_for() {
    const ANSWERS: usize = 5000;
    let process = Process::start(&[]).await;
    let mut client = Raw::connect(process.address).await;
    client.call(&create("/large")).await.unwrap();
    client.call(&set("/large", vec![b'x'; 1_000_000])).await.unwrap();
    let before = process.peak_memory();

    // Five gigabytes are due. Nobody waits for the greedy ones to have sent everything: the server stops reading them.
    let mut greedy = JoinSet::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(process.address).await;
        greedy.spawn(async move {
            let mut asked = BytesMut::new();
            (0..ANSWERS).for_each(|xid| encode(&mut asked, xid as i32, &get("/large")));
            raw.send_bytes(&asked).await;
            // Holds the connection until the test is over.
            std::future::pending::<()>().await;
        });
    }
    for _ in 0..200 {
        client.call(&set("/zookeeper/quota", "still here")).await.expect("an answer");
        client.call(&get("/large")).await.expect("an answer");
    }

    let grown = process.peak_memory() - before;
    assert!(grown < 200 << 20, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_connection_too_many_is_refused_until_another_one_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_connections = 3).await;
    let mut first = Raw::connect(server.address()).await;
    let mut others = [Raw::connect(server.address()).await, Raw::dial(server.address()).await];

    let mut refused = Raw::dial(server.address()).await;
    assert_eq!(refused.hello(&newcomer(SECOND)).await, None);

    log.says(&["refused: too many connections", "max_connections=3"]).await;
    first.call(&get("/zookeeper")).await.expect("those who are in are served");
    others[1].hello(&newcomer(SECOND)).await.expect("also who has not said who it is yet");
    first.call(&Request::CloseSession).await.unwrap();
    soon(async {
        while Raw::dial(server.address()).await.hello(&newcomer(SECOND)).await.is_none() {}
    })
    .await;
}

#[tokio::test]
async fn a_session_too_many_is_refused_until_another_one_ends() {
    let log = Log::capture();
    let server = serve(|config| config.max_sessions = 2).await;
    let mut first = Raw::connect(server.address()).await;
    let second = Raw::connect(server.address()).await;

    let mut refused = Raw::dial(server.address()).await;
    assert_eq!(refused.hello(&newcomer(SECOND)).await, None);

    log.says(&["refused: too many sessions", "max_sessions=2"]).await;
    first.call(&get("/zookeeper")).await.expect("those who are in are served");
    let again = second.resume(server.address()).await;
    assert_eq!(again.session, second.session, "coming back is not coming new");
    first.call(&Request::CloseSession).await.unwrap();
    let mut now = Raw::dial(server.address()).await;
    assert!(now.hello(&newcomer(SECOND)).await.is_some());
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_hold_up_the_end_of_the_server() {
    let server = serve(|config| config.io_timeout = 1000 * SECOND).await;
    let mut silent = Raw::dial(server.address()).await;
    let mut client = Raw::connect(server.address()).await;
    client.call(&get("/zookeeper")).await.unwrap();

    soon(server.shutdown()).await.unwrap();

    silent.ended().await;
    client.ended().await;
}
