//! Guarantees about changes.

use super::{create_path, test_server::TestServer};
use crate::registry::{Create, Error, ExpectedVersion, Kind, Op, OpResult, Path, Version, Zxid};

/// Of two concurrent creates of one path, one succeeds and the other one fails with `Exists`.
pub async fn concurrent_creates_of_one_path_have_one_winner(server: &dyn TestServer) {
    let (one, two) = (server.join("creates", None).await, server.join("creates", None).await);
    let path = create_path(&one, "contested").await.join("prize").unwrap();

    let (first, second) = tokio::join!(
        one.registry.create(Create::persistent(&path, "one")),
        two.registry.create(Create::persistent(&path, "two")),
    );

    let winner = match (first, second) {
        (Ok(_), Err(Error::Exists { .. })) => "one",
        (Err(Error::Exists { .. }), Ok(_)) => "two",
        other => panic!("expected one winner: {other:?}"),
    };
    assert_eq!(one.registry.get(&path).await.unwrap().unwrap().data, winner);
}

/// A change that expects one version does not apply to another.
pub async fn conditional_set_and_delete_fail_after_a_change(server: &dyn TestServer) {
    let client = server.join("conditional", None).await;
    let path = create_path(&client, "conditional").await;
    let registry = &client.registry;
    let old = ExpectedVersion::Version(Version(0));

    registry.set(&path, "new".into(), old).await.unwrap();
    let set = registry.set(&path, "newer".into(), old).await;
    let delete = registry.delete(&path, old).await;

    assert!(matches!(&set, Err(Error::Conflict { path: at, .. }) if *at == path), "{set:?}");
    assert!(matches!(&delete, Err(Error::Conflict { .. })), "{delete:?}");
    assert_eq!(registry.get(&path).await.unwrap().unwrap().data, "new");
    registry.delete(&path, ExpectedVersion::Version(Version(1))).await.unwrap();
    assert_eq!(registry.get(&path).await.unwrap(), None);
    let gone = registry.set(&path, "x".into(), ExpectedVersion::Any).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
}

/// A multi applies all operations or none, and its error names the one that was refused.
pub async fn multi_is_atomic_and_names_the_failed_operation(server: &dyn TestServer) {
    let client = server.join("multi", None).await;
    let base = create_path(&client, "multi").await;
    let registry = &client.registry;
    let (a, b) = (base.join("a").unwrap(), base.join("b").unwrap());

    let refused = registry
        .multi(vec![
            Op::Create(Create::persistent(&a, "")),
            Op::Set { path: base.clone(), data: "changed".into(), expected: ExpectedVersion::Any },
            Op::Check { path: base.clone(), expected: ExpectedVersion::Version(Version(7)) },
            Op::Create(Create::persistent(&b, "")),
        ])
        .await;

    let Err(Error::Operation { index: 2, cause }) = &refused else { panic!("{refused:?}") };
    assert!(matches!(&**cause, Error::Conflict { path, .. } if *path == base), "{cause:?}");
    assert_eq!(registry.children(&base).await.unwrap(), Some(vec![]));
    assert_eq!(registry.get(&base).await.unwrap().unwrap().data, "");

    let committed = registry
        .multi(vec![
            Op::Check { path: base.clone(), expected: ExpectedVersion::Version(Version(0)) },
            Op::Create(Create::persistent(&a, "")),
            Op::Set { path: base.clone(), data: "changed".into(), expected: ExpectedVersion::Any },
            Op::Delete { path: a.clone(), expected: ExpectedVersion::Any },
            Op::Create(Create::persistent(&b, "")),
        ])
        .await
        .unwrap();
    let expected = [
        OpResult::Checked,
        OpResult::Created(a),
        OpResult::Set(Version(1)),
        OpResult::Deleted,
        OpResult::Created(b),
    ];
    assert_eq!(committed.done, expected);
}

/// Sequential names that the registry assigns sort in the order of their creation.
pub async fn sequence_numbers_grow_in_the_order_of_creation(server: &dyn TestServer) {
    let (one, two) = (server.join("sequence", None).await, server.join("sequence", None).await);
    let base = create_path(&one, "sequence").await;
    let prefix = base.join("n-").unwrap();

    let mut created: Vec<Path> = Vec::new();
    for turn in 0..12 {
        let registry = if turn % 2 == 0 { &one.registry } else { &two.registry };
        let kind = match turn % 3 {
            0 => Kind::Sequential,
            _ => Kind::EphemeralSequential(registry.session().id()),
        };
        let committed = registry.create(Create::new(&prefix, "", kind)).await.unwrap();
        created.push(committed.path().expect("created").clone());
    }

    let mut sorted = created.clone();
    sorted.sort();
    assert_eq!(created, sorted);
    let digits = created[0].name().strip_prefix("n-").expect("the name has the given prefix");
    assert!(digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{digits}");
}

/// A node with children cannot be deleted, and a node without a parent cannot be created.
pub async fn node_with_children_cannot_be_deleted(server: &dyn TestServer) {
    let client = server.join("children", None).await;
    let base = create_path(&client, "parent").await;
    client.registry.create(Create::persistent(&base.join("child").unwrap(), "")).await.unwrap();

    let refused = client.registry.delete(&base, ExpectedVersion::Any).await;

    assert!(matches!(&refused, Err(Error::NotEmpty { path }) if *path == base), "{refused:?}");
    let orphan = base.join("missing/child").unwrap();
    let refused = client.registry.create(Create::persistent(&orphan, "")).await;
    assert!(
        matches!(&refused, Err(Error::NotFound { path }) if *path == base.join("missing").unwrap()),
        "{refused:?}"
    );
}

/// A container behaves like any other node while it has children.
pub async fn container_can_be_created_and_hold_children(server: &dyn TestServer) {
    let client = server.join("container", None).await;
    let path = create_path(&client, "container").await.join("latch").unwrap();

    client.registry.create(Create::new(&path, "", Kind::Container)).await.unwrap();
    client.registry.create(Create::persistent(&path.join("x").unwrap(), "")).await.unwrap();

    let stat = client.registry.exists(&path).await.unwrap().unwrap();
    assert_eq!((stat.owner, stat.children), (None, 1));
}

/// The answer to a multi carries the creation id of the nodes it created, and these ids only grow.
pub async fn multi_zxid_is_the_creation_id_of_its_nodes_and_grows(server: &dyn TestServer) {
    let (one, two) = (server.join("zxid", None).await, server.join("zxid", None).await);
    let base = create_path(&one, "zxid").await;

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

/// A node that is deleted and created again has version zero again. A version check cannot tell them apart, the creation id can; no code may rely on
/// the version for that.
pub async fn version_check_does_not_notice_delete_and_create(server: &dyn TestServer) {
    let (one, two) = (server.join("aba", None).await, server.join("aba", None).await);
    let path = create_path(&one, "aba").await.join("claim").unwrap();
    one.registry.create(Create::persistent(&path, "one")).await.unwrap();
    let seen = one.registry.exists(&path).await.unwrap().unwrap();

    two.registry.delete(&path, ExpectedVersion::Any).await.unwrap();
    two.registry.create(Create::persistent(&path, "two")).await.unwrap();
    let passes = one
        .registry
        .multi(vec![Op::Check {
            path: path.clone(),
            expected: ExpectedVersion::Version(seen.version),
        }])
        .await;

    assert!(passes.is_ok(), "{passes:?}");
    let now = one.registry.exists(&path).await.unwrap().unwrap();
    assert_eq!(now.version, seen.version);
    assert!(now.created > seen.created);
}

/// A request of more than a mebibyte is refused before it is sent, and the session continues.
pub async fn oversized_request_is_refused_and_keeps_the_session(server: &dyn TestServer) {
    let client = server.join("large", None).await;
    let path = create_path(&client, "large").await;
    let session = client.registry.session().id();

    let refused =
        client.registry.set(&path, vec![b'x'; 1 << 20].into(), ExpectedVersion::Any).await;
    let fits = client.registry.set(&path, vec![b'x'; 900 << 10].into(), ExpectedVersion::Any).await;

    assert!(
        matches!(&refused, Err(Error::TooLarge { path: at, .. }) if *at == path),
        "{refused:?}"
    );
    assert!(fits.is_ok(), "{fits:?}");
    assert_eq!(client.registry.session().id(), session);
}

/// The namespace exists after joining, however deep it is, and its siblings can be reached.
pub async fn namespace_exists_and_its_siblings_are_reachable(server: &dyn TestServer) {
    let client = server.join("deep/er/shop", None).await;
    let registry = &client.registry;

    let ledger = registry.namespace().sibling("ledger").unwrap();
    let _ = registry.create(Create::persistent(ledger.path(), "")).await;

    let namespace = registry.namespace().path();
    assert!(namespace.as_str().starts_with("/deep/er/shop"), "{namespace}");
    assert!(registry.exists(namespace).await.unwrap().is_some());
    let beside = registry.children(&"/deep/er".parse().unwrap()).await.unwrap().unwrap();
    let name = namespace.name().to_owned();
    assert!(beside.contains(&format!("{name}~ledger")) && beside.contains(&name), "{beside:?}");
}
