//! The event stream of a registry.

use std::{
    io::{BufRead, BufReader, ErrorKind},
    net::TcpStream,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use elasticjob::{
    Job,
    registry::ExpectedVersion,
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    console::{BrowserSession, Console},
    http::request,
    process::PATIENCE,
    scene::{Scene, settle},
};

/// Lines of a stream as they arrive.
fn lines(
    console: &Console,
    session: &BrowserSession<'_>,
    path: &str,
) -> impl Iterator<Item = String> + use<> {
    lines_of(request("GET", path).header("cookie", &session.cookie).open(&console.address))
}

fn lines_of(stream: TcpStream) -> impl Iterator<Item = String> {
    BufReader::new(stream).lines().map_while(|line| match line {
        // A stream that is silent has not ended.
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("nothing came for {PATIENCE:?}, and the stream is open")
        }
        line => line.ok(),
    })
}

/// Events of a stream as they arrive.
fn listen(
    console: &Console,
    session: &BrowserSession<'_>,
    path: &str,
) -> impl Iterator<Item = (String, Value)> + use<> {
    let lines = lines(console, session, path);
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
async fn event_stream_reports_jobs_and_shards() {
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
async fn event_stream_requires_a_role() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let outsider = console.add_user("outsider", &json!({ "other": "admin" }));

    assert_eq!(outsider.get("/api/v1/r/shop/events").problem().0, 404);
    assert_eq!(console.send(&request("GET", "/api/v1/r/shop/events")).problem().0, 401);
}

/// Changes the description of a job continuously until the returned task set is dropped.
async fn change_constantly(scene: &Scene) -> JoinSet<()> {
    let busy = |text: String| Job::named("busy").unwrap().description(text).to_yaml();
    scene.put("busy/config", &busy(String::new())).await;
    let registry = scene.connect().await;
    let path = registry.namespace().path().join("busy/config").unwrap();
    let mut writers = JoinSet::new();
    writers.spawn(async move {
        for number in 0.. {
            registry
                .set(&path, busy(format!("{number}")).into(), ExpectedVersion::Any)
                .await
                .unwrap();
        }
    });
    writers
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_ends_with_the_right_to_read_even_under_load() {
    let scene = Scene::with("").await;
    let _busy = change_constantly(&scene).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let [logged_out, demoted] =
        ["leaves", "demoted"].map(|name| console.add_user(name, &json!({ "shop": "viewer" })));
    let streams = [&logged_out, &demoted].map(|session| {
        let mut events = listen(&console, session, "/api/v1/r/shop/events");
        events.find(|(name, data)| name == "job" && data["jobName"] == "busy").unwrap();
        events
    });

    assert_eq!(logged_out.post("/api/v1/logout").status, 204);
    let roles = json!({ "roles": { "other": "viewer" } });
    assert_eq!(console.admin().put("/api/v1/accounts/demoted", &roles).status, 204);

    for events in streams {
        let deadline = SystemClock.monotonic() + PATIENCE;
        for event in events {
            assert!(SystemClock.monotonic() < deadline, "the stream still sends {event:?}");
        }
    }
}

/// Opens the event stream with this `Authorization` and waits for its first event; returns the lines that follow.
fn listen_as(console: &Console, authorization: &str) -> impl Iterator<Item = String> + use<> {
    let request = request("GET", "/api/v1/r/shop/events").header("authorization", authorization);
    let mut lines = lines_of(request.open(&console.address));
    assert!(lines.any(|line| line == "event: connection"));
    lines
}

/// Waits for the end of a stream that gets nothing but heartbeats.
#[track_caller]
fn wait_for_end(lines: impl Iterator<Item = String>) {
    let deadline = SystemClock.monotonic() + PATIENCE;
    for line in lines {
        assert!(SystemClock.monotonic() < deadline, "the stream still sends {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_ends_with_the_very_token_that_opened_it() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let [revoked, namesake] = [(); 2].map(|()| {
        let body = json!({ "name": "ci", "role": "viewer" });
        admin.send(request("POST", "/api/v1/tokens").json(&body)).json()
    });
    let listen = |token: &Value| {
        listen_as(&console, &format!("Bearer {}", token["token"].as_str().unwrap()))
    };
    let (lines_of_revoked, mut lines_of_namesake) = (listen(&revoked), listen(&namesake));

    let path = format!("/api/v1/tokens/{}", revoked["id"].as_str().unwrap());
    assert_eq!(admin.send(request("DELETE", &path)).status, 204);

    wait_for_end(lines_of_revoked);
    scene.put("settle/config", &settle().to_yaml()).await;
    assert!(lines_of_namesake.any(|line| line == "event: job"), "the other token is valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_ends_with_the_password_that_opened_it() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    console.add_user("ann", &json!({ "shop": "viewer" }));
    let authorization = format!("Basic {}", STANDARD.encode("ann:correct horse"));
    let lines = listen_as(&console, &authorization);

    let body = json!({ "password": "battery staple" });
    assert_eq!(console.admin().put("/api/v1/accounts/ann", &body).status, 204);

    wait_for_end(lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_event_stream_gets_heartbeats_while_others_are_busy() {
    let scene = Scene::with("").await;
    let _busy = change_constantly(&scene).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);

    let mut lines = lines(&console, &console.admin(), "/api/v1/r/shop/events?job=quiet");

    assert!(lines.any(|line| line == ": still there"));
}
