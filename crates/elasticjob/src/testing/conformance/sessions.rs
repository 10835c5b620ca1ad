//! Guarantees about sessions.

use std::time::Duration;

use super::{
    create_path, eventually,
    test_server::{TestClient, TestServer},
    within_timeout,
};
use crate::{
    registry::{Create, Digest, Error, ExpectedVersion, SessionState},
    runtime::{Clock, SystemClock},
};

/// Ends a client's session: cuts its connection until the observer sees that its ephemeral node is gone, then heals the connection.
pub(super) async fn expire(client: &TestClient, observer: &TestClient) {
    let path = client.registry.namespace().path().join("sign-of-life").unwrap();
    let session = client.registry.session().id();
    let created = client.registry.create(Create::ephemeral(&path, "", session)).await;
    assert!(created.is_ok() || matches!(created, Err(Error::Exists { .. })), "{created:?}");
    // The observer's server must know of it before its absence means anything.
    observer.registry.sync().await.unwrap();
    client.link.end_session().await;
    eventually("the registry ends the session", || async {
        Ok(observer.registry.exists(&path).await?.is_none())
    })
    .await;
    client.link.heal().await;
}

/// An ephemeral node outlives its client's connection, but not its session.
pub async fn ephemeral_node_is_deleted_with_its_session_only(server: &dyn TestServer) {
    let (client, observer) =
        (server.join("ephemeral", None).await, server.join("ephemeral", None).await);
    let path = create_path(&observer, "ephemeral").await.join("here").unwrap();
    let session = client.registry.session().id();
    client.registry.create(Create::ephemeral(&path, "", session)).await.unwrap();
    let mut states = client.registry.session().states();
    assert_eq!(states.next().await, Some(SessionState::Connected(session)));

    client.link.cut().await;
    assert_eq!(
        within_timeout("suspension", states.next()).await,
        Some(SessionState::Suspended(session))
    );
    observer.registry.sync().await.unwrap();
    assert!(
        observer.registry.exists(&path).await.unwrap().is_some(),
        "a cut does not end the session"
    );
    client.link.heal().await;
    assert_eq!(
        within_timeout("reconnection", states.next()).await,
        Some(SessionState::Connected(session))
    );

    let stat = observer
        .registry
        .exists(&path)
        .await
        .unwrap()
        .expect("a reconnect does not end the session");
    assert_eq!(stat.owner, Some(session));
    client.registry.close().await;
    eventually("the ephemeral node is deleted with its session", || async {
        Ok(observer.registry.exists(&path).await?.is_none())
    })
    .await;
}

/// After an expiry the client has a new session and was notified that the old one is over.
pub async fn expiry_yields_a_new_session_id(server: &dyn TestServer) {
    let (client, observer) = (server.join("expiry", None).await, server.join("expiry", None).await);
    let old = client.registry.session();
    let mut states = old.states();

    expire(&client, &observer).await;
    let renewed = within_timeout("renewal", async {
        loop {
            match states.next().await.expect("open") {
                SessionState::Renewed { old, new } => return (old, new),
                SessionState::Connected(id)
                | SessionState::Suspended(id)
                | SessionState::Lost(id) => {
                    assert_eq!(id, old.id());
                }
            }
        }
    })
    .await;

    let new = client.registry.session();
    assert_eq!(renewed, (old.id(), new.id()));
    assert_ne!(old.id(), new.id());
    assert!(old.deadline() < new.deadline());
    let path = create_path(&client, "after-expiry").await;
    client.registry.set(&path, "works".into(), ExpectedVersion::Any).await.unwrap();
}

/// An ephemeral node names its session: it is refused once that session has expired.
pub async fn ephemeral_for_an_old_session_is_not_created_in_a_new_one(server: &dyn TestServer) {
    let (client, observer) = (server.join("old", None).await, server.join("old", None).await);
    let old = client.registry.session().id();

    expire(&client, &observer).await;
    within_timeout("a new session", async {
        while client.registry.session().id() == old {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let path = create_path(&observer, "late").await.join("late").unwrap();
    let refused = within_timeout("an answer", async {
        loop {
            match client.registry.create(Create::ephemeral(&path, "", old)).await {
                Err(error) if error.is_outage() => {}
                answer => return answer,
            }
        }
    })
    .await;

    assert!(matches!(refused, Err(Error::SessionExpired)), "{refused:?}");
    observer.registry.sync().await.unwrap();
    assert_eq!(observer.registry.exists(&path).await.unwrap(), None);
}

/// Writes and syncs extend the deadline, reads do not, and the deadline is never further away than the timeout.
pub async fn deadline_follows_writes_and_syncs_but_not_reads(server: &dyn TestServer) {
    let client = server.join("lease", None).await;
    let path = create_path(&client, "lease").await;
    let session = client.registry.session();
    let assert_bound =
        || assert!(session.deadline() <= SystemClock.monotonic() + session.timeout());

    let before = session.deadline();
    for _ in 0..50 {
        client.registry.get(&path).await.unwrap();
        client.registry.children(&path).await.unwrap();
    }
    assert_eq!(before, session.deadline(), "a follower without a leader answers reads, too");

    // An adapter may need two answers of the leader, some time apart, before it extends the deadline.
    within_timeout("syncs extend the deadline", async {
        while session.deadline() <= before {
            client.registry.sync().await.unwrap();
            assert_bound();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let after_syncs = session.deadline();
    within_timeout("writes extend the deadline", async {
        while session.deadline() <= after_syncs {
            client.registry.set(&path, "x".into(), ExpectedVersion::Any).await.unwrap();
            assert_bound();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let after_writes = session.deadline();
    within_timeout("refused writes extend the deadline: the leader answered them, too", async {
        while session.deadline() <= after_writes {
            let refused =
                client.registry.delete(&path.join("missing").unwrap(), ExpectedVersion::Any).await;
            assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
            assert_bound();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// With a wrong password a node is inaccessible, not absent.
pub async fn wrong_credentials_give_not_authorised_never_absent(server: &dyn TestServer) {
    let user = |password: &str| Some(Digest { user: "jane".into(), password: password.into() });
    let owner = server.join("closed/jane", user("right")).await;
    let path = create_path(&owner, "mine").await;
    let intruder = server.join("closed", user("wrong")).await;

    assert!(owner.registry.get(&path).await.unwrap().is_some());
    for refused in [
        intruder.registry.get(&path).await.map(|_| ()),
        intruder.registry.children(&path).await.map(|_| ()),
        intruder.registry.watch(&path).await.map(|_| ()),
        intruder.registry.set(&path, "x".into(), ExpectedVersion::Any).await.map(|_| ()),
        intruder.registry.delete(&path, ExpectedVersion::Any).await.map(|_| ()),
        intruder
            .registry
            .create(Create::persistent(&path.join("x").unwrap(), ""))
            .await
            .map(|_| ()),
    ] {
        assert!(matches!(refused, Err(Error::NotAuthorised { .. })), "{refused:?}");
    }
}

/// After closing, every request fails with `Closed`, and watches and session states end.
pub async fn closed_registry_returns_closed(server: &dyn TestServer) {
    let client = server.join("closing", None).await;
    let path = create_path(&client, "closing").await;
    let mut states = client.registry.session().states();
    let mut watch = client.registry.watch(&path).await.unwrap();

    client.registry.close().await;

    assert!(matches!(client.registry.get(&path).await, Err(Error::Closed)));
    assert!(matches!(client.registry.sync().await, Err(Error::Closed)));
    within_timeout("the end of the watch", async { while watch.next().await.is_some() {} }).await;
    within_timeout("the end of the states", async { while states.next().await.is_some() {} }).await;
}
