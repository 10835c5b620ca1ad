//! What happens is told as it happens.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::{
    console::{Console, Visitor},
    http::request,
    scene::{Scene, settle},
};

/// The events of a stream, as they come.
fn listen(
    console: &Console,
    visitor: &Visitor<'_>,
    path: &str,
) -> impl Iterator<Item = (String, Value)> + use<> {
    let stream = request("GET", path).header("cookie", &visitor.cookie).open(&console.address);
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut name = String::new();
    lines.filter_map(move |line| {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let data = line.strip_prefix("data: ")?;
        Some((name.clone(), serde_json::from_str(data).unwrap()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_hears_of_jobs_and_shards() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let mut events = listen(&console, &admin, "/api/v1/r/shop/events");
    assert_eq!(events.next(), Some(("connection".to_owned(), json!({ "isConnected": true }))));

    let _node = scene.node(settle().parameter("hang")).await;
    let (_, ok) =
        events.find(|(name, data)| name == "job" && data["job"]["status"] == "OK").unwrap();
    assert_eq!(ok["jobName"], "settle");

    admin.post("/api/v1/r/shop/jobs/settle/trigger");
    events
        .find(|(name, data)| name == "shards" && data["runningItems"] == json!([0, 1, 2]))
        .unwrap();
    admin.send(request("DELETE", "/api/v1/r/shop/jobs/settle?force=true"));
    events.find(|(name, data)| name == "job" && data["job"].is_null()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_look_hears_nothing() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let nobody = console.somebody("nobody", &json!({ "other": "admin" }));

    assert_eq!(nobody.get("/api/v1/r/shop/events").problem().0, 404);
    assert_eq!(console.send(&request("GET", "/api/v1/r/shop/events")).problem().0, 401);
}
