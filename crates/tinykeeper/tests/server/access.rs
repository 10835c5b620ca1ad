//! Access lists with the schemes world, auth, digest and ip.

use bytes::Bytes;
use tinykeeper::{
    server::Server,
    wire::{Acl, AddWatchMode, AuthId, Code, EventKind, MultiResult, Op, Perms, Request, Response},
};

use super::{
    log::Log,
    raw::{RawClient, create, create_for, delete, exists, get, set},
    serve,
};

const JANE: &str = "jane:secret";

fn acl(perms: Perms, scheme: &str, id: &str) -> Acl {
    Acl { perms, id: AuthId { scheme: scheme.into(), id: id.into() } }
}

fn set_acl(path: &str, list: Vec<Acl>, version: i32) -> Request {
    Request::Write(Op::SetAcl { path: path.into(), acl: list, version })
}

fn get_acl(path: &str) -> Request {
    Request::GetAcl { path: path.into() }
}

async fn anonymous(server: &Server) -> RawClient {
    RawClient::connect(server.address()).await
}

async fn jane(server: &Server) -> RawClient {
    let mut jane = RawClient::connect(server.address()).await;
    let proof = Request::Auth { scheme: "digest".into(), auth: JANE.into() };
    assert_eq!(jane.call(&proof).await, Ok(Response::Empty));
    jane
}

#[tokio::test]
async fn node_with_creator_acl_refuses_other_clients() {
    let server = serve(|_| {}).await;
    let (mut jane, mut anonymous) = (jane(&server).await, anonymous(&server).await);
    jane.call(&create_for("/hers", Acl::creator_all())).await.unwrap();

    for request in [
        get("/hers"),
        set("/hers", "x"),
        create("/hers/child"),
        get_acl("/hers"),
        set_acl("/hers", Acl::open(), -1),
        Request::GetChildren { path: "/hers".into(), watch: false },
        Request::GetAllChildrenNumber { path: "/hers".into() },
        Request::Multi(vec![Op::Check { path: "/hers".into(), version: -1 }]),
    ] {
        let refused = anonymous.call(&request).await;
        match refused {
            Err(code) => assert_eq!(code, Code::NO_AUTH, "{request:?}"),
            Ok(Response::Multi(results)) => {
                assert_eq!(results, [MultiResult::Error(Code::NO_AUTH)]);
            }
            other => panic!("{request:?}: {other:?}"),
        }
    }
    assert!(anonymous.call(&exists("/hers")).await.is_ok(), "existence is visible to everyone");
    jane.call(&set("/hers", "x")).await.expect("allowed");
    jane.call(&create("/hers/child")).await.expect("allowed");
    assert_eq!(anonymous.call(&delete("/hers/child")).await, Err(Code::NO_AUTH));
    assert!(anonymous.call(&set("/hers/child", "x")).await.is_ok(), "lists are not inherited");
    jane.call(&delete("/hers/child")).await.expect("allowed");
    assert!(
        anonymous.call(&delete("/hers")).await.is_ok(),
        "the parent's list decides about deletion"
    );
}

#[tokio::test]
async fn digest_acl_admits_its_user_on_any_connection() {
    let server = serve(|_| {}).await;
    let mut owner = anonymous(&server).await;
    let hers = vec![Acl { perms: Perms::READ, id: AuthId::digest(JANE) }];
    owner.call(&create_for("/hers", hers)).await.unwrap();

    assert_eq!(owner.call(&get("/hers")).await, Err(Code::NO_AUTH));
    let mut jane = jane(&server).await;
    assert!(jane.call(&get("/hers")).await.is_ok());
    assert_eq!(jane.call(&set("/hers", "x")).await, Err(Code::NO_AUTH), "only granted permissions");
    let mut impostor = anonymous(&server).await;
    let proof = Request::Auth { scheme: "digest".into(), auth: "jane:guess".into() };
    impostor.call(&proof).await.expect("every digest is accepted");
    assert_eq!(impostor.call(&get("/hers")).await, Err(Code::NO_AUTH));
}

#[tokio::test]
async fn authentication_belongs_to_the_connection_not_to_the_session() {
    let server = serve(|_| {}).await;
    let mut jane = jane(&server).await;
    jane.call(&create_for("/hers", Acl::creator_all())).await.unwrap();

    let mut again = jane.resume(server.address()).await;

    assert_eq!(again.session, jane.session);
    assert_eq!(again.call(&get("/hers")).await, Err(Code::NO_AUTH));
}

#[tokio::test]
async fn ip_acl_admits_only_addresses_in_its_range() {
    let server = serve(|_| {}).await;
    let mut client = anonymous(&server).await;

    for (index, (range, may)) in
        [("127.0.0.1", true), ("127.0.0.0/8", true), ("10.0.0.0/8", false), ("::1", false)]
            .into_iter()
            .enumerate()
    {
        let path = format!("/{index}");
        client.call(&create_for(&path, vec![acl(Perms::ALL, "ip", range)])).await.unwrap();

        let reply = client.call(&get(&path)).await;

        assert_eq!(reply.is_ok(), may, "{range}: {reply:?}");
    }
}

#[tokio::test]
async fn world_acl_grants_only_its_permissions() {
    let server = serve(|_| {}).await;
    let mut client = anonymous(&server).await;
    let read_only = vec![acl(Perms::READ, "world", "anyone")];

    client.call(&create_for("/a", read_only)).await.unwrap();

    assert!(client.call(&get("/a")).await.is_ok());
    assert_eq!(client.call(&set("/a", "x")).await, Err(Code::NO_AUTH));
    assert_eq!(client.call(&create("/a/b")).await, Err(Code::NO_AUTH));
}

#[tokio::test]
async fn invalid_acl_is_refused() {
    let server = serve(|_| {}).await;
    let mut client = anonymous(&server).await;
    client.call(&create("/a")).await.unwrap();

    for list in [
        vec![],
        Acl::creator_all(),
        vec![acl(Perms::ALL, "world", "me")],
        vec![acl(Perms::ALL, "digest", "no-colon")],
        vec![acl(Perms::ALL, "ip", "somewhere")],
        vec![acl(Perms::ALL, "sasl", "jane")],
    ] {
        let created = client.call(&create_for("/b", list.clone())).await;
        assert_eq!(created, Err(Code::INVALID_ACL), "{list:?}");
        let changed = client.call(&set_acl("/a", list.clone(), -1)).await;
        assert_eq!(changed, Err(Code::INVALID_ACL), "{list:?}");
    }
}

#[tokio::test]
async fn set_acl_requires_the_current_version() {
    let server = serve(|_| {}).await;
    let mut client = anonymous(&server).await;
    client.call(&create("/a")).await.unwrap();
    let list = vec![acl(Perms(Perms::READ.0 | Perms::ADMIN.0), "world", "anyone")];

    assert_eq!(client.call(&set_acl("/a", list.clone(), 1)).await, Err(Code::BAD_VERSION));
    let stat = client.stat(&set_acl("/a", list.clone(), 0)).await;

    assert_eq!((stat.aversion, stat.version), (1, 0));
    assert_eq!(client.call(&get_acl("/a")).await, Ok(Response::Acl { acl: list, stat }));
    assert_eq!(client.call(&set_acl("/x", Acl::open(), -1)).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn get_acl_shows_digests_only_to_admins() {
    let server = serve(|_| {}).await;
    let mut jane = jane(&server).await;
    let hers = Acl { perms: Perms::ALL, id: AuthId::digest(JANE) };
    let public = acl(Perms::READ, "world", "anyone");
    jane.call(&create_for("/a", vec![hers.clone(), public.clone()])).await.unwrap();

    for (mut client, shown) in
        [(jane, hers), (anonymous(&server).await, acl(Perms::ALL, "digest", "jane:x"))]
    {
        let Ok(Response::Acl { acl, .. }) = client.call(&get_acl("/a")).await else { panic!() };
        assert_eq!(acl, [shown, public.clone()]);
    }
}

#[tokio::test]
async fn watcher_without_read_permission_is_not_notified() {
    let server = serve(|_| {}).await;
    let (mut jane, mut anonymous) = (jane(&server).await, anonymous(&server).await);
    let watch = Request::AddWatch { path: "/".into(), mode: AddWatchMode::PersistentRecursive };
    anonymous.call(&watch).await.unwrap();
    jane.call(&watch).await.unwrap();

    jane.call(&create_for("/hers", Acl::creator_all())).await.unwrap();
    jane.call(&create("/public")).await.unwrap();

    let event = anonymous.event().await;
    assert_eq!((event.kind, &*event.path), (EventKind::NodeCreated, "/public"));
    let notified: Vec<String> = jane.take_events().into_iter().map(|(_, path)| path).collect();
    assert_eq!(notified, ["/hers", "/public"]);
}

#[tokio::test]
async fn unknown_auth_scheme_fails_and_ends_the_connection() {
    let log = Log::capture();
    let server = serve(|_| {}).await;

    for (scheme, auth) in [("kerberos", &b"ticket"[..]), ("digest", b"\xff\xfe")] {
        let mut client = anonymous(&server).await;
        let auth = Bytes::copy_from_slice(auth);

        let reply = client.call(&Request::Auth { scheme: scheme.into(), auth }).await;

        assert_eq!(reply, Err(Code::AUTH_FAILED), "{scheme}");
        client.wait_closed().await;
    }
    log.wait_for_line(&["connection ended"]).await;
}

#[tokio::test]
async fn who_am_i_shows_users_without_digests() {
    let server = serve(|_| {}).await;
    let mut jane = jane(&server).await;
    let mut anonymous = anonymous(&server).await;
    let address = ("ip".to_owned(), "127.0.0.1".to_owned());

    assert_eq!(anonymous.call(&Request::WhoAmI).await, Ok(Response::WhoAmI(vec![address.clone()])));
    let user = ("digest".to_owned(), "jane".to_owned());
    assert_eq!(jane.call(&Request::WhoAmI).await, Ok(Response::WhoAmI(vec![address, user])));
}
