//! One job's stored configuration is hostile: the console shows it as invalid, and everything else as before.

use std::fs;

use elasticjob::Job;
use serde_json::json;

use crate::{
    console::Console,
    http::request,
    scene::{Scene, settle},
};

const R: &str = "/api/v1/r/shop";

/// The most memory that the console has used so far.
fn peak_megabytes(console: &Console) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", console.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

#[tokio::test(flavor = "multi_thread")]
async fn console_shows_a_hostile_configuration_as_invalid() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let count = |count: &str| format!("jobName: hostile\nshardingTotalCount: {count}\n");
    let (text, aliases) = ("x".repeat(500_000), "*a, ".repeat(19_000));

    for (document, reason) in [
        (count("2147483647"), "at most 100000 shards"),
        (count("1000000"), "at most 100000 shards"),
        (count("10001"), "at most 10000 shards"),
        (format!("{}cron: '{text}'\n", count("1")), "key cron"),
        (format!("{}props: {{a: &a {text}, b: [{aliases}]}}\n", count("1")), "aliases"),
    ] {
        scene.put("hostile/config", &document).await;
        let list = admin.wait_until(&format!("{R}/jobs?search=is:unreadable"), |jobs| {
            jobs["items"][0]["problem"].as_str().is_some_and(|problem| problem.contains(reason))
        });
        assert!(list.to_string().len() < 10_000, "{reason}");
        let details = admin.data(&format!("{R}/jobs/hostile"));
        assert!(details["problem"].as_str().unwrap().contains(reason), "{reason}");
        let shards = admin.data(&format!("{R}/jobs/hostile/shards"));
        assert_eq!((shards["total"].as_u64(), &shards["items"]), (Some(0), &json!([])), "{reason}");
        let explained = admin.data(&format!("{R}/jobs/hostile/explain")).to_string();
        assert!(explained.contains(reason), "{explained}");
        let legacy = admin.get("/api/jobs/hostile/sharding");
        assert!(legacy.status < 500 && legacy.text.len() < 10_000, "{reason}");

        let bystander = admin.data(&format!("{R}/jobs/settle/shards"));
        assert_eq!(bystander["total"], 3, "{reason}");
        assert!(admin.post(&format!("{R}/jobs/settle/trigger")).status < 300, "{reason}");
    }
    assert!(peak_megabytes(&console) < 500, "{} MB", peak_megabytes(&console));
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_above_a_bound_is_not_stored() {
    let scene = Scene::with("").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    scene.put("settle/config", &settle().to_yaml()).await;
    let user = console.add_user("jane", &json!({ "shop": "admin" }));

    for (key, value) in [
        ("shardingTotalCount", json!(10_001)),
        ("shardingTotalCount", json!(2_147_483_647)),
        ("description", json!("x".repeat(200_000))),
        ("jobListenerTypes", json!(vec!["a"; 2_000])),
        ("props", json!({ "elasticjob.timeout": "99999d" })),
    ] {
        let before = scene.get("settle/config").await;
        let path = format!("{R}/jobs/settle/config");
        let change = request("PATCH", &path).json(&json!({ key: value })).header("if-match", "*");
        let refused = user.send(change);
        assert_eq!(refused.problem().0, 422, "{key}: {refused:?}");
        assert_eq!(scene.get("settle/config").await, before, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_listed_page_by_page() {
    let scene = Scene::with("").await;
    let wide = Job::named("wide").unwrap().shards(10_000);
    scene.put("wide/config", &wide.to_yaml()).await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);
    let admin = console.admin();
    let page = |query: &str| admin.data(&format!("{R}/jobs/wide/shards{query}"));

    let first = page("");
    assert_eq!((first["total"].as_u64(), first["page"].as_u64()), (Some(10_000), Some(1)));
    assert_eq!(first["items"].as_array().unwrap().len(), 50);
    let last = page("?page=102&pageSize=99");
    assert_eq!(last["items"].as_array().unwrap().len(), 10_000 - 101 * 99);
    assert_eq!(last["items"][0]["item"], 9_999);
    assert_eq!(page("?page=200&pageSize=1000")["items"], json!([]));
    for (query, status) in
        [("?page=0", 422), ("?pageSize=0", 422), ("?pageSize=1001", 422), ("?size=5", 400)]
    {
        let refused = admin.get(&format!("{R}/jobs/wide/shards{query}"));
        assert_eq!(refused.status, status, "{query}");
    }
}
