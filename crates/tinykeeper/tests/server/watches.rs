//! Watches: which events they report, and how often.

use tinykeeper::{
    server::Server,
    wire::{
        AddWatchMode, Code, CreateMode, EventKind, Op, Request, Response, SetWatches, WatcherType,
    },
};

use super::{
    raw::{RawClient, create, create_as, create_op, delete, delete_op, set},
    serve,
};

use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};

/// A server, a client that watches, and a client that makes changes.
async fn pair() -> (Server, RawClient, RawClient) {
    let server = serve(|_| {}).await;
    let watcher = RawClient::connect(server.address()).await;
    let actor = RawClient::connect(server.address()).await;
    (server, watcher, actor)
}

fn exists(path: &str) -> Request {
    Request::Exists { path: path.into(), watch: true }
}

fn get(path: &str) -> Request {
    Request::GetData { path: path.into(), watch: true }
}

fn children(path: &str) -> Request {
    Request::GetChildren { path: path.into(), watch: true }
}

fn add(path: &str, mode: AddWatchMode) -> Request {
    Request::AddWatch { path: path.into(), mode }
}

/// All notifications for changes made so far.
async fn events_so_far(watcher: &mut RawClient) -> Vec<(EventKind, String)> {
    watcher.call(&Request::Ping).await.expect("a reply");
    watcher.take_events()
}

fn events<const N: usize>(events: [(EventKind, &str); N]) -> Vec<(EventKind, String)> {
    events.map(|(kind, path)| (kind, path.to_owned())).to_vec()
}

async fn all(client: &mut RawClient, requests: &[Request]) {
    for request in requests {
        client.call(request).await.unwrap_or_else(|code| panic!("{request:?}: {code}"));
    }
}

#[tokio::test]
async fn one_shot_watch_fires_once() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/p"), create("/p/a")]).await;
    assert_eq!(watcher.call(&exists("/p/new")).await, Err(Code::NO_NODE));
    all(&mut watcher, &[get("/p/a"), children("/p"), exists("/p/a")]).await;

    all(&mut actor, &[create("/p/new"), set("/p/new", "x"), create("/p/b")]).await;
    all(&mut actor, &[set("/p/a", "x"), set("/p/a", "y"), delete("/p/a")]).await;

    let expected =
        events([(NodeCreated, "/p/new"), (NodeChildrenChanged, "/p"), (NodeDataChanged, "/p/a")]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}

#[tokio::test]
async fn failed_read_sets_no_watch_except_exists() {
    let (_server, mut watcher, mut actor) = pair().await;
    assert_eq!(watcher.call(&get("/a")).await, Err(Code::NO_NODE));
    assert_eq!(watcher.call(&children("/a")).await, Err(Code::NO_NODE));
    all(&mut actor, &[create("/a")]).await;
    assert_eq!(events_so_far(&mut watcher).await, []);
    all(&mut actor, &[delete("/a")]).await;

    assert_eq!(watcher.call(&exists("/a")).await, Err(Code::NO_NODE));
    all(&mut actor, &[create("/a")]).await;

    assert_eq!(events_so_far(&mut watcher).await, events([(NodeCreated, "/a")]));
}

#[tokio::test]
async fn persistent_watch_reports_node_and_children_every_time() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut watcher, &[add("/p", AddWatchMode::Persistent)]).await;

    all(&mut actor, &[create("/p"), set("/p", "x"), create("/p/a"), set("/p/a", "x")]).await;
    all(&mut actor, &[delete("/p/a"), delete("/p")]).await;

    let expected = events([
        (NodeCreated, "/p"),
        (NodeDataChanged, "/p"),
        (NodeChildrenChanged, "/p"),
        (NodeChildrenChanged, "/p"),
        (NodeDeleted, "/p"),
    ]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}

#[tokio::test]
async fn recursive_watch_reports_all_descendants() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut watcher, &[add("/p", AddWatchMode::PersistentRecursive)]).await;

    all(&mut actor, &[create("/p"), create("/p/a"), create("/p/a/b"), set("/p/a/b", "x")]).await;
    all(&mut actor, &[create("/pp"), delete("/p/a/b")]).await;

    let expected = events([
        (NodeCreated, "/p"),
        (NodeCreated, "/p/a"),
        (NodeCreated, "/p/a/b"),
        (NodeDataChanged, "/p/a/b"),
        (NodeDeleted, "/p/a/b"),
    ]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}

#[tokio::test]
async fn watch_is_found_by_its_kind_and_removed_once() {
    let (_server, mut watcher, mut actor) = pair().await;
    let check = |kind| Request::CheckWatches { path: "/a".into(), kind };
    let remove = |kind| Request::RemoveWatches { path: "/a".into(), kind };
    all(&mut actor, &[create("/a")]).await;
    all(&mut watcher, &[get("/a"), add("/a", AddWatchMode::Persistent)]).await;

    for (kind, expected) in [
        (WatcherType::Data, Ok(Response::Empty)),
        (WatcherType::Children, Err(Code::NO_WATCHER)),
        (WatcherType::Persistent, Ok(Response::Empty)),
        (WatcherType::PersistentRecursive, Err(Code::NO_WATCHER)),
        (WatcherType::Any, Ok(Response::Empty)),
    ] {
        assert_eq!(watcher.call(&check(kind)).await, expected, "{kind:?}");
        assert_eq!(actor.call(&check(kind)).await, Err(Code::NO_WATCHER), "not theirs");
    }
    assert_eq!(watcher.call(&remove(WatcherType::Data)).await, Ok(Response::Empty));
    assert_eq!(watcher.call(&remove(WatcherType::Data)).await, Err(Code::NO_WATCHER));
    all(&mut actor, &[set("/a", "x")]).await;
    assert_eq!(
        events_so_far(&mut watcher).await,
        events([(NodeDataChanged, "/a")]),
        "the persistent watch remains"
    );
    assert_eq!(watcher.call(&remove(WatcherType::Any)).await, Ok(Response::Empty));
    assert_eq!(watcher.call(&check(WatcherType::Any)).await, Err(Code::NO_WATCHER));
    all(&mut actor, &[set("/a", "y")]).await;
    assert_eq!(events_so_far(&mut watcher).await, []);
}

#[tokio::test]
async fn set_watches_reports_missed_events_at_once() {
    let (server, watcher, mut actor) = pair().await;
    let before = ["/changed", "/deleted", "/same", "/parent", "/quiet"];
    all(&mut actor, &before.map(create)).await;
    let seen = actor.request(&Request::Ping).await.zxid;
    all(&mut actor, &[set("/changed", "x"), delete("/deleted"), create("/parent/child")]).await;
    all(&mut actor, &[create("/appeared")]).await;
    let paths = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();

    let mut watcher = watcher.resume(server.address()).await;
    let again = SetWatches {
        relative_zxid: seen,
        data: paths(&["/changed", "/deleted", "/same"]),
        exist: paths(&["/appeared", "/absent"]),
        child: paths(&["/parent", "/quiet"]),
        ..SetWatches::default()
    };
    let reply = watcher.request(&Request::SetWatches(again)).await;

    assert_eq!((reply.xid, reply.result), (-8, Ok(Response::Empty)));
    let missed = events([
        (NodeDataChanged, "/changed"),
        (NodeDeleted, "/deleted"),
        (NodeCreated, "/appeared"),
        (NodeChildrenChanged, "/parent"),
    ]);
    assert_eq!(watcher.take_events(), missed, "before the reply");
    all(&mut actor, &[set("/changed", "y"), create("/parent/other")]).await;
    all(&mut actor, &[set("/same", "x"), create("/absent"), create("/quiet/child")]).await;
    let later = events([
        (NodeDataChanged, "/same"),
        (NodeCreated, "/absent"),
        (NodeChildrenChanged, "/quiet"),
    ]);
    assert_eq!(events_so_far(&mut watcher).await, later);
}

#[tokio::test]
async fn set_watches_restores_persistent_watches() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/a"), create("/p")]).await;

    let again = SetWatches {
        persistent: vec!["/a".into()],
        persistent_recursive: vec!["/p".into()],
        ..SetWatches::default()
    };
    all(&mut watcher, &[Request::SetWatches(again)]).await;
    all(&mut actor, &[set("/a", "x"), set("/a", "y"), create("/p/b"), set("/p/b", "x")]).await;

    let expected = events([
        (NodeDataChanged, "/a"),
        (NodeDataChanged, "/a"),
        (NodeCreated, "/p/b"),
        (NodeDataChanged, "/p/b"),
    ]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}

#[tokio::test]
async fn watches_end_with_their_connection_not_with_the_session() {
    let (server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/a")]).await;
    all(&mut watcher, &[get("/a"), add("/a", AddWatchMode::Persistent)]).await;

    let mut again = watcher.resume(server.address()).await;
    all(&mut actor, &[set("/a", "x")]).await;

    assert_eq!(events_so_far(&mut again).await, []);
}

#[tokio::test]
async fn multi_fires_watches_for_all_operations_or_none() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/a"), create("/b")]).await;
    all(&mut watcher, &[add("/", AddWatchMode::PersistentRecursive)]).await;
    let refused = Request::Multi(vec![delete_op("/a", -1), delete_op("/b", 7)]);
    actor.call(&refused).await.unwrap();
    assert_eq!(events_so_far(&mut watcher).await, []);

    let create = create_op("/c", CreateMode::Persistent);
    let set = Op::SetData { path: "/b".into(), data: None, version: -1 };
    all(&mut actor, &[Request::Multi(vec![delete_op("/a", -1), set, create])]).await;

    let expected = events([(NodeDeleted, "/a"), (NodeDataChanged, "/b"), (NodeCreated, "/c")]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}

#[tokio::test]
async fn session_end_fires_watches_for_each_ephemeral() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &["/a", "/b"].map(|path| create_as(path, CreateMode::Ephemeral))).await;
    all(&mut watcher, &[children("/"), get("/a"), exists("/b")]).await;

    actor.call(&Request::CloseSession).await.unwrap();

    let expected = events([(NodeDeleted, "/a"), (NodeChildrenChanged, "/"), (NodeDeleted, "/b")]);
    assert_eq!(events_so_far(&mut watcher).await, expected);
}
