//! Whoever hangs up has begun what they began.

use elasticjob::{Job, registry::Expected};
use serde_json::{Value, json};

use crate::{
    console::{Console, Visitor},
    http::{Request, request},
    process::PATIENCE,
    scene::Scene,
};

const TRIGGER: &str = "/api/v1/r/shop/jobs/settle/trigger";
/// Two instances that nobody stands behind: the second never takes the trigger that waits there, which keeps whoever asks waiting.
const QUICK: &str = "10.0.0.1@-@1-a";
const SLOW: &str = "10.0.0.2@-@2-b";

async fn scene() -> Scene {
    let scene = Scene::with("").await;
    scene.put("settle/config", &Job::named("settle").unwrap().to_yaml()).await;
    for id in [QUICK, SLOW] {
        scene.put(&format!("settle/instances/{id}"), "").await;
    }
    scene.put(&format!("settle/trigger/{SLOW}"), "").await;
    scene
}

/// What the quick one is asked to do, as soon as it is asked.
async fn asked(scene: &Scene) -> Value {
    let path = format!("settle/trigger/{QUICK}");
    let look = async {
        loop {
            if let Some(text) = scene.get(&path).await {
                return serde_json::from_str(&text).unwrap();
            }
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap()
}

/// The quick one takes note.
async fn take(scene: &Scene) {
    let registry = scene.line().await;
    let path = format!("settle/trigger/{QUICK}");
    let path = registry.namespace().path().join(&path).unwrap();
    registry.delete(&path, Expected::Any).await.unwrap();
}

fn trigger(visitor: &Visitor<'_>) -> Request {
    request("POST", TRIGGER)
        .json(&json!({}))
        .header("cookie", &visitor.cookie)
        .header("x-csrf-token", &visitor.csrf)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_whose_asker_hung_up_and_asked_again_is_one_run() {
    let scene = scene().await;
    let registry = format!("shop={}", scene.url);
    let console = Console::start(&[&registry]);
    let admin = console.admin();
    let sent = trigger(&admin).header("idempotency-key", "k1");

    let hung_up = sent.open(&console.address);
    let run = asked(&scene).await["run"].clone();
    drop(hung_up);
    take(&scene).await;
    let again = console.send(&sent).json();

    assert_eq!((&again["runId"], &again["instances"]), (&run, &json!([QUICK])), "{again:#}");
    assert_eq!(scene.get(&format!("settle/trigger/{QUICK}")).await, None, "it is not asked twice");
    let audit = admin.data("/api/v1/audit?action=job.trigger");
    assert_eq!(audit["total"], 1, "{audit:#}");

    let console = console.again(&[&registry]);
    let admin = console.admin();
    let forgotten = console.send(&trigger(&admin).header("idempotency-key", "k1")).json();
    assert_eq!(forgotten["runId"], run, "the run is called after its key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_asker_hung_up_is_in_the_audit() {
    let scene = scene().await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let hung_up = trigger(&admin).open(&console.address);
    let run = asked(&scene).await["run"].clone();
    drop(hung_up);

    let audit = admin.until("/api/v1/audit?action=job.trigger", |page| page["total"] == 1);
    assert_eq!(audit["items"][0]["result"]["runId"], run, "{audit:#}");
}
