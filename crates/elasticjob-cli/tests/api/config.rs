//! Configurations: preconditions, secrets, validation.

use std::thread;

use serde_json::{Value, json};

use crate::{
    console::{BrowserSession, Console},
    http::{Response, request},
    scene::{Scene, settle},
};

const CONFIG: &str = "/api/v1/r/shop/jobs/settle/config";

fn put(session: &BrowserSession<'_>, condition: (&str, &str), body: &Value) -> Response {
    session.send(request("PUT", CONFIG).json(body).header(condition.0, condition.1))
}

fn patch(session: &BrowserSession<'_>, tag: &str, body: &Value) -> Response {
    session.send(request("PATCH", CONFIG).json(body).header("if-match", tag))
}

#[tokio::test(flavor = "multi_thread")]
async fn change_based_on_an_old_version_is_refused() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let job = json!({ "cron": "0 0 2 * * ?", "shardingTotalCount": 3 });

    assert_eq!(admin.put(CONFIG, &job).problem(), (428, "preconditionRequired".to_owned()));
    assert_eq!(put(&admin, ("if-match", "\"0\""), &job).problem().0, 404);
    let created = put(&admin, ("if-none-match", "*"), &job);
    assert_eq!((created.status, created.header("etag")), (201, Some("\"0\"")));
    assert_eq!(
        put(&admin, ("if-none-match", "*"), &job).problem(),
        (412, "preconditionFailed".to_owned())
    );

    let tag = admin.get(CONFIG).header("etag").unwrap().to_owned();
    let changed = patch(&admin, &tag, &json!({ "shardingTotalCount": 5 }));
    assert_eq!(
        changed.json()["differences"],
        json!([{ "key": "shardingTotalCount", "stored": "3", "sent": "5" }])
    );
    assert_eq!(
        patch(&admin, &tag, &json!({ "shardingTotalCount": 7 })).problem().0,
        412,
        "changed concurrently"
    );
    let stored = admin.data(CONFIG);
    assert_eq!(
        (&stored["properties"]["shardingTotalCount"], &stored["properties"]["cron"]),
        (&json!(5), &json!("0 0 2 * * ?"))
    );
    assert_eq!(
        stored["properties"]["monitorExecution"], true,
        "an omitted property of a new job has its default"
    );

    let same = patch(&admin, "*", &json!({ "shardingTotalCount": 5 }));
    assert_eq!(same.json()["isChanged"], false);
    let audit = admin.data("/api/v1/audit?action=job.config&target=settle");
    assert_eq!(
        audit["items"][1]["asked"]["differences"][0]["key"], "shardingTotalCount",
        "{audit:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_is_masked_and_kept_when_the_mask_is_sent_back() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let props = json!({ "email.password": "hunter2", "a": "b" });
    put(&admin, ("if-none-match", "*"), &json!({ "shardingTotalCount": 1, "props": props }));

    let shown = admin.data(CONFIG)["properties"]["props"].clone();
    assert_eq!(shown, json!({ "email.password": "***", "a": "b" }));
    let sent = json!({ "shardingTotalCount": 1, "props": { "email.password": "***", "a": "c" } });
    assert_eq!(put(&admin, ("if-match", "\"0\""), &sent).status, 200);

    assert!(scene.get("settle/config").await.unwrap().contains("email.password: hunter2"));
    let nothing = patch(&admin, "*", &json!({ "props": { "email.token": "***" } }));
    assert_eq!(nothing.json()["field"], "props.email.token");
    let audit = admin.get("/api/v1/audit").text;
    assert!(!audit.contains("hunter2"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn masked_part_of_a_value_is_kept_only_if_the_rest_is_unchanged() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let stored = json!({
        "shardingTotalCount": 1,
        "jobParameter": "ftp://jane:hunter2@files/x",
        "shardingItemParameters": "0=ftp://jane:hunter2@files/0",
        "label": "token=hunter2",
        "description": "calls https://jane:hunter2@shop",
        "props": { "http.uri": "https://shop/x?key=hunter2&page=1", "api_key": "hunter2" },
    });
    assert_eq!(put(&admin, ("if-none-match", "*"), &stored).status, 201);

    let viewer = console.add_user("vera", &json!({ "shop": "viewer" }));
    let list = "/api/v1/r/shop/jobs?search=label:token";
    for session in [&viewer, &admin] {
        session.wait_until(list, |page| page["total"] == 1);
        let legacy = "/api/jobs/config/settle";
        for path in [
            CONFIG,
            list,
            legacy,
            "/api/v1/r/shop/jobs/settle/shards",
            "/api/v1/r/shop/jobs/settle",
        ] {
            let shown = session.get(path).text;
            assert!(!shown.contains("hunter2"), "{path}: {shown}");
        }
    }
    let mut shown = admin.data(CONFIG)["properties"].clone();
    assert_eq!(shown["jobParameter"], "ftp://jane:***@files/x");
    assert_eq!(shown["props"]["http.uri"], "https://shop/x?key=***&page=1");

    let again = put(&admin, ("if-match", "*"), &shown);
    assert_eq!((again.status, &again.json()["change"]), (200, &json!("same")), "{again:?}");
    for (field, value) in [
        ("jobParameter", "ftp://jane:***@attacker/x"),
        ("props.http.uri", "https://attacker/x?key=***&page=1"),
    ] {
        let sent = match field.strip_prefix("props.") {
            Some(key) => json!({ "props": { key: value } }),
            None => json!({ field: value }),
        };
        let refused = patch(&admin, "*", &sent);
        assert_eq!((refused.status, &refused.json()["field"]), (422, &json!(field)), "{refused:?}");
    }
    shown["props"]["http.uri"] = "https://shop/y?key=hunter3".into();
    assert_eq!(put(&admin, ("if-match", "*"), &shown).status, 200);
    let config = scene.get("settle/config").await.unwrap();
    assert!(config.contains("hunter3") && config.contains("jane:hunter2@files/x"), "{config}");
    assert!(config.contains("api_key: hunter2"), "{config}");
}

#[tokio::test(flavor = "multi_thread")]
async fn guess_of_a_secret_is_answered_only_to_an_admin() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let job = json!({
        "shardingTotalCount": 1,
        "label": "token=hunter2",
        "props": { "email.password": "hunter2" },
    });
    put(&admin, ("if-none-match", "*"), &job);
    let plan = || request("POST", &format!("{CONFIG}/plan")).json(&job);

    assert_eq!(admin.send(plan()).json()["change"], "same");
    for (name, role) in [("vera", "viewer"), ("otto", "operator")] {
        let session = console.add_user(name, &json!({ "shop": role }));
        assert_eq!(session.send(plan()).problem(), (403, "forbidden".to_owned()), "{role}");
        // A search would find it letter by letter.
        session.wait_until("/api/v1/r/shop/jobs?search=label:token", |page| page["total"] == 1);
        let guess = session.data("/api/v1/r/shop/jobs?search=label:hunt");
        assert_eq!(guess["total"], 0, "{role}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_writes_nothing() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();

    let plan = request("POST", &format!("{CONFIG}/plan")).json(&json!({ "shardingTotalCount": 2 }));
    assert_eq!(admin.send(plan).json()["change"], "new");

    assert_eq!(admin.get(CONFIG).problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_configuration_is_refused_with_its_field() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let put = |body: &Value| put(&admin, ("if-none-match", "*"), body);

    for (body, field) in [
        (json!({ "shardingTotalCount": "three" }), "shardingTotalCount"),
        (json!({ "shardingTotalCount": -1 }), "shardingTotalCount"),
        (json!({ "shardingTotalCount": 0 }), "shardingTotalCount"),
        (json!({ "shardingTotalCount": 4_294_967_295_u32 }), "shardingTotalCount"),
        (json!({ "cron": "every day" }), "cron"),
        (json!({ "cron": 5 }), "cron"),
        (json!({ "timeZone": "Mars" }), "timeZone"),
        (json!({ "shardingItemParameters": "0" }), "shardingItemParameters"),
        (json!({ "failover": "perhaps" }), "failover"),
        (json!({ "props": [] }), "props"),
        (json!({ "props": { "elasticjob.timeout": "soon" } }), "props.elasticjob.timeout"),
        (json!({ "jobName": "other" }), "jobName"),
        (json!({ "colour": "red" }), "colour"),
    ] {
        let response = put(&body);
        assert_eq!(
            (response.problem().0, response.json()["field"].as_str()),
            (422, Some(field)),
            "{body}: {response:?}"
        );
    }
    for (body, status) in [("", 400), ("{", 400), ("{} {}", 400), ("[]", 422)] {
        let sent = request("PUT", CONFIG)
            .raw(body)
            .header("content-type", "application/json")
            .header("if-none-match", "*");
        assert_eq!(admin.send(sent).problem().0, status, "{body}");
    }
    let plain = request("PUT", CONFIG).raw("{}").header("if-none-match", "*");
    assert_eq!(admin.send(plain).problem().0, 415);
    let large = json!({ "shardingTotalCount": 1, "description": "x".repeat(300_000) });
    assert_eq!(put(&large).problem(), (413, "tooLarge".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_concurrent_changes_of_a_version_succeeds() {
    let scene = Scene::with("").await;
    scene.put("settle/config", &settle().to_yaml()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    for round in 0..5 {
        let tag = admin.get(CONFIG).header("etag").unwrap().to_owned();
        let requests = (0..8).map(|number| {
            let body = json!({ "description": format!("{round} {number}") });
            let request = request("PATCH", CONFIG).json(&body).header("if-match", &tag);
            request.header("cookie", &admin.cookie).header("x-csrf-token", &admin.csrf)
        });
        let senders: Vec<_> = requests
            .map(|request| {
                let address = console.address.clone();
                thread::spawn(move || request.send(&address).status)
            })
            .collect();
        let mut statuses: Vec<u16> =
            senders.into_iter().map(|sender| sender.join().unwrap()).collect();

        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_keeps_omitted_properties_and_props() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let props = json!({ "a": "1", "b": "2", "email.password": "hunter2" });
    put(&admin, ("if-none-match", "*"), &json!({ "shardingTotalCount": 1, "props": props }));
    let props = || admin.data(CONFIG)["properties"]["props"].clone();

    let sent = request("PATCH", CONFIG)
        .raw(r#"{"props":{"a":"3","b":null}}"#)
        .header("content-type", "application/merge-patch+json")
        .header("if-match", "*");
    assert_eq!(admin.send(sent).status, 200);

    assert_eq!(props(), json!({ "a": "3", "email.password": "***" }));
    assert!(scene.get("settle/config").await.unwrap().contains("hunter2"));
    patch(&admin, "*", &json!({ "props": null }));
    assert!(props().as_object().is_none_or(serde_json::Map::is_empty), "{}", props());
}
