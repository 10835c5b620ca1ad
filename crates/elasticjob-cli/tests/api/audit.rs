//! The audit trail: changes, refusals, logins.

use std::fs;

use serde_json::{Value, json};

use crate::{
    console::{BrowserSession, Console},
    http::request,
    scene::{Scene, settle},
};

const R: &str = "/api/v1/r/shop";

fn start_without_registry() -> Console {
    Console::start(&["shop=zookeeper://127.0.0.1:1/shop"])
}

fn entries(admin: &BrowserSession<'_>, query: &str) -> Vec<Value> {
    admin.data(&format!("/api/v1/audit?{query}"))["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn long_request_is_truncated_in_the_audit() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let long = json!({ "parameter": "x".repeat(60_000), "shards": [1] });
    assert_eq!(
        admin.send(request("POST", &format!("{R}/jobs/settle/trigger")).json(&long)).status,
        200
    );

    let parameter = entries(&admin, "action=job.trigger")[0]["asked"]["parameter"].to_string();

    assert!(parameter.contains("60000 bytes, SHA-256 ") && parameter.len() < 500, "{parameter}");
    let file = fs::metadata(console.folder.path().join("data/audit.jsonl")).unwrap();
    assert!(file.len() < 4_000, "{}", file.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_audited_up_to_a_limit() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let (admin, viewer) = (console.admin(), console.add_user("vera", &json!({ "shop": "viewer" })));
    let config = format!("{R}/jobs/settle/config");

    assert_eq!(viewer.post(&format!("{R}/jobs/settle/disable")).status, 403);
    assert_eq!(viewer.get("/api/v1/accounts").status, 403);
    let stale = request("PATCH", &config).json(&json!({})).header("if-match", "\"77\"");
    assert_eq!(admin.send(stale).status, 412);
    let invalid = request("PATCH", &config).json(&json!({ "cron": "no" })).header("if-match", "*");
    assert_eq!(admin.send(invalid).status, 422);
    let tried = request("POST", &format!("{config}/plan")).json(&json!({ "cron": "no" }));
    assert_eq!(admin.send(tried).status, 422, "a plan changes nothing");
    assert_eq!(admin.send(request("DELETE", "/api/v1/accounts/missing")).status, 404);
    assert_eq!(admin.send(request("DELETE", "/api/v1/registries/shop")).status, 409);

    let viewer_entries = entries(&admin, "action=refused&username=vera&order=asc");
    let of = |entry: &Value| (entry["target"].clone(), entry["asked"]["code"].clone());
    let disable = json!(format!("{R}/jobs/settle/disable"));
    assert_eq!(of(&viewer_entries[0]), (disable, json!("forbidden")), "{viewer_entries:#?}");
    assert_eq!(
        (&viewer_entries[0]["registry"], &viewer_entries[0]["asked"]["method"]),
        (&json!("shop"), &json!("POST"))
    );
    assert_eq!(of(&viewer_entries[1]), (json!("/api/v1/accounts"), json!("forbidden")));
    let admin_entries = entries(&admin, "action=refused&username=admin&order=asc");
    let codes: Vec<_> = admin_entries.iter().map(|entry| entry["asked"]["code"].clone()).collect();
    assert_eq!(codes, ["preconditionFailed", "invalid"], "{admin_entries:#?}");
    for action in ["account.remove", "registry.remove"] {
        let entry = &entries(&admin, &format!("action={action}"))[0];
        assert!(entry["problem"].is_string(), "{entry:#}");
    }

    for _ in 0..30 {
        viewer.post(&format!("{R}/jobs/settle/disable"));
    }
    assert!(entries(&admin, "action=refused&username=vera").len() <= 20, "refusals are limited");
    let file = fs::read_to_string(console.folder.path().join("data/audit.jsonl")).unwrap();
    assert!(file.lines().any(|line| line.contains("\"refused\"")), "it is on disk");
}

#[test]
fn legacy_login_is_audited() {
    let console = start_without_registry();
    let body = json!({ "username": "admin", "password": console.password });
    console.send(&request("POST", "/api/login").json(&body));

    let logins = entries(&console.admin(), "action=login");

    assert!(logins.iter().any(|entry| entry["via"] == "accessToken"), "{logins:#?}");
}

#[test]
fn console_starts_after_a_half_written_audit_line() {
    let console = start_without_registry();
    let path = console.folder.path().join("data/audit.jsonl");
    console.add_user("ann", &json!({ "*": "viewer" }));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(&"{\"id\":99,\"username\":\"\u{4f60}".as_bytes()[..23]);
    fs::write(&path, bytes).unwrap();

    let console = console.restart(&["shop=zookeeper://127.0.0.1:1/shop"]);
    console.add_user("bob", &json!({ "*": "viewer" }));
    let console = console.restart(&["shop=zookeeper://127.0.0.1:1/shop"]);

    let created = entries(&console.admin(), "action=account.put&order=asc");
    let names: Vec<_> = created.iter().map(|entry| entry["target"].clone()).collect();
    assert_eq!(names, ["ann", "bob"]);
}

#[test]
fn unwritable_audit_file_is_reported_until_it_is_writable() {
    let console = start_without_registry();
    assert_eq!(console.send(&request("GET", "/readyz")).text, "ready\n");
    let path = console.folder.path().join("data/audit.jsonl");
    fs::create_dir(&path).unwrap();
    let admin = console.admin();

    assert_eq!(console.send(&request("GET", "/readyz")).status, 503);
    assert_eq!(console.send(&request("GET", "/healthz")).status, 200, "the process is alive");
    let page = admin.data("/api/v1/audit?action=login");
    assert!(page["problem"].is_string() && page["total"].as_u64() >= Some(1), "{page:#}");

    fs::remove_dir(&path).unwrap();
    assert_eq!(console.send(&request("GET", "/readyz")).status, 200);
    assert!(fs::read_to_string(&path).unwrap().contains("\"login\""), "nothing is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_is_audited_because_it_writes() {
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
fn audit_is_filtered_by_time_and_sorted_both_ways() {
    let console = start_without_registry();
    let admin = console.admin();
    for name in ["ann", "bob"] {
        console.add_user(name, &json!({ "*": "viewer" }));
    }
    let created = entries(&admin, "action=account.put&order=asc");
    let names: Vec<_> = created.iter().map(|entry| entry["target"].clone()).collect();
    assert_eq!(names, ["ann", "bob"]);

    let second = created[1]["at"].as_str().unwrap();
    let before = entries(&admin, &format!("action=account.put&to={second}"));
    let since = entries(&admin, &format!("action=account.put&from={second}"));

    assert_eq!((&before[..], &since[..]), (&created[..1], &created[1..]));
    assert_eq!(admin.get("/api/v1/audit?from=noon").json()["field"], "from");
}
