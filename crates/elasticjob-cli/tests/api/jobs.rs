//! Jobs, shards, servers and instances: lists and changes.

use elasticjob::Job;
use serde_json::{Value, json};

use crate::{
    console::Console,
    http::request,
    process::elasticjob,
    scene::{ADDRESS, Scene, settle},
};

const R: &str = "/api/v1/r/shop";

async fn store(scene: &Scene, job: &Job) {
    scene.put(&format!("{}/config", job.name), &job.to_yaml()).await;
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|row| row["jobName"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn job_list_is_filtered_sorted_and_paged() {
    let scene = Scene::with("").await;
    for (name, shards, label) in [("a", 3, "x"), ("b", 1, "y"), ("c", 2, "x"), ("d", 9, "x")] {
        let job = Job::named(name)
            .unwrap()
            .shards(shards)
            .label(label)
            .description(format!("about {name}{name}"));
        store(&scene, &job).await;
    }
    scene.put("broken/config", "jobName: broken\nshardingTotalCount: many\n").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let page = admin.data(&format!(
        "{R}/jobs?search=label:x&sort=shardingTotalCount&order=desc&page=1&pageSize=2"
    ));
    assert_eq!((page["total"].as_u64(), names(&page)), (Some(3), vec!["d", "a"]));
    assert_eq!(page["statuses"]["CRASHED"], 3, "they have no instance");
    let page = admin.data(&format!(
        "{R}/jobs?search=label:x&sort=shardingTotalCount&order=desc&page=2&pageSize=2"
    ));
    assert_eq!(names(&page), ["c"]);
    assert_eq!(names(&admin.data(&format!("{R}/jobs?search=CC"))), ["c"]);
    assert_eq!(names(&admin.data(&format!("{R}/jobs?search=-label:x+-is:unreadable"))), ["b"]);
    assert_eq!(names(&admin.data(&format!("{R}/jobs?status=OK,DISABLED"))), Vec::<&str>::new());
    let broken = admin.data(&format!("{R}/jobs?search=is:unreadable"));
    assert!(broken["items"][0]["problem"].as_str().unwrap().contains("line 2"), "{broken}");
    assert_eq!(admin.data(&format!("{R}/overview"))["jobCount"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn next_list_shows_a_change_made_by_the_console() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let status = || admin.data(&format!("{R}/jobs"))["items"][0]["status"].clone();
    assert_eq!(status(), "OK");

    let switched = admin.post(&format!("{R}/jobs/settle/disable")).json();
    assert_eq!(
        (switched, status()),
        (json!({ "servers": [ADDRESS], "config": { "outcome": "written" } }), json!("DISABLED"))
    );
    admin.post(&format!("{R}/jobs/settle/enable"));
    assert_eq!(status(), "OK");

    let disable = format!("{R}/jobs/settle/shards/1/disable");
    assert_eq!(admin.post(&disable).json(), json!({ "isChanged": true }));
    assert_eq!(admin.post(&disable).json(), json!({ "isChanged": false }));
    assert_eq!(admin.data(&format!("{R}/jobs/settle/shards"))["items"][1]["status"], "DISABLED");
    admin.wait_until(&format!("{R}/jobs"), |page| page["items"][0]["disabledShardCount"] == 1);
    assert_eq!(admin.post(&format!("{R}/jobs/settle/shards/7/disable")).problem().0, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_list_of_shards_is_refused_by_trigger_and_cancel() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    for action in ["trigger", "cancel"] {
        let path = format!("{R}/jobs/settle/{action}");
        let null = admin.send(request("POST", &path).json(&json!({ "shards": null })));
        assert_eq!(null.problem().0, 422);
        let refused = admin.send(request("POST", &path).json(&json!({ "shards": [] })));
        let body = refused.json();
        assert_eq!(refused.problem().0, 422, "{body}");
        assert_eq!(body["field"], "shards");
        assert!(body["hint"].as_str().unwrap().contains("leave it out for all"), "{body}");
        assert_eq!(admin.send(request("POST", &path).json(&json!({ "shards": [0] }))).status, 200);
        assert_eq!(admin.send(request("POST", &path).json(&json!({}))).status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_with_an_idempotency_key_is_executed_once() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let path = format!("{R}/jobs/settle/trigger");
    let trigger = |key: &str, body: &Value| {
        admin.send(request("POST", &path).json(body).header("idempotency-key", key))
    };

    let first = trigger("k1", &json!({ "shards": [1] })).json();
    let again = trigger("k1", &json!({ "shards": [1] })).json();

    assert_eq!(first, again);
    admin.wait_until(&format!("{R}/jobs/settle/shards"), |shards| {
        let last = &shards["items"][1]["lastRun"];
        last["runId"] == first["runId"] && last["state"] == "DONE"
    });
    assert_eq!(
        trigger("k1", &json!({})).problem(),
        (409, "conflict".to_owned()),
        "the key was used with a different request"
    );
    assert_ne!(trigger("k2", &json!({ "shards": [1] })).json()["runId"], first["runId"]);
    let triggers = admin.data("/api/v1/audit?action=job.trigger");
    assert_eq!(triggers["total"], 2, "{triggers:#}");
    assert_eq!(admin.send(request("POST", &path).json(&json!({ "shards": [7] }))).problem().0, 422);
    assert_eq!(
        admin.post(&format!("{R}/jobs/missing/trigger")).problem(),
        (404, "notFound".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn running_shards_are_shown_and_cancelled() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    assert_eq!(admin.post(&format!("{R}/jobs/settle/trigger")).status, 200);
    let page = admin.wait_until(&format!("{R}/jobs?search=is:running"), |page| {
        page["items"][0]["runningCount"] == 3
    });
    assert_eq!(page["total"], 1);
    let cancelled = admin.post(&format!("{R}/jobs/settle/cancel")).json();

    assert_eq!(
        cancelled["requested"].as_object().unwrap().values().next().unwrap(),
        &json!([0, 1, 2])
    );
    admin.wait_until(&format!("{R}/jobs"), |page| page["items"][0]["runningCount"] == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_triggers_are_listed_shown_and_withdrawn() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let triggers = format!("{R}/jobs/settle/triggers");
    let trigger = |body: &Value| {
        let sent = request("POST", &format!("{R}/jobs/settle/trigger")).json(body);
        admin.send(sent).json()["runId"].as_str().unwrap().to_owned()
    };
    let running = trigger(&json!({}));
    admin.wait_until(&triggers, |list| list["items"][0]["counts"]["running"] == 3);
    let pending = trigger(&json!({ "shards": [2], "parameter": "password=hunter2" }));

    let list = admin.data(&triggers);
    let withdrawn = admin.post(&format!("{triggers}/{pending}/withdraw")).json();
    let shown = admin.data(&format!("{triggers}/{pending}"));

    assert_eq!((&list["total"], &list["items"][0]["runId"]), (&json!(2), &json!(pending)));
    assert_eq!(
        (&list["items"][0]["state"], &list["items"][0]["by"], &list["items"][0]["parameter"]),
        (&json!("pending"), &json!("admin"), &json!("password=***"))
    );
    assert_eq!(list["items"][1]["state"], "running");
    assert_eq!(withdrawn, json!({ "withdrawn": [2], "started": [], "delegated": [] }));
    let shard = &shown["shards"][0];
    assert_eq!(
        (&shown["state"], &shard["state"], &shard["reason"]),
        (&json!("ended"), &json!("skipped"), &json!("cancelled"))
    );
    let again = admin.post(&format!("{triggers}/{pending}/withdraw"));
    assert_eq!(again.problem(), (409, "conflict".to_owned()));
    let unknown = format!("{triggers}/46861c8b-90ef-4172-9305-d3e7862768d2");
    assert_eq!(admin.get(&unknown).problem(), (404, "notFound".to_owned()));
    for bad in ["config", "settle~1", "%2e%2e", "46861c8b"] {
        assert_eq!(admin.get(&format!("{triggers}/{bad}")).problem().0, 404, "{bad}");
    }
    assert_eq!(admin.get(&format!("{triggers}?limit=0")).problem().0, 422);
    assert_eq!(admin.data(&format!("{triggers}?limit=1"))["items"].as_array().unwrap().len(), 1);
    let audit = admin.data("/api/v1/audit?action=job.withdraw");
    assert_eq!((&audit["total"], &audit["items"][0]["target"]), (&json!(2), &json!("settle")));
    let first = admin.data(&format!("{triggers}/{running}"));
    assert_eq!(first["counts"]["running"], 3, "{first:#}");
    admin.post(&format!("{R}/jobs/settle/cancel"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_an_ended_run_does_not_cancel_the_next() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let running = |run: &Value| {
        admin.wait_until(&format!("{R}/jobs/settle/shards"), |shards| {
            let mut shards = shards["items"].as_array().unwrap().iter();
            shards.all(|shard| !shard["running"].is_null() && shard["lastRun"]["runId"] == *run)
        });
    };
    let trigger = || admin.post(&format!("{R}/jobs/settle/trigger")).json()["runId"].clone();
    let cancel = |run: &Value| {
        let body = json!({ "run": run });
        admin.send(request("POST", &format!("{R}/jobs/settle/cancel")).json(&body))
    };
    let first = trigger();
    running(&first);
    assert_eq!(cancel(&first).json()["requested"].as_object().unwrap().len(), 1);
    admin.wait_until(&format!("{R}/jobs"), |page| page["items"][0]["runningCount"] == 0);
    let second = trigger();
    running(&second);

    assert_eq!(cancel(&first).problem(), (409, "conflict".to_owned()));

    running(&second);
    assert_eq!(cancel(&second).status, 200);
    admin.wait_until(&format!("{R}/jobs"), |page| page["items"][0]["runningCount"] == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn job_with_a_hash_in_its_name_is_refreshed_after_a_change() {
    let scene = Scene::with("").await;
    store(&scene, &Job::named("a#b").unwrap()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    assert_eq!(admin.data(&format!("{R}/jobs"))["items"][0]["disabled"], false);

    assert_eq!(admin.post(&format!("{R}/jobs/a%23b/disable")).status, 200);

    assert_eq!(admin.data(&format!("{R}/jobs"))["items"][0]["disabled"], true);
    let audit = admin.data("/api/v1/audit?action=job.disable");
    assert_eq!(audit["items"][0]["target"], "a#b");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_listed_while_the_registry_is_down() {
    let mut scene = Scene::with("").await;
    let node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let before = admin.data(&format!("{R}/instances"));
    assert_eq!(before["items"][0]["detail"]["serverIp"], ADDRESS, "{before:#}");
    let server = format!("{R}/servers/{ADDRESS}");
    admin.post(&format!("{server}/disable"));
    assert_eq!(admin.data(&format!("{R}/servers"))["items"][0]["disabledJobsNum"], 1, "at once");

    scene.registry.take().unwrap().shutdown().await.unwrap();
    drop(node);

    admin.wait_until(&format!("{R}/jobs"), |page| page["isCurrent"] == false);
    let after = admin.data(&format!("{R}/instances"));
    assert_eq!((&after["items"], &after["isCurrent"]), (&before["items"], &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_instances_are_sorted() {
    let scene = Scene::with("").await;
    for (job, ids) in [("a", &["10.0.0.1@-@1", "10.0.0.2@-@2"][..]), ("b", &["10.0.0.2@-@2"])] {
        store(&scene, &Job::named(job).unwrap()).await;
        for id in ids {
            let address = id.split('@').next().unwrap();
            let document = format!("jobInstanceId: {id}\nserverIp: {address}\n");
            scene.put(&format!("{job}/instances/{id}"), &document).await;
            scene.put(&format!("{job}/servers/{address}"), "").await;
        }
    }
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let list = |path: &str, field: &str| {
        let page = admin.data(&format!("{R}/{path}"));
        let items = page["items"].as_array().unwrap().iter();
        items.map(|row| row[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };

    assert_eq!(list("servers?sort=jobCount&order=desc", "serverIp"), ["10.0.0.2", "10.0.0.1"]);
    assert_eq!(list("servers?sort=serverIp", "serverIp"), ["10.0.0.1", "10.0.0.2"]);
    let ids = ["10.0.0.2@-@2", "10.0.0.1@-@1"];
    assert_eq!(list("instances?sort=jobCount&order=desc", "instanceId"), ids);
    assert_eq!(list("instances?sort=since&order=desc", "instanceId"), ids);
    assert_eq!(admin.get(&format!("{R}/servers?sort=colour")).problem().0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutting_down_one_instance_leaves_the_others() {
    let scene = Scene::with("").await;
    let (leaves, stays) = (scene.node(settle()).await, scene.node(settle()).await);
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let page = admin.wait_until(&format!("{R}/instances"), |page| page["total"] == 2);
    let id = page["items"][0]["instanceId"].as_str().unwrap();

    let viewer = console.add_user("vera", &json!({ "shop": "viewer" }));
    let path = format!("{R}/instances/{id}/shutdown");
    assert_eq!(viewer.post(&path).problem().1, "forbidden");
    let response = admin.post(&path).json();

    assert_eq!(response, json!({ "instances": { "settle": [id] } }));
    let left = admin.wait_until(&format!("{R}/instances"), |page| page["total"] == 1);
    assert_ne!(left["items"][0]["instanceId"], *id);
    assert_eq!(admin.post(&path).problem(), (404, "notFound".to_owned()));
    assert_eq!(admin.data("/api/v1/audit?action=instance.shutdown")["items"][1]["target"], *id);
    leaves.stop().await;
    stays.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_instances_are_listed_and_changed() {
    let scene = Scene::with("").await;
    let node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let servers = admin.data(&format!("{R}/servers"));
    assert_eq!(
        (servers["total"].as_u64(), &servers["items"][0]["serverIp"]),
        (Some(1), &json!(ADDRESS))
    );
    let instances = admin.data(&format!("{R}/instances"));
    assert_eq!(instances["items"][0]["jobNames"], json!(["settle"]));
    assert_eq!(instances["items"][0]["detail"]["serverIp"], ADDRESS);
    let server = format!("{R}/servers/{ADDRESS}");
    assert_eq!(admin.post(&format!("{server}/disable")).json(), json!({ "jobNames": ["settle"] }));
    assert_eq!(admin.data(&server)["jobList"][0]["status"], "DISABLED");
    assert_eq!(admin.send(request("DELETE", &server)).problem(), (409, "refused".to_owned()));
    assert_eq!(admin.post(&format!("{R}/servers/10.9.9.9/enable")).problem().0, 404);

    let response = admin.post(&format!("{server}/shutdown?job=settle")).json();
    assert_eq!(response["instances"]["settle"].as_array().unwrap().len(), 1);
    admin.wait_until(&format!("{R}/instances"), |page| page["total"] == 0);
    assert_eq!(admin.send(request("DELETE", &server)).json(), json!({ "jobNames": ["settle"] }));
    assert_eq!(admin.send(request("DELETE", &format!("{R}/jobs/settle"))).status, 200);
    assert_eq!(admin.get(&format!("{R}/jobs/settle")).problem().0, 404);
    assert_eq!(admin.data(&format!("{R}/jobs"))["total"], 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn java_only_namespace_is_listed_and_changed() {
    let scene = Scene::with("").await;
    let yaml =
        "cron: 0/5 * * * * ?\njobName: legacy\nshardingTotalCount: 2\nmonitorExecution: true\n";
    scene.put("legacy", "com.acme.LegacyJob").await;
    scene.put("legacy/config", yaml).await;
    scene.put("legacy/servers/10.0.0.9", "ENABLED").await;
    scene
        .put(
            "legacy/instances/10.0.0.9@-@4711",
            "jobInstanceId: 10.0.0.9@-@4711\nserverIp: 10.0.0.9\n",
        )
        .await;
    for shard in 0..2 {
        scene.put(&format!("legacy/sharding/{shard}/instance"), "10.0.0.9@-@4711").await;
    }
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let row = admin.data(&format!("{R}/jobs"))["items"][0].clone();
    assert_eq!(
        (&row["status"], &row["handler"]["class"]),
        (&json!("OK"), &json!("com.acme.LegacyJob"))
    );
    assert_eq!(admin.data(&format!("{R}/jobs/legacy/shards"))["items"][0]["language"], "java");
    assert_eq!(admin.post(&format!("{R}/jobs/legacy/trigger")).status, 200);
    assert_eq!(scene.get("legacy/trigger/10.0.0.9@-@4711").await.as_deref(), Some(""));
    let chosen = admin
        .send(request("POST", &format!("{R}/jobs/legacy/trigger")).json(&json!({ "shards": [0] })));
    assert_eq!(chosen.problem(), (409, "refused".to_owned()));
    admin.post(&format!("{R}/jobs/legacy/disable"));
    assert_eq!(scene.get("legacy/servers/10.0.0.9").await.as_deref(), Some("DISABLED"));
    assert!(
        admin.get(&format!("{R}/jobs/legacy/dump")).text.contains("/legacy/servers/ip1 | DISABLED")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cron_and_assignment_tools_need_no_registry() {
    let console = Console::start(&["shop=zookeeper://127.0.0.1:1/shop"]);
    let admin = console.admin();

    let next = admin.data("/api/v1/cron/next?expression=0+0+2+*+*+?&zone=Asia/Shanghai&after=2026-11-15T00:00:00Z&count=2");
    assert_eq!(next, json!(["2026-11-15T18:00:00Z", "2026-11-16T18:00:00Z"]));
    let wrong = admin.get("/api/v1/cron/check?expression=every+day");
    assert_eq!((wrong.problem().0, wrong.json()["field"].clone()), (422, json!("expression")));
    let plan = json!({ "jobName": "j", "shardingTotalCount": 3, "instances": ["10.0.0.1@-@1", "10.0.0.2@-@2"] });
    let assigned = admin.send(request("POST", "/api/v1/plan").json(&plan)).json();
    let arguments = ["--job", "j", "--total", "3", "--instance", "10.0.0.1@-@1", "10.0.0.2@-@2"];
    let printed = elasticjob(&[&["shard", "plan", "-o", "json"], &arguments[..]].concat());
    assert_eq!(assigned, serde_json::from_str::<Value>(&printed.stdout).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_and_doctor_report_findings() {
    let scene = Scene::with("").await;
    store(&scene, &settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let explanation = admin.data(&format!("{R}/jobs/settle/explain?shard=0"));
    assert!(
        explanation["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| finding["topic"] == "noInstance"),
        "{explanation:#}"
    );
    let findings = admin.data(&format!("{R}/doctor"));
    assert!(
        findings.as_array().unwrap().iter().any(|finding| finding["isProblem"] == true),
        "{findings:#}"
    );
    assert_eq!(admin.get(&format!("{R}/jobs/settle/explain?at=noon")).json()["field"], "at");
}
