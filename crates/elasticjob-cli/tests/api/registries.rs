//! Several registries at once, and those that come and go.

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
async fn one_that_is_down_hurts_no_other_and_is_found_again_when_it_is_back() {
    let (up, mut down) = (Scene::with("").await, Scene::with("").await);
    let _node = up.node(settle()).await;
    let console = Console::start(&[&format!("up={}", up.url), &format!("down={}", down.url)]);
    let admin = console.admin();
    assert_eq!(
        state(&admin.data("/api/v1/registries"), "up"),
        "idle",
        "connected when it is asked for"
    );
    assert_eq!(admin.data("/api/v1/r/down/jobs")["total"], 0);

    let server = down.registry.take().unwrap();
    let address = server.address();
    server.shutdown().await.unwrap();

    admin.until("/api/v1/registries", |registries| state(registries, "down") == "down");
    let last = admin.data("/api/v1/r/down/jobs");
    assert_eq!(
        (&last["total"], &last["isCurrent"]),
        (&json!(0), &json!(false)),
        "what was last seen, and that it was"
    );
    assert_eq!(admin.data("/api/v1/r/up/jobs")["total"], 1);

    let mut config = tinykeeper::server::Config::ephemeral();
    config.listen = address;
    let _server = tinykeeper::server::Server::start(config).await.unwrap();
    admin.until("/api/v1/r/down/jobs", |page| page["isCurrent"] == true);
}

#[test]
fn one_that_was_never_there_is_a_problem_of_its_own() {
    let console =
        Console::start(&["gone=zookeeper://127.0.0.1:1/shop?connectionTimeout=1s&maxRetries=0"]);
    let admin = console.admin();

    for path in ["jobs", "jobs/settle", "servers", "overview"] {
        let answer = admin.get(&format!("/api/v1/r/gone/{path}"));
        assert_eq!(answer.problem(), (503, "unreachable".to_owned()), "{answer:?}");
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(admin.get("/api/v1/r/never/jobs").problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_adds_only_what_is_allowed_and_its_password_is_never_shown() {
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

    let told = [admin.get("/api/v1/registries").text, admin.get("/api/v1/audit").text, added.text];
    assert!(
        told.iter().all(|text| text.contains("jane:***") && !text.contains("hunter2")),
        "{told:?}"
    );
    let viewer = console.somebody("viewer", &json!({ "*": "viewer" }));
    let sent =
        request("POST", "/api/v1/registries").json(&json!({ "name": "third", "url": plain }));
    assert_eq!(viewer.send(sent).problem().1, "forbidden");

    let console = console.again(&["first=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();
    assert_eq!(admin.data("/api/v1/r/second/jobs")["total"], 1, "it is kept");
    assert_eq!(
        admin.send(request("DELETE", "/api/v1/registries/first")).problem(),
        (409, "refused".to_owned())
    );
    assert_eq!(admin.send(request("DELETE", "/api/v1/registries/second")).status, 204);
    assert_eq!(admin.get("/api/v1/r/second/jobs").problem().0, 404);
    assert!(
        admin.data("/api/v1/audit?action=registry.add")["total"].as_u64().unwrap() >= 1,
        "the audit is kept"
    );
}

#[test]
fn nothing_is_added_where_that_is_not_switched_on() {
    let console = Console::start(&["first=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();

    let sent = request("POST", "/api/v1/registries")
        .json(&json!({ "name": "x", "url": "zookeeper://127.0.0.1/x" }));
    assert_eq!(admin.send(sent).problem(), (409, "refused".to_owned()));
}
