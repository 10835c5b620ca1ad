//! Several registries: outages, additions, removals.

use serde_json::{Value, json};

use crate::{
    console::Console,
    http::request,
    scene::{Scene, settle},
};

fn state<'a>(registries: &'a Value, name: &str) -> &'a Value {
    let registries = registries.as_array().unwrap();
    &registries.iter().find(|registry| registry["name"] == name).unwrap()["state"]
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_outage_affects_no_other_and_recovers() {
    let (up, mut down) = (Scene::with("").await, Scene::with("").await);
    let _node = up.node(settle()).await;
    let console = Console::start(&[&format!("up={}", up.url), &format!("down={}", down.url)]);
    let admin = console.admin();
    assert_eq!(state(&admin.data("/api/v1/registries"), "up"), "idle", "connected on first use");
    assert_eq!(admin.data("/api/v1/r/down/jobs")["total"], 0);

    let server = down.registry.take().unwrap();
    let address = server.address();
    server.shutdown().await.unwrap();

    admin.wait_until("/api/v1/registries", |registries| state(registries, "down") == "down");
    let last = admin.data("/api/v1/r/down/jobs");
    assert_eq!(
        (&last["total"], &last["isCurrent"]),
        (&json!(0), &json!(false)),
        "the last known list, marked as not current"
    );
    assert_eq!(admin.data("/api/v1/r/up/jobs")["total"], 1);

    let mut config = tinykeeper::server::Config::in_memory();
    config.listen = address;
    let _server = tinykeeper::server::Server::start(config).await.unwrap();
    admin.wait_until("/api/v1/r/down/jobs", |page| page["isCurrent"] == true);
}

#[test]
fn unreachable_registry_is_reported_as_unreachable() {
    let console =
        Console::start(&["gone=zookeeper://127.0.0.1:1/shop?connectionTimeout=1s&maxRetries=0"]);
    let admin = console.admin();

    for path in ["jobs", "jobs/settle", "servers", "overview"] {
        let response = admin.get(&format!("/api/v1/r/gone/{path}"));
        assert_eq!(response.problem(), (503, "unreachable".to_owned()), "{response:?}");
        assert!(response.header("retry-after").is_some());
    }
    assert_eq!(admin.get("/api/v1/r/never/jobs").problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_adds_only_allowed_registries_and_passwords_stay_hidden() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let plain = scene.url.clone();
    let secret = plain.replace("://", "://jane:hunter2@");
    let file = "[addRegistries]\nenabled = true\nhosts = ['127.0.0.1']\n";
    let console = Console::with(&["first=zookeeper://127.0.0.1:1/shop"], file);
    let admin = console.admin();
    let add = |name: &str, url: &str| {
        admin.send(request("POST", "/api/v1/registries").json(&json!({ "name": name, "url": url })))
    };

    let evil = add("evil", "zookeeper://169.254.169.254:80/latest");
    assert_eq!((evil.problem().0, evil.json()["field"].clone()), (422, json!("url")));
    assert_eq!(add("../x", &plain).json()["field"], "name");
    let tried =
        admin.send(request("POST", "/api/v1/registries/test").json(&json!({ "url": plain })));
    assert_eq!(tried.json(), json!({ "isReachable": true, "jobCount": 1, "problem": null }));
    let added = add("second", &secret);
    assert_eq!(added.status, 201);
    assert_eq!(add("second", &secret).problem().0, 409);
    assert!(admin.data("/api/v1/r/second/jobs")["total"] == 1);

    let texts = [admin.get("/api/v1/registries").text, admin.get("/api/v1/audit").text, added.text];
    assert!(
        texts.iter().all(|text| text.contains("jane:***") && !text.contains("hunter2")),
        "{texts:?}"
    );
    let viewer = console.add_user("viewer", &json!({ "*": "viewer" }));
    let sent =
        request("POST", "/api/v1/registries").json(&json!({ "name": "third", "url": plain }));
    assert_eq!(viewer.send(sent).problem().1, "forbidden");

    let console = console.restart(&["first=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();
    assert_eq!(admin.data("/api/v1/r/second/jobs")["total"], 1, "it is stored");
    assert_eq!(
        admin.send(request("DELETE", "/api/v1/registries/first")).problem(),
        (409, "refused".to_owned())
    );
    assert_eq!(admin.send(request("DELETE", "/api/v1/registries/second")).status, 204);
    assert_eq!(admin.get("/api/v1/r/second/jobs").problem().0, 404);
    assert!(
        admin.data("/api/v1/audit?action=registry.add")["total"].as_u64().unwrap() >= 1,
        "the audit is stored"
    );
}

#[test]
fn adding_a_registry_requires_that_it_is_enabled() {
    let console = Console::start(&["first=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();

    let sent = request("POST", "/api/v1/registries")
        .json(&json!({ "name": "x", "url": "zookeeper://127.0.0.1/x" }));
    assert_eq!(admin.send(sent).problem(), (409, "refused".to_owned()));
}
