//! Who changed what, and what was refused: written down whatever happens.

use std::fs;

use serde_json::{Value, json};

use crate::{
    console::{Console, Visitor},
    http::request,
    scene::{Scene, settle},
};

const R: &str = "/api/v1/r/shop";

fn nowhere() -> Console {
    Console::start(&["shop=zookeeper://127.0.0.1:1/shop"])
}

fn entries(admin: &Visitor<'_>, query: &str) -> Vec<Value> {
    admin.data(&format!("/api/v1/audit?{query}"))["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_is_cut_so_that_nobody_pushes_others_out() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let long = json!({ "parameter": "x".repeat(60_000), "shards": [1] });
    assert_eq!(
        admin.send(request("POST", &format!("{R}/jobs/settle/trigger")).json(&long)).status,
        200
    );

    let told = entries(&admin, "action=job.trigger")[0]["asked"]["parameter"].to_string();

    assert!(told.contains("60000 bytes, SHA-256 ") && told.len() < 500, "{told}");
    let file = fs::metadata(console.folder.path().join("data/audit.jsonl")).unwrap();
    assert!(file.len() < 4_000, "{}", file.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_written_down_but_not_without_end() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let (admin, viewer) = (console.admin(), console.somebody("vera", &json!({ "shop": "viewer" })));
    let config = format!("{R}/jobs/settle/config");

    assert_eq!(viewer.post(&format!("{R}/jobs/settle/disable")).status, 403);
    assert_eq!(viewer.get("/api/v1/accounts").status, 403);
    let stale = request("PATCH", &config).json(&json!({})).header("if-match", "\"77\"");
    assert_eq!(admin.send(stale).status, 412);
    let wrong = request("PATCH", &config).json(&json!({ "cron": "no" })).header("if-match", "*");
    assert_eq!(admin.send(wrong).status, 422);
    let tried = request("POST", &format!("{config}/plan")).json(&json!({ "cron": "no" }));
    assert_eq!(admin.send(tried).status, 422, "that would have changed nothing");
    assert_eq!(admin.send(request("DELETE", "/api/v1/accounts/nobody")).status, 404);
    assert_eq!(admin.send(request("DELETE", "/api/v1/registries/shop")).status, 409);

    let hers = entries(&admin, "action=refused&username=vera&order=asc");
    let of = |entry: &Value| (entry["target"].clone(), entry["asked"]["code"].clone());
    let disable = json!(format!("{R}/jobs/settle/disable"));
    assert_eq!(of(&hers[0]), (disable, json!("forbidden")), "{hers:#?}");
    assert_eq!(
        (&hers[0]["registry"], &hers[0]["asked"]["method"]),
        (&json!("shop"), &json!("POST"))
    );
    assert_eq!(of(&hers[1]), (json!("/api/v1/accounts"), json!("forbidden")));
    let ours = entries(&admin, "action=refused&username=admin&order=asc");
    let codes: Vec<_> = ours.iter().map(|entry| entry["asked"]["code"].clone()).collect();
    assert_eq!(codes, ["preconditionFailed", "invalid"], "{ours:#?}");
    for action in ["account.remove", "registry.remove"] {
        let entry = &entries(&admin, &format!("action={action}"))[0];
        assert!(entry["problem"].is_string(), "{entry:#}");
    }

    for _ in 0..30 {
        viewer.post(&format!("{R}/jobs/settle/disable"));
    }
    assert!(entries(&admin, "action=refused&username=vera").len() <= 20, "it goes on for ever");
    let file = fs::read_to_string(console.folder.path().join("data/audit.jsonl")).unwrap();
    assert!(file.lines().any(|line| line.contains("\"refused\"")), "it is on disk");
}

#[test]
fn whoever_logs_in_with_the_ancestors_words_is_written_down_too() {
    let console = nowhere();
    let body = json!({ "username": "admin", "password": console.password });
    console.send(&request("POST", "/api/login").json(&body));

    let logins = entries(&console.admin(), "action=login");

    assert!(logins.iter().any(|entry| entry["via"] == "accessToken"), "{logins:#?}");
}

#[test]
fn a_line_that_was_half_written_keeps_nobody_from_starting() {
    let console = nowhere();
    let path = console.folder.path().join("data/audit.jsonl");
    console.somebody("ann", &json!({ "*": "viewer" }));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(&"{\"id\":99,\"username\":\"\u{4f60}".as_bytes()[..23]);
    fs::write(&path, bytes).unwrap();

    let console = console.again(&["shop=zookeeper://127.0.0.1:1/shop"]);
    console.somebody("bob", &json!({ "*": "viewer" }));
    let console = console.again(&["shop=zookeeper://127.0.0.1:1/shop"]);

    let made = entries(&console.admin(), "action=account.put&order=asc");
    let names: Vec<_> = made.iter().map(|entry| entry["target"].clone()).collect();
    assert_eq!(names, ["ann", "bob"]);
}

#[test]
fn a_file_that_cannot_be_written_is_told_to_whoever_asks() {
    let console = nowhere();
    assert_eq!(console.send(&request("GET", "/readyz")).text, "ready\n");
    let path = console.folder.path().join("data/audit.jsonl");
    fs::create_dir(&path).unwrap();
    let admin = console.admin();

    assert_eq!(console.send(&request("GET", "/readyz")).status, 503);
    assert_eq!(console.send(&request("GET", "/healthz")).status, 200, "it lives all the same");
    let page = admin.data("/api/v1/audit?action=login");
    assert!(page["problem"].is_string() && page["total"].as_u64() >= Some(1), "{page:#}");

    fs::remove_dir(&path).unwrap();
    assert_eq!(console.send(&request("GET", "/readyz")).status, 200);
    assert!(fs::read_to_string(&path).unwrap().contains("\"login\""), "nothing is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_examination_is_written_down_for_it_writes() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    admin.data(&format!("{R}/doctor"));

    let entry = &entries(&admin, "action=registry.examine")[0];

    assert_eq!((&entry["registry"], &entry["username"]), (&json!("shop"), &json!("admin")));
    assert!(entry["result"]["findings"].as_u64() >= Some(1), "{entry:#}");
}

#[test]
fn entries_are_found_by_their_time_and_in_both_orders() {
    let console = nowhere();
    let admin = console.admin();
    for name in ["ann", "bob"] {
        console.somebody(name, &json!({ "*": "viewer" }));
    }
    let made = entries(&admin, "action=account.put&order=asc");
    let names: Vec<_> = made.iter().map(|entry| entry["target"].clone()).collect();
    assert_eq!(names, ["ann", "bob"]);

    let second = made[1]["at"].as_str().unwrap();
    let before = entries(&admin, &format!("action=account.put&to={second}"));
    let since = entries(&admin, &format!("action=account.put&from={second}"));

    assert_eq!((&before[..], &since[..]), (&made[..1], &made[1..]));
    assert_eq!(admin.get("/api/v1/audit?from=noon").json()["field"], "from");
}
