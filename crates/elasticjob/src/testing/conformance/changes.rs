//! Promises about changes.

use super::{ground::Ground, place};
use crate::registry::{Create, Done, Error, Expected, Kind, Op, Path, Version, Zxid};

/// Of two creates of one path one wins, and the other is told so.
pub async fn two_creates_of_one_path_one_wins(ground: &dyn Ground) {
    let (one, two) = (ground.join("creates", None).await, ground.join("creates", None).await);
    let path = place(&one, "contested").await.join("prize").unwrap();

    let (first, second) = tokio::join!(
        one.registry.create(Create::persistent(&path, "one")),
        two.registry.create(Create::persistent(&path, "two")),
    );

    let winner = match (first, second) {
        (Ok(_), Err(Error::Exists { .. })) => "one",
        (Err(Error::Exists { .. }), Ok(_)) => "two",
        other => panic!("not one winner: {other:?}"),
    };
    assert_eq!(one.registry.get(&path).await.unwrap().unwrap().data, winner);
}

/// A change meant for one version does not touch another.
pub async fn a_conditional_set_or_delete_fails_once_the_node_has_changed(ground: &dyn Ground) {
    let member = ground.join("conditional", None).await;
    let path = place(&member, "conditional").await;
    let registry = &member.registry;
    let old = Expected::Version(Version(0));

    registry.set(&path, "new".into(), old).await.unwrap();
    let set = registry.set(&path, "newer".into(), old).await;
    let delete = registry.delete(&path, old).await;

    assert!(matches!(&set, Err(Error::Conflict { path: at, .. }) if *at == path), "{set:?}");
    assert!(matches!(&delete, Err(Error::Conflict { .. })), "{delete:?}");
    assert_eq!(registry.get(&path).await.unwrap().unwrap().data, "new");
    registry.delete(&path, Expected::Version(Version(1))).await.unwrap();
    assert_eq!(registry.get(&path).await.unwrap(), None);
    let gone = registry.set(&path, "x".into(), Expected::Any).await;
    assert!(matches!(gone, Err(Error::Absent { .. })), "{gone:?}");
}

/// A multi does everything or nothing, and names the member that was refused.
pub async fn a_multi_is_all_or_nothing_and_says_which_member_failed(ground: &dyn Ground) {
    let member = ground.join("multi", None).await;
    let base = place(&member, "multi").await;
    let registry = &member.registry;
    let (a, b) = (base.join("a").unwrap(), base.join("b").unwrap());

    let refused = registry
        .multi(vec![
            Op::Create(Create::persistent(&a, "")),
            Op::Set { path: base.clone(), data: "changed".into(), expected: Expected::Any },
            Op::Check { path: base.clone(), expected: Expected::Version(Version(7)) },
            Op::Create(Create::persistent(&b, "")),
        ])
        .await;

    let Err(Error::Member { index: 2, cause }) = &refused else { panic!("{refused:?}") };
    assert!(matches!(&**cause, Error::Conflict { path, .. } if *path == base), "{cause:?}");
    assert_eq!(registry.children(&base).await.unwrap(), Some(vec![]));
    assert_eq!(registry.get(&base).await.unwrap().unwrap().data, "");

    let committed = registry
        .multi(vec![
            Op::Check { path: base.clone(), expected: Expected::Version(Version(0)) },
            Op::Create(Create::persistent(&a, "")),
            Op::Set { path: base.clone(), data: "changed".into(), expected: Expected::Any },
            Op::Delete { path: a.clone(), expected: Expected::Any },
            Op::Create(Create::persistent(&b, "")),
        ])
        .await
        .unwrap();
    let expected =
        [Done::Checked, Done::Created(a), Done::Set(Version(1)), Done::Deleted, Done::Created(b)];
    assert_eq!(committed.done, expected);
}

/// Names drawn by the registry sort in the order in which they were drawn.
pub async fn sequence_numbers_grow_in_the_order_of_creation(ground: &dyn Ground) {
    let (one, two) = (ground.join("sequence", None).await, ground.join("sequence", None).await);
    let base = place(&one, "sequence").await;
    let prefix = base.join("n-").unwrap();

    let mut drawn: Vec<Path> = Vec::new();
    for turn in 0..12 {
        let registry = if turn % 2 == 0 { &one.registry } else { &two.registry };
        let kind = match turn % 3 {
            0 => Kind::Sequential,
            _ => Kind::EphemeralSequential(registry.session().id()),
        };
        let committed = registry.create(Create::new(&prefix, "", kind)).await.unwrap();
        drawn.push(committed.path().expect("created").clone());
    }

    let mut sorted = drawn.clone();
    sorted.sort();
    assert_eq!(drawn, sorted);
    let digits = drawn[0].name().strip_prefix("n-").expect("the name given");
    assert!(digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{digits}");
}

/// What has children stays until they are gone.
pub async fn a_node_with_children_is_not_deleted(ground: &dyn Ground) {
    let member = ground.join("children", None).await;
    let base = place(&member, "parent").await;
    member.registry.create(Create::persistent(&base.join("child").unwrap(), "")).await.unwrap();

    let refused = member.registry.delete(&base, Expected::Any).await;

    assert!(matches!(&refused, Err(Error::NotEmpty { path }) if *path == base), "{refused:?}");
    let orphan = base.join("missing/child").unwrap();
    let refused = member.registry.create(Create::persistent(&orphan, "")).await;
    assert!(
        matches!(&refused, Err(Error::Absent { path }) if *path == base.join("missing").unwrap()),
        "{refused:?}"
    );
}

/// A container is a node like any other while it is needed.
pub async fn a_container_is_created_and_holds_children(ground: &dyn Ground) {
    let member = ground.join("container", None).await;
    let path = place(&member, "container").await.join("latch").unwrap();

    member.registry.create(Create::new(&path, "", Kind::Container)).await.unwrap();
    member.registry.create(Create::persistent(&path.join("x").unwrap(), "")).await.unwrap();

    let stat = member.registry.exists(&path).await.unwrap().unwrap();
    assert_eq!((stat.owner, stat.children), (None, 1));
}

/// The answer to a multi carries the number that identifies what it created, and numbers only grow.
pub async fn the_zxid_of_a_multi_is_the_creation_id_of_what_it_created_and_never_goes_back(
    ground: &dyn Ground,
) {
    let (one, two) = (ground.join("zxid", None).await, ground.join("zxid", None).await);
    let base = place(&one, "zxid").await;

    let mut newest = Zxid(0);
    for turn in 0..10 {
        let registry = if turn % 2 == 0 { &one.registry } else { &two.registry };
        let (a, b) =
            (base.join(format!("a{turn}")).unwrap(), base.join(format!("b{turn}")).unwrap());
        let session = registry.session().id();
        let ops = vec![
            Op::Create(Create::persistent(&a, "")),
            Op::Create(Create::ephemeral(&b, "", session)),
        ];
        let committed = registry.multi(ops).await.unwrap();

        assert!(committed.zxid > newest, "{:?} after {newest:?}", committed.zxid);
        newest = committed.zxid;
        for path in [&a, &b] {
            assert_eq!(registry.exists(path).await.unwrap().unwrap().created, committed.zxid);
        }
    }
}

/// A node deleted and made anew has version zero again: a version check cannot tell, the creation id can. Nobody may rely on it.
pub async fn a_version_check_is_blind_to_delete_and_create(ground: &dyn Ground) {
    let (one, two) = (ground.join("aba", None).await, ground.join("aba", None).await);
    let path = place(&one, "aba").await.join("claim").unwrap();
    one.registry.create(Create::persistent(&path, "one")).await.unwrap();
    let seen = one.registry.exists(&path).await.unwrap().unwrap();

    two.registry.delete(&path, Expected::Any).await.unwrap();
    two.registry.create(Create::persistent(&path, "two")).await.unwrap();
    let passes = one
        .registry
        .multi(vec![Op::Check { path: path.clone(), expected: Expected::Version(seen.version) }])
        .await;

    assert!(passes.is_ok(), "{passes:?}");
    let now = one.registry.exists(&path).await.unwrap().unwrap();
    assert_eq!(now.version, seen.version);
    assert!(now.created > seen.created);
}

/// A request over the limit is refused before it is sent, and everything goes on.
pub async fn a_request_over_a_mebibyte_is_too_large_and_harms_nobody(ground: &dyn Ground) {
    let member = ground.join("large", None).await;
    let path = place(&member, "large").await;
    let session = member.registry.session().id();

    let refused = member.registry.set(&path, vec![b'x'; 1 << 20].into(), Expected::Any).await;
    let fits = member.registry.set(&path, vec![b'x'; 900 << 10].into(), Expected::Any).await;

    assert!(
        matches!(&refused, Err(Error::TooLarge { path: at, .. }) if *at == path),
        "{refused:?}"
    );
    assert!(fits.is_ok(), "{fits:?}");
    assert_eq!(member.registry.session().id(), session);
}

/// The namespace exists after joining, however deep, and what is beside it can be reached.
pub async fn the_namespace_is_there_and_its_siblings_are_reachable(ground: &dyn Ground) {
    let member = ground.join("deep/er/shop", None).await;
    let registry = &member.registry;

    let ledger = registry.namespace().sibling("ledger").unwrap();
    let _ = registry.create(Create::persistent(ledger.path(), "")).await;

    assert_eq!(registry.namespace().path().as_str(), "/deep/er/shop");
    assert!(registry.exists(registry.namespace().path()).await.unwrap().is_some());
    let beside = registry.children(&"/deep/er".parse().unwrap()).await.unwrap().unwrap();
    assert!(
        beside.contains(&"shop".into()) && beside.contains(&"shop~ledger".into()),
        "{beside:?}"
    );
}
