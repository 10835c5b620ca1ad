//! The ordering rule that everything above this crate relies on: a client receives every notification of an earlier transaction
//! before the reply to its own later write.

use tempfile::TempDir;
use tinykeeper::{
    server::Server,
    wire::{AddWatchMode, EventKind, Request},
};
use tokio::task::JoinSet;

use super::{
    raw::{Incoming, RawClient, create, get, set},
    serve, within_timeout,
};

fn watch(path: &str) -> Request {
    Request::AddWatch { path: path.into(), mode: AddWatchMode::PersistentRecursive }
}

/// One server in memory, and one with a journal.
async fn memory_and_durable_servers(dir: &TempDir) -> [Server; 2] {
    let data = dir.path().to_owned();
    [serve(|_| {}).await, serve(move |config| config.data = Some(data)).await]
}

#[tokio::test]
async fn notification_precedes_the_reply_to_a_later_write() {
    let dir = TempDir::new().unwrap();
    for server in memory_and_durable_servers(&dir).await {
        let mut watcher = RawClient::connect(server.address()).await;
        let mut actor = RawClient::connect(server.address()).await;
        actor.call(&create("/a")).await.unwrap();
        actor.call(&create("/b")).await.unwrap();
        watcher.call(&watch("/a")).await.unwrap();

        for _ in 0..200 {
            let theirs = actor.request(&set("/a", "x")).await.zxid;
            watcher.submit(&set("/b", "x")).await;

            let Incoming::Event(event) = watcher.next().await else { panic!("a reply first") };
            let Incoming::Reply(own) = watcher.next().await else { panic!("twice") };

            assert_eq!((event.kind, event.zxid), (EventKind::NodeDataChanged, theirs));
            assert!(own.zxid > theirs);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_and_replies_arrive_in_zxid_order() {
    const WRITES: usize = 500;
    const OTHERS: usize = 3;
    let dir = TempDir::new().unwrap();
    for server in memory_and_durable_servers(&dir).await {
        let mut watcher = RawClient::connect(server.address()).await;
        for path in ["/theirs", "/own"] {
            watcher.call(&create(path)).await.unwrap();
        }
        watcher.call(&watch("/theirs")).await.unwrap();
        let address = server.address();
        let mut others = JoinSet::new();
        for _ in 0..OTHERS {
            others.spawn(async move {
                let mut client = RawClient::connect(address).await;
                for _ in 0..WRITES {
                    client.submit(&set("/theirs", "x")).await;
                }
                for _ in 0..WRITES {
                    client.reply().await.result.unwrap();
                }
            });
        }

        let (mut newest, mut events, mut replies) = (0, 0, 0);
        watcher.submit(&set("/own", "x")).await;
        while events < OTHERS * WRITES || replies < 100 {
            let zxid = match watcher.next().await {
                Incoming::Event(event) => {
                    events += 1;
                    event.zxid
                }
                Incoming::Reply(reply) => {
                    replies += 1;
                    watcher.submit(&set("/own", "x")).await;
                    reply.zxid
                }
            };
            assert!(zxid > newest, "{zxid:#x} after {newest:#x}");
            newest = zxid;
        }

        within_timeout(others.join_all()).await;
        assert_eq!(events, OTHERS * WRITES, "each change is told once");
    }
}

#[tokio::test]
async fn read_returns_at_least_the_notified_state() {
    let dir = TempDir::new().unwrap();
    for server in memory_and_durable_servers(&dir).await {
        let mut watcher = RawClient::connect(server.address()).await;
        let mut actor = RawClient::connect(server.address()).await;
        watcher.call(&create("/a")).await.unwrap();
        watcher.call(&watch("/a")).await.unwrap();
        for _ in 0..100 {
            actor.submit(&set("/a", "x")).await;
        }

        for _ in 0..100 {
            let event = watcher.event().await;
            let stat = watcher.stat(&get("/a")).await;
            assert!(stat.mzxid >= event.zxid, "{:#x} was told of", event.zxid);
        }
    }
}
