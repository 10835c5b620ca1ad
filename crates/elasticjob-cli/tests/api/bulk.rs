//! One action on many jobs.

use elasticjob::Job;
use serde_json::{Value, json};

use crate::{
    console::{BrowserSession, Console},
    http::{Response, request},
    scene::{Scene, settle},
};

const BULK: &str = "/api/v1/r/shop/bulk";

fn bulk(session: &BrowserSession<'_>, body: &Value) -> Response {
    session.send(request("POST", BULK).json(body))
}

async fn scene() -> Scene {
    let scene = Scene::with("").await;
    for name in ["a", "b", "c"] {
        let job = Job::named(name).unwrap().label(if name == "c" { "y" } else { "x" });
        scene.put(&format!("{name}/config"), &job.to_yaml()).await;
    }
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_action_has_a_result_and_audit_entry_per_job() {
    let scene = scene().await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let operator = console.add_user("olga", &json!({ "shop": "operator" }));

    let body = json!({ "action": "disable", "jobs": ["settle", "nowhere", "a/b", "a", "settle"] });
    let done = bulk(&operator, &body).json();

    let items = done["items"].as_array().unwrap();
    let codes: Vec<_> = items.iter().map(|item| item["problem"]["code"].clone()).collect();
    assert_eq!(codes, [json!(null), json!("notFound"), json!("invalid"), json!(null)], "{done:#}");
    assert_eq!((&done["total"], &done["done"]), (&json!(4), &json!(2)));
    assert_eq!(items[0]["result"]["config"]["outcome"], "written");
    let audit = console.admin().data("/api/v1/audit?action=job.disable&username=olga");
    let mut about: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["target"].to_string())
        .collect();
    about.sort();
    assert_eq!(about, ["\"a\"", "\"nowhere\"", "\"settle\""]);

    let enabled = bulk(&operator, &json!({ "action": "enable", "search": "label:x" })).json();
    let names: Vec<_> =
        enabled["items"].as_array().unwrap().iter().map(|item| item["jobName"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    let again = bulk(&operator, &json!({ "action": "enable", "jobs": ["settle"] })).json();
    assert_eq!(again["done"], 1);
    let triggered = bulk(&operator, &json!({ "action": "trigger", "jobs": ["settle"] })).json();
    assert!(triggered["items"][0]["result"]["runId"].is_string(), "{triggered:#}");
    let shut = bulk(&operator, &json!({ "action": "shutdown", "jobs": ["settle"] })).json();
    assert_eq!(shut["items"][0]["result"]["instances"].as_array().unwrap().len(), 1, "{shut:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_bulk_request_changes_nothing() {
    let scene = scene().await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let (admin, viewer) = (console.admin(), console.add_user("vera", &json!({ "shop": "viewer" })));

    let all = json!({ "action": "disable", "search": "label:x" });
    assert_eq!(bulk(&viewer, &all).problem(), (403, "forbidden".to_owned()));
    let many: Vec<String> = (0..1_001).map(|number| format!("job-{number}")).collect();
    for invalid in [
        json!({ "action": "disable" }),
        json!({ "action": "disable", "jobs": [] }),
        json!({ "action": "disable", "search": "  " }),
        json!({ "action": "disable", "search": "no-such-job" }),
        json!({ "action": "disable", "search": "is:good" }),
        json!({ "action": "disable", "jobs": ["a"], "search": "b" }),
        json!({ "action": "remove", "jobs": ["a"] }),
        json!({ "action": "disable", "jobs": many }),
    ] {
        assert_eq!(bulk(&admin, &invalid).problem(), (422, "invalid".to_owned()), "{invalid}");
    }

    assert_eq!(admin.data("/api/v1/audit?action=job.")["total"], 0);
}
