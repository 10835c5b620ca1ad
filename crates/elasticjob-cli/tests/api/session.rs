//! Authentication, roles, tokens, throttling.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::json;

use crate::{
    console::Console,
    http::request,
    process::{PATIENCE, Process, elasticjob},
    scene::{Scene, settle},
};

fn start_without_registry() -> Console {
    Console::start(&["shop=zookeeper://127.0.0.1:1/shop"])
}

#[test]
fn first_password_is_printed_once_and_survives_a_restart() {
    let console = start_without_registry();
    let file = std::fs::read_to_string(console.folder.path().join("data/accounts.json")).unwrap();
    assert!(file.contains("$argon2id$") && !file.contains(&console.password), "{file}");
    assert_eq!(console.admin().data("/api/v1/session")["roles"], json!({ "*": "admin" }));

    let console = console.restart(&["shop=zookeeper://127.0.0.1:1/shop"]);

    assert_eq!(console.admin().data("/api/v1/session")["username"], "admin");
}

#[test]
fn login_is_required_and_a_cookie_secret_is_no_access_token() {
    let console = start_without_registry();
    for path in [
        "/api/v1/session",
        "/api/v1/registries",
        "/api/v1/r/shop/jobs",
        "/api/v1/audit",
        "/api/jobs",
    ] {
        assert_eq!(
            console.send(&request("GET", path)).problem(),
            (401, "notAuthenticated".to_owned()),
            "{path}"
        );
    }
    let wrong = json!({ "username": "admin", "password": "wrong" });
    assert_eq!(console.send(&request("POST", "/api/v1/login").json(&wrong)).status, 401);

    let right = json!({ "username": "admin", "password": console.password });
    let response = console.send(&request("POST", "/api/v1/login").json(&right));

    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let policy = response.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let secret = cookie.split(['=', ';']).nth(1).unwrap();
    let header = request("GET", "/api/v1/session").header("access-token", secret);
    assert_eq!(console.send(&header).status, 401, "the secret of a cookie is not an access token");
}

#[test]
fn change_by_cookie_needs_the_csrf_token_and_the_same_origin() {
    let console = start_without_registry();
    let admin = console.admin();
    let token = json!({ "name": "ci", "role": "viewer" });
    let post = || request("POST", "/api/v1/tokens").json(&token).header("cookie", &admin.cookie);

    assert_eq!(console.send(&post()).problem(), (403, "csrf".to_owned()));
    assert_eq!(console.send(&post().header("x-csrf-token", "guess")).problem().1, "csrf");
    for (name, value) in [("origin", "http://evil.example.com"), ("sec-fetch-site", "cross-site")] {
        let sent = post().header("x-csrf-token", &admin.csrf).header(name, value);
        assert_eq!(console.send(&sent).problem().1, "csrf", "{name}");
    }

    let origin = format!("http://{}", console.address);
    let sent = post().header("x-csrf-token", &admin.csrf).header("origin", &origin);
    assert_eq!(console.send(&sent).status, 201);
}

#[test]
fn logout_ends_the_session() {
    let console = start_without_registry();
    let admin = console.admin();

    assert_eq!(admin.post("/api/v1/logout").status, 204);

    assert_eq!(admin.get("/api/v1/session").status, 401);
}

#[test]
fn password_attempts_are_throttled() {
    let console = start_without_registry();
    let wrong =
        request("POST", "/api/v1/login").json(&json!({ "username": "admin", "password": "wrong" }));
    for _ in 0..5 {
        assert_eq!(console.send(&wrong).status, 401);
    }

    let response = console.send(&wrong);

    assert_eq!(response.problem(), (429, "tooManyRequests".to_owned()));
    assert!(response.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let right = json!({ "username": "admin", "password": console.password });
    assert_eq!(
        console.send(&request("POST", "/api/v1/login").json(&right)).status,
        429,
        "even the right password is throttled"
    );
}

#[test]
fn foreign_host_name_is_rejected() {
    let console =
        Console::with(&["shop=zookeeper://127.0.0.1:1/shop"], "hosts = ['console.example.com']");
    let get_as =
        |host: &str| console.send(&request("GET", "/api/v1/openapi.json").header("host", host));

    assert_eq!(get_as("evil.example.com").problem(), (421, "misdirected".to_owned()));
    assert_eq!((get_as("console.example.com").status, get_as("localhost:8899").status), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_permits_exactly_its_actions() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let urls = [format!("shop={}", scene.url), format!("other={}", scene.url)];
    let console = Console::start(&[&urls[0], &urls[1]]);
    let [viewer, operator, admin] = ["viewer", "operator", "admin"]
        .map(|role| console.add_user(&format!("a-{role}"), &json!({ "shop": role })));
    let job = "/api/v1/r/shop/jobs/settle";

    for session in [&viewer, &operator, &admin] {
        assert_eq!(session.get(job).status, 200);
        assert_eq!(
            session.get("/api/v1/r/other/jobs").problem(),
            (404, "notFound".to_owned()),
            "the registry is not visible"
        );
        assert_eq!(session.data("/api/v1/registries").as_array().unwrap().len(), 1);
        assert_eq!(session.get("/api/v1/accounts").problem().1, "forbidden");
    }
    let statuses = |path: &str, method: &str| {
        [&viewer, &operator, &admin].map(|session| session.send(request(method, path)).status)
    };
    assert_eq!(statuses(&format!("{job}/disable"), "POST"), [403, 200, 200]);
    assert_eq!(statuses(&format!("{job}/enable"), "POST"), [403, 200, 200]);
    assert_eq!(statuses(&format!("{job}/dump"), "GET"), [403, 403, 200]);
    assert_eq!(statuses("/api/v1/audit", "GET"), [403, 403, 200]);
    assert_eq!(statuses(job, "DELETE"), [403, 403, 409], "it has an instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_limited_to_its_role_and_can_be_removed() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let body = json!({ "name": "ci", "role": "viewer" });
    let created = admin.send(request("POST", "/api/v1/tokens").json(&body)).json();
    let token = format!("Bearer {}", created["token"].as_str().unwrap());
    let send = |method: &str, path: &str| {
        console.send(&request(method, path).header("authorization", &token))
    };

    assert_eq!(send("GET", "/api/v1/r/shop/jobs/settle").status, 200);
    assert_eq!(send("POST", "/api/v1/r/shop/jobs/settle/disable").problem().1, "forbidden");
    let more = request("POST", "/api/v1/tokens").json(&body).header("authorization", &token);
    assert_eq!(console.send(&more).problem().1, "forbidden", "a token cannot create tokens");
    let own = format!("/api/v1/tokens/{}", created["id"].as_str().unwrap());
    assert_eq!(send("DELETE", &own).problem().1, "forbidden", "a token cannot remove tokens");
    let file = std::fs::read_to_string(console.folder.path().join("data/accounts.json")).unwrap();
    assert!(!file.contains(created["token"].as_str().unwrap()), "only a hash is stored");

    let id = created["id"].as_str().unwrap();
    assert_eq!(admin.send(request("DELETE", &format!("/api/v1/tokens/{id}"))).status, 204);
    assert_eq!(send("GET", "/api/v1/r/shop/jobs/settle").status, 401);
}

#[test]
fn password_change_ends_other_sessions_and_last_admin_stays() {
    let console = start_without_registry();
    let (session, other_session) = (console.admin(), console.admin());
    let change = json!({ "oldPassword": console.password, "newPassword": "correct horse" });

    let wrong = json!({ "oldPassword": "no", "newPassword": "correct horse" });
    assert_eq!(
        session.send(request("POST", "/api/v1/password").json(&wrong)).json()["field"],
        "oldPassword"
    );
    let short = json!({ "oldPassword": console.password, "newPassword": "short" });
    assert_eq!(
        session.send(request("POST", "/api/v1/password").json(&short)).json()["field"],
        "newPassword"
    );
    assert_eq!(session.send(request("POST", "/api/v1/password").json(&change)).status, 204);

    assert_eq!(
        (session.get("/api/v1/session").status, other_session.get("/api/v1/session").status),
        (200, 401)
    );
    console.login("admin", "correct horse");
    assert_eq!(session.send(request("DELETE", "/api/v1/accounts/admin")).problem().1, "refused");
    let demoted = session.put("/api/v1/accounts/admin", &json!({ "roles": { "*": "viewer" } }));
    assert_eq!(demoted.problem().1, "refused");
}

#[test]
fn dev_refuses_to_listen_on_a_public_address() {
    let result = elasticjob(&["dev", "--registry-listen", "0", "--listen", "0.0.0.0:0"]);

    assert_eq!(result.code, Some(7), "{}", result.stderr);
    assert!(result.stderr.contains("the password of dev is publicly known"), "{}", result.stderr);
}

#[test]
fn publicly_known_password_is_refused_on_a_public_address() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    let mut dev =
        Process::start(&["dev", "--registry-listen", "0", "--listen", "0", "--data", data]);
    dev.wait_for_log("root / root");
    dev.terminate();
    dev.wait();

    let console_data = folder.path().join("console");
    let result =
        elasticjob(&["console", "--listen", "0.0.0.0:0", "--data", console_data.to_str().unwrap()]);

    assert_eq!(result.code, Some(7), "{}", result.stderr);
    assert!(result.stderr.contains("change it on loopback first"), "{}", result.stderr);
}

#[test]
fn client_that_sends_no_complete_request_is_disconnected() {
    let console = start_without_registry();
    let mut slow = TcpStream::connect(&console.address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /api/v1/session HTTP/1.1\r\nhost: 127.0.0.1\r\n").unwrap();

    let mut answered = Vec::new();
    let result = slow.read_to_end(&mut answered);

    assert!(result.is_ok(), "it is still open: {result:?}");
    assert_eq!(
        console.send(&request("GET", "/api/v1/session")).status,
        401,
        "other requests are answered"
    );
}

#[test]
fn admin_removes_the_token_of_another_account() {
    let console = start_without_registry();
    let (admin, ann) = (console.admin(), console.add_user("ann", &json!({ "*": "viewer" })));
    let body = json!({ "name": "ci", "role": "viewer" });
    let created = ann.send(request("POST", "/api/v1/tokens").json(&body)).json();
    let token = format!("Bearer {}", created["token"].as_str().unwrap());
    let path = format!("/api/v1/accounts/ann/tokens/{}", created["id"].as_str().unwrap());

    assert_eq!(ann.send(request("DELETE", &path)).problem().1, "forbidden");
    assert_eq!(admin.send(request("DELETE", &path)).status, 204);

    let sent = request("GET", "/api/v1/session").header("authorization", &token);
    assert_eq!(console.send(&sent).status, 401);
    assert_eq!(ann.get("/api/v1/session").status, 200, "the account stays");
    assert_eq!(admin.send(request("DELETE", &path)).problem().0, 404);
    let entry = admin.data("/api/v1/audit?action=token.remove")["items"][1].clone();
    assert_eq!((&entry["target"], &entry["result"]["username"]), (&json!("ci"), &json!("ann")));
}

#[test]
fn admin_ends_sessions_and_the_user_can_log_in_again() {
    let console = start_without_registry();
    let (admin, ann) = (console.admin(), console.add_user("ann", &json!({ "*": "viewer" })));
    let open = admin.data("/api/v1/sessions");
    let expected = json!({ "username": "ann", "count": 1, "isElsewhere": false });
    assert!(open.as_array().unwrap().contains(&expected), "{open:#}");
    assert_eq!(ann.get("/api/v1/sessions").problem().1, "forbidden");

    let end = || admin.send(request("DELETE", "/api/v1/sessions/ann"));
    assert_eq!(end().status, 204);

    assert_eq!((ann.get("/api/v1/session").status, end().problem().0), (401, 404));
    console.login("ann", "correct horse");
}

#[test]
fn throttling_counts_clients_behind_a_proxy_separately() {
    let file = "trustedProxies = ['127.0.0.0/8']";
    let console = Console::with(&["shop=zookeeper://127.0.0.1:1/shop"], file);
    let login = |username: &str, password: &str, from: &str| {
        let body = json!({ "username": username, "password": password });
        let sent = request("POST", "/api/v1/login").json(&body);
        console.send(&sent.header("x-forwarded-for", from)).status
    };
    for _ in 0..5 {
        assert_eq!(login("admin", "wrong", "1.1.1.1, 203.0.113.9"), 401);
    }
    assert_eq!(login("admin", "wrong", "2.2.2.2, 203.0.113.9"), 429, "same client");

    assert_eq!(login("unknown", "wrong", "203.0.113.9"), 401, "other name, same address");
    assert_eq!(login("admin", &console.password, "198.51.100.7"), 200, "same name, other address");

    let logins = console.admin().data("/api/v1/audit?action=login");
    let addresses: Vec<_> =
        logins["items"].as_array().unwrap().iter().map(|entry| entry["address"].clone()).collect();
    assert!(addresses.contains(&json!("203.0.113.9")), "{addresses:?}");
    let start_without_registry = start_without_registry();
    let wrong = json!({ "username": "admin", "password": "wrong" });
    let forged = request("POST", "/api/v1/login").json(&wrong);
    for number in 0..5 {
        let from = format!("203.0.113.{number}");
        assert_eq!(
            start_without_registry.send(&forged.clone().header("x-forwarded-for", &from)).status,
            401
        );
    }
    assert_eq!(start_without_registry.send(&forged).status, 429, "an untrusted proxy is ignored");
}
