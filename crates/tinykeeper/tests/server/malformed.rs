//! Requests that lie about their lengths, counts and sessions: they end their own connection, or get an error, and the server continues.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tinykeeper::wire::{
    Code, ConnectRequest, CreateMode, MultiResult, PASSWORD_LEN, Request, RequestHeader, Response,
    SetWatches, Writer, frame, op,
};

use super::{
    log::Log,
    raw::{RawClient, create_as, create_op, delete_op, exists, get, new_session_request},
    serve,
};

const SECOND: Duration = Duration::from_secs(1);

/// A request with this body, as bytes.
fn request(op: i32, body: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut out = BytesMut::new();
    frame::write(&mut out, |out| {
        RequestHeader { xid: 1, op }.encode(out);
        body(out);
    });
    out
}

/// The header of an operation in a multi.
fn put_multi_header(out: &mut BytesMut, op: i32, is_end: bool) {
    out.put_int(op);
    out.put_bool(is_end);
    out.put_int(-1);
}

#[tokio::test]
async fn length_beyond_its_frame_ends_only_its_own_connection() {
    let log = Log::capture();
    let server = serve(|_| {}).await;
    let mut bystander = RawClient::connect(server.address()).await;

    for length in [-2, i32::MIN, i32::MAX, 1 << 20, 100] {
        let requests = [
            ("path", request(op::GET_DATA, |out| out.put_int(length))),
            (
                "data",
                request(op::SET_DATA, |out| {
                    out.put_string("/a");
                    out.put_int(length);
                }),
            ),
            (
                "acl",
                request(op::CREATE, |out| {
                    out.put_string("/a");
                    out.put_buffer(None);
                    out.put_int(length);
                }),
            ),
            (
                "dataWatches",
                request(op::SET_WATCHES, |out| {
                    out.put_long(0);
                    out.put_int(length);
                }),
            ),
            (
                "path",
                request(op::MULTI, |out| {
                    put_multi_header(out, op::DELETE, false);
                    out.put_int(length);
                }),
            ),
        ];
        for (field, bytes) in requests {
            let mut liar = RawClient::connect(server.address()).await;
            liar.send_bytes(&bytes).await;
            liar.wait_closed().await;
            bystander.call(&get("/zookeeper/quota")).await.unwrap_or_else(|code| {
                panic!("{field} of length {length}: the bystander got {code:?}")
            });
        }
    }
    log.wait_for_line(&["connection closed", "path has length -2"]).await;
}

#[tokio::test]
async fn multi_that_is_nested_or_has_no_end_ends_the_connection() {
    let server = serve(|_| {}).await;
    let nested = request(op::MULTI, |out| {
        (0..1000).for_each(|_| put_multi_header(out, op::MULTI, false));
        put_multi_header(out, -1, true);
    });
    let endless = request(op::MULTI, |out| {
        for _ in 0..1000 {
            put_multi_header(out, op::DELETE, false);
            out.put_string("/zookeeper/quota");
            out.put_int(-1);
        }
    });

    for bytes in [nested, endless] {
        let mut liar = RawClient::connect(server.address()).await;
        liar.send_bytes(&bytes).await;
        liar.wait_closed().await;
    }

    let mut client = RawClient::connect(server.address()).await;
    client.call(&exists("/zookeeper/quota")).await.expect("no operation was executed");
}

#[tokio::test]
async fn multi_of_10000_operations_is_refused_as_a_whole() {
    const CREATES: usize = 10_000;
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let create = || create_op("/n", CreateMode::PersistentSequential);
    let creates = std::iter::repeat_with(create).take(CREATES);
    let ops = creates.chain([delete_op("/absent", -1)]).collect();

    let Ok(Response::Multi(results)) = client.call(&Request::Multi(ops)).await else {
        panic!("a result for each operation");
    };

    assert_eq!(results.len(), CREATES + 1);
    assert_eq!(results.last(), Some(&MultiResult::Error(Code::NO_NODE)));
    let number = client.call(&Request::GetAllChildrenNumber { path: "/".into() }).await;
    assert_eq!(number, Ok(Response::Number(3)), "nothing was created");
}

#[tokio::test]
async fn path_of_a_frame_is_answered() {
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let long = format!("/{}", "x".repeat(1_000_000));
    let deep = "/x".repeat(500_000);
    let slashes = "/".repeat(1_000_000);

    for path in [&long, &deep, &slashes] {
        let request = Request::Exists { path: path.clone(), watch: true };
        assert_eq!(client.call(&request).await, Err(Code::NO_NODE), "{} bytes", path.len());
    }
    for path in [&deep, &slashes] {
        let request = create_as(path, CreateMode::Persistent);
        assert_eq!(client.call(&request).await, Err(Code::NO_NODE), "{} bytes", path.len());
    }
    client.call(&create_as(&long, CreateMode::Ephemeral)).await.expect("a long name is allowed");
    client.event().await;
}

#[tokio::test]
async fn client_may_restore_20000_watches_although_it_names_each_twice() {
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let mut other = RawClient::connect(server.address()).await;
    let exist: Vec<_> = (0..20_000).map(|number| format!("/{number}")).collect();
    let exist = [exist.clone(), exist].concat();

    let watches = SetWatches { exist, ..SetWatches::default() };
    client.call(&Request::SetWatches(watches)).await.expect("they fit into the limit");

    other.call(&create_as("/19999", CreateMode::Persistent)).await.unwrap();
    assert_eq!(client.event().await.path, "/19999");
}

#[tokio::test]
async fn foreign_session_ids_open_no_session_and_take_none_over() {
    let server = serve(|_| {}).await;
    let mut owner = RawClient::connect(server.address()).await;
    owner.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();
    let ids = [owner.session, owner.session + 1, -1, 1, i64::MIN, i64::MAX];
    let passwords = [0, 1, PASSWORD_LEN, 4000].map(|length| Bytes::from(vec![b'x'; length]));

    for session_id in ids {
        for password in &passwords {
            let mut thief = RawClient::open(server.address()).await;
            let password = password.clone();
            let request = ConnectRequest { session_id, password, ..new_session_request(SECOND) };
            let response = thief.handshake(&request).await.expect("a reply");
            assert_eq!((response.session_id, response.timeout_ms), (0, 0), "{session_id:#x}");
            thief.wait_closed().await;
        }
    }

    let stat = owner.stat(&exists("/mine")).await;
    assert_eq!(stat.ephemeral_owner, owner.session, "the owner still has its session");
}
