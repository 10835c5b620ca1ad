//! Every operation of the protocol: its response, and its refusal codes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tinykeeper::{
    server::Server,
    wire::{
        Acl, AddWatchMode, Code, Create, CreateMode, EventKind, MultiResult, Op, ReadOp, Request,
        RequestHeader, Response, SetWatches, Stat, frame,
    },
};

use super::{
    raw::{
        RawClient, children, create, create_as, create_op, delete, delete_op, exists, get, set,
        set_op,
    },
    serve,
};

async fn connected() -> (Server, RawClient) {
    let server = serve(|config| config.sweep_interval = Duration::from_millis(20)).await;
    let client = RawClient::connect(server.address()).await;
    (server, client)
}

/// The old `create`, whose response has no stat.
fn old_create(path: &str, mode: CreateMode) -> Request {
    let Op::Create(create) = create_op(path, mode) else { unreachable!() };
    Request::Write(Op::Create(Create { with_stat: false, ..create }))
}

fn created(path: &str) -> Response {
    Response::Create { path: path.to_owned() }
}

#[tokio::test]
async fn create_returns_the_path_and_create2_also_the_stat() {
    let (_server, mut client) = connected().await;

    assert_eq!(client.call(&old_create("/a", CreateMode::Persistent)).await, Ok(created("/a")));
    let reply = client.request(&create("/b")).await;

    let Ok(Response::Create2 { path, stat }) = reply.result else { panic!("{reply:?}") };
    assert_eq!(path, "/b");
    let expected = Stat {
        czxid: reply.zxid,
        mzxid: reply.zxid,
        pzxid: reply.zxid,
        data_length: 4,
        ctime: stat.ctime,
        mtime: stat.ctime,
        ..Stat::default()
    };
    assert_eq!(stat, expected);
    assert!(stat.ctime > 1_700_000_000_000, "milliseconds since 1970");
}

#[tokio::test]
async fn sequence_number_counts_every_child_ever_created() {
    let (_server, mut client) = connected().await;
    client.call(&create("/p")).await.unwrap();
    client.call(&create("/p/first")).await.unwrap();
    client.call(&delete("/p/first")).await.unwrap();

    for (mode, path) in [
        (CreateMode::PersistentSequential, "/p/n-0000000001"),
        (CreateMode::EphemeralSequential, "/p/n-0000000002"),
    ] {
        assert_eq!(client.call(&old_create("/p/n-", mode)).await, Ok(created(path)));
    }
    let ttl = create_as("/p/", CreateMode::PersistentSequentialTtl(60_000));
    assert!(
        matches!(client.call(&ttl).await, Ok(Response::Create2 { path, .. }) if path == "/p/0000000003")
    );
}

#[tokio::test]
async fn create_refuses_with_protocol_codes() {
    let (_server, mut client) = connected().await;
    client.call(&create("/a")).await.unwrap();
    client.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();

    for (request, code) in [
        (create("/a"), Code::NODE_EXISTS),
        (create("/nowhere/a"), Code::NO_NODE),
        (create("/mine/child"), Code::NO_CHILDREN_FOR_EPHEMERALS),
        (create("a"), Code::BAD_ARGUMENTS),
        (create("/a/"), Code::BAD_ARGUMENTS),
        (create("/.."), Code::BAD_ARGUMENTS),
        (create("/"), Code::NODE_EXISTS),
        (create_as("/b", CreateMode::Unknown(99, -1)), Code::BAD_ARGUMENTS),
        (create_as("/b", CreateMode::PersistentTtl(0)), Code::BAD_ARGUMENTS),
        (create_as("/b", CreateMode::PersistentTtl(i64::MAX)), Code::BAD_ARGUMENTS),
    ] {
        assert_eq!(client.call(&request).await, Err(code), "{request:?}");
    }
}

/// Sets a watch on `path`, which exists.
async fn watch(client: &mut RawClient, path: &str) {
    client
        .call(&Request::Exists { path: path.to_owned(), watch: true })
        .await
        .expect("it is there");
}

#[tokio::test]
async fn container_is_deleted_after_its_last_child() {
    let (_server, mut client) = connected().await;
    client.call(&create_as("/box", CreateMode::Container)).await.unwrap();
    watch(&mut client, "/box").await;
    client.expect_silence(Duration::from_millis(100)).await;
    client.call(&create("/box/child")).await.unwrap();
    client.expect_silence(Duration::from_millis(100)).await;

    client.call(&delete("/box/child")).await.unwrap();

    let event = client.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/box"));
    assert_eq!(client.call(&exists("/box")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn ttl_node_is_deleted_after_its_ttl() {
    let (_server, mut client) = connected().await;
    client.call(&create_as("/long", CreateMode::PersistentTtl(60_000))).await.unwrap();
    client.call(&create_as("/short", CreateMode::PersistentTtl(300))).await.unwrap();
    watch(&mut client, "/long").await;
    watch(&mut client, "/short").await;

    client.expect_silence(Duration::from_millis(100)).await;
    let event = client.event().await;

    assert_eq!((event.kind, &*event.path), (EventKind::NodeDeleted, "/short"));
    client.expect_silence(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn delete_requires_the_version_and_no_children() {
    let (_server, mut client) = connected().await;
    for path in ["/a", "/a/b"] {
        client.call(&create(path)).await.unwrap();
    }
    client.call(&set("/a/b", "new")).await.unwrap();

    for (request, code) in [
        (delete_op("/a", -1), Code::NOT_EMPTY),
        (delete_op("/a/b", 0), Code::BAD_VERSION),
        (delete_op("/nowhere", -1), Code::NO_NODE),
        (delete_op("/", -1), Code::BAD_ARGUMENTS),
        (delete_op("/zookeeper", -1), Code::BAD_ARGUMENTS),
    ] {
        assert_eq!(client.call(&Request::Write(request.clone())).await, Err(code), "{request:?}");
    }
    assert_eq!(client.call(&Request::Write(delete_op("/a/b", 1))).await, Ok(Response::Empty));
    assert_eq!(client.call(&delete("/a")).await, Ok(Response::Empty));
    assert_eq!(client.call(&exists("/a")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn set_data_requires_the_version_and_increments_it() {
    let (_server, mut client) = connected().await;
    let created = client.stat(&create("/a")).await;

    let reply = client.request(&Request::Write(set_op("/a", "one", 0))).await;
    let again = client.call(&Request::Write(set_op("/a", "two", 0))).await;
    let absent = client.call(&set("/nowhere", "x")).await;

    let Ok(Response::Stat(stat)) = reply.result else { panic!("{reply:?}") };
    assert_eq!((stat.version, stat.mzxid, stat.czxid), (1, reply.zxid, created.czxid));
    assert_eq!((again, absent), (Err(Code::BAD_VERSION), Err(Code::NO_NODE)));
    let data = client.call(&get("/a")).await;
    assert_eq!(data, Ok(Response::Data { data: Some(Bytes::from("one")), stat }));
}

#[tokio::test]
async fn null_and_empty_data_are_distinct() {
    let (_server, mut client) = connected().await;
    client.call(&create("/a")).await.unwrap();

    for wanted in [None, Some(Bytes::new())] {
        let op = Op::SetData { path: "/a".into(), data: wanted.clone(), version: -1 };
        client.call(&Request::Write(op)).await.unwrap();

        let Ok(Response::Data { data, .. }) = client.call(&get("/a")).await else { panic!() };
        assert_eq!(data, wanted);
    }
}

#[tokio::test]
async fn exists_returns_the_stat_or_no_node() {
    let (_server, mut client) = connected().await;
    let stat = client.stat(&create("/a")).await;

    assert_eq!(client.call(&exists("/a")).await, Ok(Response::Stat(stat)));
    assert_eq!(client.call(&exists("/b")).await, Err(Code::NO_NODE));
    assert_eq!(client.call(&get("/b")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn children_are_listed_with_and_without_stat_and_counted() {
    let (_server, mut client) = connected().await;
    for path in ["/p", "/p/b", "/p/a", "/p/a/deep", "/other"] {
        client.call(&create(path)).await.unwrap();
    }
    let names = vec!["a".to_owned(), "b".to_owned()];
    let stat = client.stat(&exists("/p")).await;
    let number = |path: &str| Request::GetAllChildrenNumber { path: path.into() };

    assert_eq!(client.call(&children("/p")).await, Ok(Response::Children(names.clone())));
    let with_stat = Request::GetChildrenStat { path: "/p".into(), watch: false };
    let reply = client.call(&with_stat).await;
    assert_eq!(reply, Ok(Response::ChildrenStat { children: names, stat }));
    assert_eq!((stat.num_children, stat.cversion), (2, 2));
    assert_eq!(client.call(&number("/p")).await, Ok(Response::Number(3)));
    assert_eq!(client.call(&number("/")).await, Ok(Response::Number(8)));
    for absent in [children("/x"), number("/x")] {
        assert_eq!(client.call(&absent).await, Err(Code::NO_NODE));
    }
}

#[tokio::test]
async fn get_ephemerals_lists_own_ephemerals_below_the_prefix() {
    let (server, mut client) = connected().await;
    let mut other = RawClient::connect(server.address()).await;
    client.call(&create("/p")).await.unwrap();
    for path in ["/a", "/p/b"] {
        client.call(&create_as(path, CreateMode::Ephemeral)).await.unwrap();
    }
    other.call(&create_as("/p/theirs", CreateMode::Ephemeral)).await.unwrap();

    for (prefix, paths) in [("/", &["/a", "/p/b"][..]), ("/p", &["/p/b"]), ("/x", &[])] {
        let reply = client.call(&Request::GetEphemerals { prefix: prefix.into() }).await;
        let expected = paths.iter().map(ToString::to_string).collect();
        assert_eq!(reply, Ok(Response::Paths(expected)), "{prefix}");
    }
}

#[tokio::test]
async fn sync_and_ping_return_the_newest_zxid() {
    let (_server, mut client) = connected().await;
    let newest = client.request(&create("/a")).await.zxid;

    let synced = client.request(&Request::Sync { path: "/a".into() }).await;
    let ping = client.request(&Request::Ping).await;

    assert_eq!(synced.result, Ok(Response::Sync { path: "/a".into() }));
    assert_eq!((synced.zxid, ping.zxid), (newest, newest));
}

#[tokio::test]
async fn write_returns_its_own_zxid_and_read_the_last_before_it() {
    let (server, mut client) = connected().await;
    let mut other = RawClient::connect(server.address()).await;

    let first = client.request(&create("/a")).await.zxid;
    let refused = client.request(&create("/a")).await;
    let read = client.request(&get("/a")).await.zxid;
    let theirs = other.request(&set("/a", "x")).await.zxid;
    let absent = client.request(&get("/nowhere")).await;

    assert_eq!(refused.result, Err(Code::NODE_EXISTS));
    assert_eq!(refused.zxid, first + 1, "a refused write is a transaction, too");
    assert_eq!((read, theirs), (first + 1, first + 2));
    assert_eq!((absent.zxid, absent.result), (theirs, Err(Code::NO_NODE)));
    assert_eq!(client.stat(&exists("/a")).await.mzxid, theirs);
}

#[tokio::test]
async fn multi_is_one_transaction() {
    let (_server, mut client) = connected().await;
    client.call(&create("/a")).await.unwrap();
    client.call(&create("/gone")).await.unwrap();

    let reply = client
        .request(&Request::Multi(vec![
            Op::Check { path: "/a".into(), version: 0 },
            create_op("/a/b", CreateMode::Persistent),
            set_op("/a", "new", 0),
            delete_op("/gone", -1),
        ]))
        .await;

    let Ok(Response::Multi(results)) = &reply.result else { panic!("{reply:?}") };
    let [
        MultiResult::Check,
        MultiResult::Create { path },
        MultiResult::SetData { stat },
        MultiResult::Delete,
    ] = &results[..]
    else {
        panic!("{results:?}")
    };
    assert_eq!((&**path, stat.mzxid), ("/a/b", reply.zxid));
    assert_eq!(client.stat(&exists("/a/b")).await.czxid, reply.zxid);
    assert_eq!(client.call(&exists("/gone")).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn refused_multi_changes_nothing_and_names_the_operation() {
    let (_server, mut client) = connected().await;
    client.call(&create("/a")).await.unwrap();

    let reply = client
        .call(&Request::Multi(vec![
            create_op("/b", CreateMode::Persistent),
            set_op("/a", "new", 7),
            create_op("/c", CreateMode::Persistent),
        ]))
        .await;

    let codes = [Code::OK, Code::BAD_VERSION, Code::RUNTIME_INCONSISTENCY];
    assert_eq!(reply, Ok(Response::Multi(codes.map(MultiResult::Error).to_vec())));
    assert_eq!(client.call(&exists("/b")).await, Err(Code::NO_NODE));
    assert_eq!(client.call(&Request::Multi(vec![])).await, Ok(Response::Multi(vec![])));
}

#[tokio::test]
async fn multi_read_returns_a_result_per_operation() {
    let (_server, mut client) = connected().await;
    let stat = client.stat(&create("/a")).await;
    let read = |path: &str| ReadOp::GetData { path: path.into() };
    let list = |path: &str| ReadOp::GetChildren { path: path.into() };

    let reply = client
        .call(&Request::MultiRead(vec![read("/nowhere"), read("/a"), list("/nowhere"), list("/a")]))
        .await;

    let expected = vec![
        MultiResult::Error(Code::NO_NODE),
        MultiResult::GetData { data: Some(Bytes::from("data")), stat },
        MultiResult::Error(Code::NO_NODE),
        MultiResult::GetChildren { children: vec![] },
    ];
    assert_eq!(reply, Ok(Response::Multi(expected)));
}

#[tokio::test]
async fn unknown_operation_is_unimplemented_and_keeps_the_connection() {
    const RECONFIG: i32 = 16;
    const SASL: i32 = 102;
    let (_server, mut client) = connected().await;

    for (xid, op) in [(1, 9999), (2, RECONFIG), (3, SASL), (4, -77)] {
        let mut out = BytesMut::new();
        frame::write(&mut out, |out| {
            RequestHeader { xid, op }.encode(out);
            out.extend_from_slice(b"whatever its body is");
        });
        client.send_bytes(&out).await;
        client.expect_reply(xid, op);

        let reply = client.reply().await;

        assert_eq!((reply.xid, reply.result), (xid, Err(Code::UNIMPLEMENTED)), "operation {op}");
    }
    assert!(client.call(&create("/a")).await.is_ok());
}

#[tokio::test]
async fn every_known_operation_gets_a_response() {
    let (_server, mut client) = connected().await;
    client.call(&create("/a")).await.unwrap();
    let path = || "/a".to_owned();
    let requests = [
        Request::Exists { path: path(), watch: false },
        Request::GetAcl { path: path() },
        Request::Write(Op::SetAcl { path: path(), acl: Acl::open(), version: -1 }),
        Request::AddWatch { path: path(), mode: AddWatchMode::Persistent },
        Request::SetWatches(SetWatches::default()),
        Request::WhoAmI,
        Request::Ping,
        Request::Sync { path: path() },
    ];

    for request in requests {
        let reply = client.call(&request).await;
        assert!(reply.is_ok(), "{request:?}: {reply:?}");
    }
    assert_eq!(client.call(&Request::CloseSession).await, Ok(Response::Empty));
}
