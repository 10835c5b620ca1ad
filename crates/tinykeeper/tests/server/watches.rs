//! Watches: who is told what, and how often.

use tinykeeper::{
    server::Server,
    wire::{
        AddWatchMode, Code, CreateMode, EventKind, Op, Request, Response, SetWatches, WatcherType,
    },
};

use super::{
    raw::{Raw, create, create_as, creation, delete, deletion, set},
    serve,
};

use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};

/// A watcher, and somebody who changes things.
async fn pair() -> (Server, Raw, Raw) {
    let server = serve(|_| {}).await;
    let watcher = Raw::connect(server.address()).await;
    let actor = Raw::connect(server.address()).await;
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

/// Everything the watcher heard of what has happened until now.
async fn heard(watcher: &mut Raw) -> Vec<(EventKind, String)> {
    watcher.call(&Request::Ping).await.expect("an answer");
    watcher.heard()
}

fn events<const N: usize>(events: [(EventKind, &str); N]) -> Vec<(EventKind, String)> {
    events.map(|(kind, path)| (kind, path.to_owned())).to_vec()
}

async fn all(client: &mut Raw, requests: &[Request]) {
    for request in requests {
        client.call(request).await.unwrap_or_else(|code| panic!("{request:?}: {code}"));
    }
}

#[tokio::test]
async fn a_watch_set_by_a_read_is_told_once() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/p"), create("/p/a")]).await;
    assert_eq!(watcher.call(&exists("/p/new")).await, Err(Code::NO_NODE));
    all(&mut watcher, &[get("/p/a"), children("/p"), exists("/p/a")]).await;

    all(&mut actor, &[create("/p/new"), set("/p/new", "x"), create("/p/b")]).await;
    all(&mut actor, &[set("/p/a", "x"), set("/p/a", "y"), delete("/p/a")]).await;

    let expected =
        events([(NodeCreated, "/p/new"), (NodeChildrenChanged, "/p"), (NodeDataChanged, "/p/a")]);
    assert_eq!(heard(&mut watcher).await, expected);
}

#[tokio::test]
async fn a_read_that_fails_sets_no_watch_but_exists_does() {
    let (_server, mut watcher, mut actor) = pair().await;
    assert_eq!(watcher.call(&get("/a")).await, Err(Code::NO_NODE));
    assert_eq!(watcher.call(&children("/a")).await, Err(Code::NO_NODE));
    all(&mut actor, &[create("/a")]).await;
    assert_eq!(heard(&mut watcher).await, []);
    all(&mut actor, &[delete("/a")]).await;

    assert_eq!(watcher.call(&exists("/a")).await, Err(Code::NO_NODE));
    all(&mut actor, &[create("/a")]).await;

    assert_eq!(heard(&mut watcher).await, events([(NodeCreated, "/a")]));
}

#[tokio::test]
async fn a_persistent_watch_hears_of_a_node_and_its_children_every_time() {
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
    assert_eq!(heard(&mut watcher).await, expected);
}

#[tokio::test]
async fn a_recursive_watch_hears_of_everything_below() {
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
    assert_eq!(heard(&mut watcher).await, expected);
}

#[tokio::test]
async fn a_watch_is_found_by_its_kind_and_removed_once() {
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
    assert_eq!(heard(&mut watcher).await, events([(NodeDataChanged, "/a")]), "the one that stays");
    assert_eq!(watcher.call(&remove(WatcherType::Any)).await, Ok(Response::Empty));
    assert_eq!(watcher.call(&check(WatcherType::Any)).await, Err(Code::NO_WATCHER));
    all(&mut actor, &[set("/a", "y")]).await;
    assert_eq!(heard(&mut watcher).await, []);
}

#[tokio::test]
async fn watches_set_again_tell_at_once_what_was_missed_and_wait_for_the_rest() {
    let (server, watcher, mut actor) = pair().await;
    let before = ["/changed", "/deleted", "/same", "/parent", "/quiet"];
    all(&mut actor, &before.map(create)).await;
    let seen = actor.ask(&Request::Ping).await.zxid;
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
    let answer = watcher.ask(&Request::SetWatches(again)).await;

    assert_eq!((answer.xid, answer.result), (-8, Ok(Response::Empty)));
    let missed = events([
        (NodeDataChanged, "/changed"),
        (NodeDeleted, "/deleted"),
        (NodeCreated, "/appeared"),
        (NodeChildrenChanged, "/parent"),
    ]);
    assert_eq!(watcher.heard(), missed, "before the answer");
    all(&mut actor, &[set("/changed", "y"), create("/parent/other")]).await;
    all(&mut actor, &[set("/same", "x"), create("/absent"), create("/quiet/child")]).await;
    let later = events([
        (NodeDataChanged, "/same"),
        (NodeCreated, "/absent"),
        (NodeChildrenChanged, "/quiet"),
    ]);
    assert_eq!(heard(&mut watcher).await, later);
}

#[tokio::test]
async fn persistent_watches_set_again_stay() {
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
    assert_eq!(heard(&mut watcher).await, expected);
}

#[tokio::test]
async fn watches_end_with_their_connection_and_not_with_the_session() {
    let (server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/a")]).await;
    all(&mut watcher, &[get("/a"), add("/a", AddWatchMode::Persistent)]).await;

    let mut again = watcher.resume(server.address()).await;
    all(&mut actor, &[set("/a", "x")]).await;

    assert_eq!(heard(&mut again).await, []);
}

#[tokio::test]
async fn a_multi_tells_of_all_its_members_and_a_refused_one_of_none() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &[create("/a"), create("/b")]).await;
    all(&mut watcher, &[add("/", AddWatchMode::PersistentRecursive)]).await;
    let refused = Request::Multi(vec![deletion("/a", -1), deletion("/b", 7)]);
    actor.call(&refused).await.unwrap();
    assert_eq!(heard(&mut watcher).await, []);

    let create = creation("/c", CreateMode::Persistent);
    let set = Op::SetData { path: "/b".into(), data: None, version: -1 };
    all(&mut actor, &[Request::Multi(vec![deletion("/a", -1), set, create])]).await;

    let expected = events([(NodeDeleted, "/a"), (NodeDataChanged, "/b"), (NodeCreated, "/c")]);
    assert_eq!(heard(&mut watcher).await, expected);
}

#[tokio::test]
async fn the_end_of_a_session_tells_of_each_of_its_ephemerals() {
    let (_server, mut watcher, mut actor) = pair().await;
    all(&mut actor, &["/a", "/b"].map(|path| create_as(path, CreateMode::Ephemeral))).await;
    all(&mut watcher, &[children("/"), get("/a"), exists("/b")]).await;

    actor.call(&Request::CloseSession).await.unwrap();

    let expected = events([(NodeDeleted, "/a"), (NodeChildrenChanged, "/"), (NodeDeleted, "/b")]);
    assert_eq!(heard(&mut watcher).await, expected);
}
