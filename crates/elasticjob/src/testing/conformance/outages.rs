//! Guarantees about broken connections.

use std::sync::Arc;

use super::{create_path, eventually, test_server::TestServer, within_timeout};
use crate::registry::{Create, Error, Path, SessionState};

/// An absent node is `None`; a read without a connection is an error, even for a node that never existed.
pub async fn absent_node_differs_from_unreachable_registry(server: &dyn TestServer) {
    let client = server.join("absent", None).await;
    let missing: Path = "/absent/never-there".parse().unwrap();
    let mut states = client.registry.session().states();
    states.next().await;
    assert_eq!(client.registry.get(&missing).await.unwrap(), None);

    client.link.cut().await;
    within_timeout("suspension", async {
        while !matches!(states.next().await, Some(SessionState::Suspended(_))) {}
    })
    .await;
    let (get, exists, children) = tokio::join!(
        client.registry.get(&missing),
        client.registry.exists(&missing),
        client.registry.children(&missing),
    );

    for answer in [get.map(|_| ()), exists.map(|_| ()), children.map(|_| ())] {
        assert!(matches!(answer, Err(Error::Unreachable { .. })), "{answer:?}");
    }
    client.link.heal().await;
    eventually("the connection is back", || async {
        Ok(client.registry.get(&missing).await?.is_none())
    })
    .await;
}

/// A write whose answer is lost has an unknown result; a sync and a read resolve it.
pub async fn interrupted_request_is_unknown_until_read_again(server: &dyn TestServer) {
    let (client, observer) =
        (server.join("unknown", None).await, server.join("unknown", None).await);
    let path = create_path(&observer, "unknown").await.join("x").unwrap();
    let session = client.registry.session().id();

    client.link.lose_answers().await;
    let registry = Arc::clone(&client.registry);
    let at = path.clone();
    let (answer, ()) = tokio::join!(
        async move { registry.create(Create::persistent(&at, "written")).await },
        async {
            let seen = || async { Ok(observer.registry.exists(&path).await?.is_some()) };
            eventually("the request arrives", seen).await;
            client.link.cut().await;
        },
    );

    assert!(matches!(answer, Err(Error::Unknown { .. })), "{answer:?}");
    client.link.heal().await;
    eventually("the connection is back", || async { client.registry.sync().await.map(|()| true) })
        .await;
    assert_eq!(client.registry.get(&path).await.unwrap().unwrap().data, "written");
    assert_eq!(
        client.registry.session().id(),
        session,
        "a short interruption does not end the session"
    );
}
