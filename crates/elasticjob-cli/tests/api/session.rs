//! Who gets in, and what they may.

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

fn nowhere() -> Console {
    Console::start(&["shop=zookeeper://127.0.0.1:1/shop"])
}

#[test]
fn the_first_password_is_told_once_and_still_good_after_a_restart() {
    let console = nowhere();
    let file = std::fs::read_to_string(console.folder.path().join("data/accounts.json")).unwrap();
    assert!(file.contains("$argon2id$") && !file.contains(&console.password), "{file}");
    assert_eq!(console.admin().data("/api/v1/session")["roles"], json!({ "*": "admin" }));

    let console = console.again(&["shop=zookeeper://127.0.0.1:1/shop"]);

    assert_eq!(console.admin().data("/api/v1/session")["username"], "admin");
}

#[test]
fn nobody_gets_in_without_a_password_and_a_cookie_is_for_browsers_alone() {
    let console = nowhere();
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
    let answer = console.send(&request("POST", "/api/v1/login").json(&right));

    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let secret = cookie.split(['=', ';']).nth(1).unwrap();
    let header = request("GET", "/api/v1/session").header("access-token", secret);
    assert_eq!(console.send(&header).status, 401, "a cookie's secret is no access token");
}

#[test]
fn a_change_by_cookie_needs_the_csrf_token_and_one_from_another_site_is_never_done() {
    let console = nowhere();
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
fn whoever_logs_out_is_out() {
    let console = nowhere();
    let admin = console.admin();

    assert_eq!(admin.post("/api/v1/logout").status, 204);

    assert_eq!(admin.get("/api/v1/session").status, 401);
}

#[test]
fn passwords_cannot_be_tried_for_ever() {
    let console = nowhere();
    let wrong =
        request("POST", "/api/v1/login").json(&json!({ "username": "admin", "password": "wrong" }));
    for _ in 0..5 {
        assert_eq!(console.send(&wrong).status, 401);
    }

    let answer = console.send(&wrong);

    assert_eq!(answer.problem(), (429, "tooManyRequests".to_owned()));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let right = json!({ "username": "admin", "password": console.password });
    assert_eq!(
        console.send(&request("POST", "/api/v1/login").json(&right)).status,
        429,
        "not even the right one"
    );
}

#[test]
fn a_name_that_somebody_pointed_here_is_turned_away() {
    let console =
        Console::with(&["shop=zookeeper://127.0.0.1:1/shop"], "hosts = ['console.example.com']");
    let at =
        |host: &str| console.send(&request("GET", "/api/v1/openapi.json").header("host", host));

    assert_eq!(at("evil.example.com").problem(), (421, "misdirected".to_owned()));
    assert_eq!((at("console.example.com").status, at("localhost:8899").status), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_may_what_their_role_says_and_no_more() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let urls = [format!("shop={}", scene.url), format!("other={}", scene.url)];
    let console = Console::start(&[&urls[0], &urls[1]]);
    let [viewer, operator, admin] = ["viewer", "operator", "admin"]
        .map(|role| console.somebody(&format!("a-{role}"), &json!({ "shop": role })));
    let job = "/api/v1/r/shop/jobs/settle";

    for visitor in [&viewer, &operator, &admin] {
        assert_eq!(visitor.get(job).status, 200);
        assert_eq!(
            visitor.get("/api/v1/r/other/jobs").problem(),
            (404, "notFound".to_owned()),
            "it is not there for them"
        );
        assert_eq!(visitor.data("/api/v1/registries").as_array().unwrap().len(), 1);
        assert_eq!(visitor.get("/api/v1/accounts").problem().1, "forbidden");
    }
    let statuses = |path: &str, method: &str| {
        [&viewer, &operator, &admin].map(|visitor| visitor.send(request(method, path)).status)
    };
    assert_eq!(statuses(&format!("{job}/disable"), "POST"), [403, 200, 200]);
    assert_eq!(statuses(&format!("{job}/enable"), "POST"), [403, 200, 200]);
    assert_eq!(statuses(&format!("{job}/dump"), "GET"), [403, 403, 200]);
    assert_eq!(statuses("/api/v1/audit", "GET"), [403, 403, 200]);
    assert_eq!(statuses(job, "DELETE"), [403, 403, 409], "it has an instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_at_most_what_its_role_says_until_it_is_removed() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let asked = json!({ "name": "ci", "role": "viewer" });
    let made = admin.send(request("POST", "/api/v1/tokens").json(&asked)).json();
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let send = |method: &str, path: &str| {
        console.send(&request(method, path).header("authorization", &token))
    };

    assert_eq!(send("GET", "/api/v1/r/shop/jobs/settle").status, 200);
    assert_eq!(send("POST", "/api/v1/r/shop/jobs/settle/disable").problem().1, "forbidden");
    let more = request("POST", "/api/v1/tokens").json(&asked).header("authorization", &token);
    assert_eq!(console.send(&more).problem().1, "forbidden", "a token makes no tokens");
    let own = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(send("DELETE", &own).problem().1, "forbidden", "and removes none");
    let file = std::fs::read_to_string(console.folder.path().join("data/accounts.json")).unwrap();
    assert!(!file.contains(made["token"].as_str().unwrap()), "only an imprint is kept");

    let id = made["id"].as_str().unwrap();
    assert_eq!(admin.send(request("DELETE", &format!("/api/v1/tokens/{id}"))).status, 204);
    assert_eq!(send("GET", "/api/v1/r/shop/jobs/settle").status, 401);
}

#[test]
fn a_changed_password_ends_all_other_sessions_and_the_last_admin_stays() {
    let console = nowhere();
    let (here, there) = (console.admin(), console.admin());
    let change = json!({ "oldPassword": console.password, "newPassword": "correct horse" });

    let wrong = json!({ "oldPassword": "no", "newPassword": "correct horse" });
    assert_eq!(
        here.send(request("POST", "/api/v1/password").json(&wrong)).json()["field"],
        "oldPassword"
    );
    let short = json!({ "oldPassword": console.password, "newPassword": "short" });
    assert_eq!(
        here.send(request("POST", "/api/v1/password").json(&short)).json()["field"],
        "newPassword"
    );
    assert_eq!(here.send(request("POST", "/api/v1/password").json(&change)).status, 204);

    assert_eq!(
        (here.get("/api/v1/session").status, there.get("/api/v1/session").status),
        (200, 401)
    );
    console.login("admin", "correct horse");
    assert_eq!(here.send(request("DELETE", "/api/v1/accounts/admin")).problem().1, "refused");
    let demoted = here.put("/api/v1/accounts/admin", &json!({ "roles": { "*": "viewer" } }));
    assert_eq!(demoted.problem().1, "refused");
}

#[test]
fn dev_does_not_listen_where_others_could_reach_it() {
    let ended = elasticjob(&["dev", "--registry-listen", "0", "--listen", "0.0.0.0:0"]);

    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert!(ended.stderr.contains("everybody knows the password of dev"), "{}", ended.stderr);
}

#[test]
fn a_password_that_everybody_knows_is_for_loopback_alone() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().to_str().unwrap();
    let mut dev =
        Process::start(&["dev", "--registry-listen", "0", "--listen", "0", "--data", data]);
    dev.logged("root / root");
    dev.terminate();
    dev.ended();

    let kept = folder.path().join("console");
    let ended = elasticjob(&["console", "--listen", "0.0.0.0:0", "--data", kept.to_str().unwrap()]);

    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert!(ended.stderr.contains("change it on loopback first"), "{}", ended.stderr);
}

#[test]
fn who_never_says_what_they_want_keeps_no_connection() {
    let console = nowhere();
    let mut slow = TcpStream::connect(&console.address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /api/v1/session HTTP/1.1\r\nhost: 127.0.0.1\r\n").unwrap();

    let mut answered = Vec::new();
    let ended = slow.read_to_end(&mut answered);

    assert!(ended.is_ok(), "it is still open: {ended:?}");
    assert_eq!(console.send(&request("GET", "/api/v1/session")).status, 401, "others are answered");
}

#[test]
fn an_admin_takes_away_somebody_elses_token() {
    let console = nowhere();
    let (admin, ann) = (console.admin(), console.somebody("ann", &json!({ "*": "viewer" })));
    let asked = json!({ "name": "ci", "role": "viewer" });
    let made = ann.send(request("POST", "/api/v1/tokens").json(&asked)).json();
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let path = format!("/api/v1/accounts/ann/tokens/{}", made["id"].as_str().unwrap());

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
fn whoever_is_thrown_out_is_out_and_may_come_again() {
    let console = nowhere();
    let (admin, ann) = (console.admin(), console.somebody("ann", &json!({ "*": "viewer" })));
    let open = admin.data("/api/v1/sessions");
    let hers = json!({ "username": "ann", "count": 1, "isElsewhere": false });
    assert!(open.as_array().unwrap().contains(&hers), "{open:#}");
    assert_eq!(ann.get("/api/v1/sessions").problem().1, "forbidden");

    let end = || admin.send(request("DELETE", "/api/v1/sessions/ann"));
    assert_eq!(end().status, 204);

    assert_eq!((ann.get("/api/v1/session").status, end().problem().0), (401, 404));
    console.login("ann", "correct horse");
}

#[test]
fn one_who_mistypes_behind_a_proxy_slows_nobody_else_down() {
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
    assert_eq!(login("admin", "wrong", "2.2.2.2, 203.0.113.9"), 429, "it is the same client");

    assert_eq!(login("nobody", "wrong", "203.0.113.9"), 401, "another name from there");
    assert_eq!(login("admin", &console.password, "198.51.100.7"), 200, "the name from elsewhere");

    let logins = console.admin().data("/api/v1/audit?action=login");
    let addresses: Vec<_> =
        logins["items"].as_array().unwrap().iter().map(|entry| entry["address"].clone()).collect();
    assert!(addresses.contains(&json!("203.0.113.9")), "{addresses:?}");
    let nowhere = nowhere();
    let wrong = json!({ "username": "admin", "password": "wrong" });
    let forged = request("POST", "/api/v1/login").json(&wrong);
    for number in 0..5 {
        let from = format!("203.0.113.{number}");
        assert_eq!(nowhere.send(&forged.clone().header("x-forwarded-for", &from)).status, 401);
    }
    assert_eq!(nowhere.send(&forged).status, 429, "nobody is believed who is not named");
}
