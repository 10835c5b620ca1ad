//! Changes whose client disconnects.

use elasticjob::{Job, registry::ExpectedVersion};
use serde_json::{Value, json};

use crate::{
    console::{BrowserSession, Console},
    http::{Request, request},
    process::PATIENCE,
    scene::Scene,
};

const TRIGGER: &str = "/api/v1/r/shop/jobs/settle/trigger";
/// Two instances without a process. The unresponsive one never takes its trigger, which keeps the client waiting.
const RESPONSIVE: &str = "10.0.0.1@-@1-a";
const UNRESPONSIVE: &str = "10.0.0.2@-@2-b";

async fn scene() -> Scene {
    let scene = Scene::with("").await;
    scene.put("settle/config", &Job::named("settle").unwrap().to_yaml()).await;
    for id in [RESPONSIVE, UNRESPONSIVE] {
        scene.put(&format!("settle/instances/{id}"), "").await;
    }
    scene.put(&format!("settle/trigger/{UNRESPONSIVE}"), "").await;
    scene
}

/// Waits until the responsive instance is triggered; returns the request.
async fn wait_for_trigger(scene: &Scene) -> Value {
    let path = format!("settle/trigger/{RESPONSIVE}");
    let look = async {
        loop {
            if let Some(text) = scene.get(&path).await {
                return serde_json::from_str(&text).unwrap();
            }
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap()
}

/// The responsive instance acknowledges the trigger.
async fn acknowledge_trigger(scene: &Scene) {
    let registry = scene.connect().await;
    let path = format!("settle/trigger/{RESPONSIVE}");
    let path = registry.namespace().path().join(&path).unwrap();
    registry.delete(&path, ExpectedVersion::Any).await.unwrap();
}

fn trigger(session: &BrowserSession<'_>) -> Request {
    request("POST", TRIGGER)
        .json(&json!({}))
        .header("cookie", &session.cookie)
        .header("x-csrf-token", &session.csrf)
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_repeated_after_a_disconnect_is_one_run() {
    let scene = scene().await;
    let registry = format!("shop={}", scene.url);
    let console = Console::start(&[&registry]);
    let admin = console.admin();
    let sent = trigger(&admin).header("idempotency-key", "k1");

    let disconnected = sent.open(&console.address);
    let run = wait_for_trigger(&scene).await["run"].clone();
    drop(disconnected);
    acknowledge_trigger(&scene).await;
    let again = console.send(&sent).json();

    assert_eq!((&again["runId"], &again["instances"]), (&run, &json!([RESPONSIVE])), "{again:#}");
    assert_eq!(
        scene.get(&format!("settle/trigger/{RESPONSIVE}")).await,
        None,
        "the instance is not triggered twice"
    );
    let audit = admin.data("/api/v1/audit?action=job.trigger");
    assert_eq!(audit["total"], 1, "{audit:#}");

    let console = console.restart(&[&registry]);
    let admin = console.admin();
    let after_restart = console.send(&trigger(&admin).header("idempotency-key", "k1")).json();
    assert_eq!(after_restart["runId"], run, "the run id is derived from the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_audited_after_its_client_disconnects() {
    let scene = scene().await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let disconnected = trigger(&admin).open(&console.address);
    let run = wait_for_trigger(&scene).await["run"].clone();
    drop(disconnected);

    let audit = admin.wait_until("/api/v1/audit?action=job.trigger", |page| page["total"] == 1);
    assert_eq!(audit["items"][0]["result"]["runId"], run, "{audit:#}");
}
