//! Promises about sessions.

use std::time::Duration;

use super::{
    eventually,
    ground::{Ground, Member},
    place, soon,
};
use crate::{
    registry::{Create, Digest, Error, Expected, SessionState},
    runtime::{Clock, SystemClock},
};

/// Ends a member's session: cut off until somebody else sees that its ephemeral is gone, then healed.
pub(super) async fn expire(member: &Member, observer: &Member) {
    let path = member.registry.namespace().path().join("sign-of-life").unwrap();
    let session = member.registry.session().id();
    let created = member.registry.create(Create::ephemeral(&path, "", session)).await;
    assert!(created.is_ok() || matches!(created, Err(Error::Exists { .. })), "{created:?}");
    // The observer's server must know of it before its absence means anything.
    observer.registry.sync().await.unwrap();
    member.line.end_session().await;
    eventually("the registry ends the session", || async {
        Ok(observer.registry.exists(&path).await?.is_none())
    })
    .await;
    member.line.heal().await;
}

/// An ephemeral outlives its member's connection, but not its session.
pub async fn an_ephemeral_ends_with_its_session_and_only_then(ground: &dyn Ground) {
    let (member, observer) =
        (ground.join("ephemeral", None).await, ground.join("ephemeral", None).await);
    let path = place(&observer, "ephemeral").await.join("here").unwrap();
    let session = member.registry.session().id();
    member.registry.create(Create::ephemeral(&path, "", session)).await.unwrap();
    let mut states = member.registry.session().states();
    assert_eq!(states.next().await, Some(SessionState::Connected(session)));

    member.line.cut().await;
    assert_eq!(soon("suspension", states.next()).await, Some(SessionState::Suspended(session)));
    observer.registry.sync().await.unwrap();
    assert!(observer.registry.exists(&path).await.unwrap().is_some(), "a cut is no end");
    member.line.heal().await;
    assert_eq!(soon("reconnection", states.next()).await, Some(SessionState::Connected(session)));

    let stat = observer.registry.exists(&path).await.unwrap().expect("a reconnect is no end");
    assert_eq!(stat.owner, Some(session));
    member.registry.close().await;
    eventually("the ephemeral goes with its session", || async {
        Ok(observer.registry.exists(&path).await?.is_none())
    })
    .await;
}

/// After an expiry the member has a new session, and has heard that the old one is over.
pub async fn expiry_yields_a_new_session_id(ground: &dyn Ground) {
    let (member, observer) = (ground.join("expiry", None).await, ground.join("expiry", None).await);
    let old = member.registry.session();
    let mut states = old.states();

    expire(&member, &observer).await;
    let renewed = soon("renewal", async {
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

    let new = member.registry.session();
    assert_eq!(renewed, (old.id(), new.id()));
    assert_ne!(old.id(), new.id());
    assert!(old.deadline() < new.deadline());
    let path = place(&member, "after-expiry").await;
    member.registry.set(&path, "works".into(), Expected::Any).await.unwrap();
}

/// What was meant for a life that is over is not done in the next one.
pub async fn an_ephemeral_meant_for_an_old_session_is_not_created_in_a_new_one(
    ground: &dyn Ground,
) {
    let (member, observer) = (ground.join("old", None).await, ground.join("old", None).await);
    let old = member.registry.session().id();

    expire(&member, &observer).await;
    soon("a new session", async {
        while member.registry.session().id() == old {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let path = place(&observer, "late").await.join("late").unwrap();
    let refused = soon("an answer", async {
        loop {
            match member.registry.create(Create::ephemeral(&path, "", old)).await {
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

/// Writes and syncs move the deadline, reads do not, and it is never further away than the timeout.
pub async fn the_deadline_follows_writes_and_syncs_and_never_reads(ground: &dyn Ground) {
    let member = ground.join("lease", None).await;
    let path = place(&member, "lease").await;
    let session = member.registry.session();
    let in_time = || assert!(session.deadline() <= SystemClock.monotonic() + session.timeout());

    let before = session.deadline();
    for _ in 0..50 {
        member.registry.get(&path).await.unwrap();
        member.registry.children(&path).await.unwrap();
    }
    assert_eq!(before, session.deadline(), "a follower without a leader answers reads, too");

    // An adapter may need to hear of the leader twice, some time apart, before it believes it.
    soon("syncs move the deadline", async {
        while session.deadline() <= before {
            member.registry.sync().await.unwrap();
            in_time();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let after_syncs = session.deadline();
    soon("writes move the deadline", async {
        while session.deadline() <= after_syncs {
            member.registry.set(&path, "x".into(), Expected::Any).await.unwrap();
            in_time();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let after_writes = session.deadline();
    soon("refused writes move the deadline: the leader answered them, too", async {
        while session.deadline() <= after_writes {
            let refused =
                member.registry.delete(&path.join("missing").unwrap(), Expected::Any).await;
            assert!(matches!(refused, Err(Error::Absent { .. })), "{refused:?}");
            in_time();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Without the right password a node is closed, not missing.
pub async fn wrong_credentials_are_not_authorised_and_never_absent(ground: &dyn Ground) {
    let user = |password: &str| Some(Digest { user: "jane".into(), password: password.into() });
    let owner = ground.join("closed/jane", user("right")).await;
    let path = place(&owner, "mine").await;
    let thief = ground.join("closed", user("wrong")).await;

    assert!(owner.registry.get(&path).await.unwrap().is_some());
    for refused in [
        thief.registry.get(&path).await.map(|_| ()),
        thief.registry.children(&path).await.map(|_| ()),
        thief.registry.watch(&path).await.map(|_| ()),
        thief.registry.set(&path, "x".into(), Expected::Any).await.map(|_| ()),
        thief.registry.delete(&path, Expected::Any).await.map(|_| ()),
        thief.registry.create(Create::persistent(&path.join("x").unwrap(), "")).await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(Error::NotAuthorised { .. })), "{refused:?}");
    }
}

/// After closing, everything fails with a word that says so.
pub async fn a_closed_registry_says_so(ground: &dyn Ground) {
    let member = ground.join("closing", None).await;
    let path = place(&member, "closing").await;
    let mut states = member.registry.session().states();
    let mut watch = member.registry.watch(&path).await.unwrap();

    member.registry.close().await;

    assert!(matches!(member.registry.get(&path).await, Err(Error::Closed)));
    assert!(matches!(member.registry.sync().await, Err(Error::Closed)));
    soon("the end of the watch", async { while watch.next().await.is_some() {} }).await;
    soon("the end of the states", async { while states.next().await.is_some() {} }).await;
}
