//! Promises about broken lines.

use std::sync::Arc;

use super::{eventually, ground::Ground, place, soon};
use crate::registry::{Create, Error, Path, SessionState};

/// A missing node is `None`; a missing line is an error, even for a node that was never there.
pub async fn absent_is_not_unknown(ground: &dyn Ground) {
    let member = ground.join("absent", None).await;
    let missing: Path = "/absent/never-there".parse().unwrap();
    let mut states = member.registry.session().states();
    states.next().await;
    assert_eq!(member.registry.get(&missing).await.unwrap(), None);

    member.line.cut().await;
    soon("suspension", async {
        while !matches!(states.next().await, Some(SessionState::Suspended(_))) {}
    })
    .await;
    let (get, exists, children) = tokio::join!(
        member.registry.get(&missing),
        member.registry.exists(&missing),
        member.registry.children(&missing),
    );

    for answer in [get.map(|_| ()), exists.map(|_| ()), children.map(|_| ())] {
        assert!(matches!(answer, Err(Error::Unreachable { .. })), "{answer:?}");
    }
    member.line.heal().await;
    eventually("the line is back", || async { Ok(member.registry.get(&missing).await?.is_none()) })
        .await;
}

/// A write whose answer is lost has an unknown fate; a sync and a read settle it.
pub async fn a_request_cut_mid_flight_is_unknown_and_reading_again_tells(ground: &dyn Ground) {
    let (member, observer) =
        (ground.join("unknown", None).await, ground.join("unknown", None).await);
    let path = place(&observer, "unknown").await.join("x").unwrap();
    let session = member.registry.session().id();

    member.line.lose_answers().await;
    let registry = Arc::clone(&member.registry);
    let at = path.clone();
    let (answer, ()) = tokio::join!(
        async move { registry.create(Create::persistent(&at, "written")).await },
        async {
            let seen = || async { Ok(observer.registry.exists(&path).await?.is_some()) };
            eventually("the request arrives", seen).await;
            member.line.cut().await;
        },
    );

    assert!(matches!(answer, Err(Error::Unknown { .. })), "{answer:?}");
    member.line.heal().await;
    eventually("the line is back", || async { member.registry.sync().await.map(|()| true) }).await;
    assert_eq!(member.registry.get(&path).await.unwrap().unwrap().data, "written");
    assert_eq!(member.registry.session().id(), session, "a short cut ends no session");
}
