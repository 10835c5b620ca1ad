//! Changes whose client disconnects.

use elasticjob::Job;
use serde_json::{Value, json};

use crate::{
    console::{BrowserSession, Console},
    http::{Request, request},
    process::PATIENCE,
    scene::Scene,
};

const TRIGGER: &str = "/api/v1/r/shop/jobs/settle/trigger";
/// An instance without a process.
const INSTANCE: &str = "10.0.0.1@-@1-a";

async fn scene() -> Scene {
    let scene = Scene::with("").await;
    scene.put("settle/config", &Job::named("settle").unwrap().to_yaml()).await;
    scene.put(&format!("settle/instances/{INSTANCE}"), "").await;
    scene
}

/// Waits until the doorbell of the instance rings; returns the run that it names.
async fn wait_for_doorbell(scene: &Scene) -> Value {
    let path = format!("settle/trigger/{INSTANCE}");
    let look = async {
        loop {
            if let Some(text) = scene.get(&path).await {
                let note: Value = serde_json::from_str(&text).unwrap();
                return note["look"].clone();
            }
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap()
}

/// The runs of the stored triggers.
async fn stored_triggers(scene: &Scene) -> Value {
    let registry = scene.connect().await;
    let ledger = registry.namespace().sibling("ledger").unwrap();
    let path = ledger.path().join("settle/triggers").unwrap();
    json!(registry.children(&path).await.unwrap().unwrap_or_default())
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
    let run = wait_for_doorbell(&scene).await;
    drop(disconnected);
    let again = console.send(&sent).json();

    assert_eq!((&again["runId"], &again["instances"]), (&run, &json!([INSTANCE])), "{again:#}");
    assert_eq!(stored_triggers(&scene).await, json!([run]), "the job is not triggered twice");
    let audit = admin.data("/api/v1/audit?action=job.trigger");
    assert_eq!(audit["total"], 1, "{audit:#}");

    let console = console.restart(&[&registry]);
    let admin = console.admin();
    let after_restart = console.send(&trigger(&admin).header("idempotency-key", "k1")).json();
    assert_eq!(after_restart["runId"], run, "the run id is derived from the key");
    assert_eq!(stored_triggers(&scene).await, json!([run]));
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_audited_after_its_client_disconnects() {
    let scene = scene().await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let disconnected = trigger(&admin).open(&console.address);
    let run = wait_for_doorbell(&scene).await;
    drop(disconnected);

    let audit = admin.wait_until("/api/v1/audit?action=job.trigger", |page| page["total"] == 1);
    assert_eq!(audit["items"][0]["result"]["runId"], run, "{audit:#}");
}
