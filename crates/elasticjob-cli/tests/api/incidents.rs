//! What somebody should look at, on the first page.

use elasticjob::{
    Job,
    history::{Event, HistoryUrl, Missed, Sink, Store, Why},
    runtime::{Clock, SystemClock},
};
use jiff::SignedDuration;
use serde_json::Value;

use crate::{console::Console, scene::Scene};

const ID: &str = "10.0.0.9@-@4711";

/// A job with one member, whose shards belong to these.
async fn dealt(scene: &Scene, name: &str, shards: u32, owners: &[&str]) {
    let job = Job::named(name).unwrap().shards(shards);
    scene.put(&format!("{name}/config"), &job.to_yaml()).await;
    scene.put(&format!("{name}/servers/10.0.0.9"), "").await;
    let instance = format!("jobInstanceId: {ID}\nserverIp: 10.0.0.9\n");
    scene.put(&format!("{name}/instances/{ID}"), &instance).await;
    for (shard, owner) in owners.iter().enumerate() {
        scene.put(&format!("{name}/sharding/{shard}/instance"), owner).await;
    }
}

fn message<'a>(incidents: &'a Value, job: &str, kind: &str) -> &'a str {
    let mut incidents = incidents.as_array().unwrap().iter();
    let found = incidents.find(|one| one["jobName"] == job && one["kind"] == kind);
    found.map_or("", |one| one["message"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_gone_drift_and_missed_fires_are_told_apart() {
    let scene = Scene::with("").await;
    dealt(&scene, "well", 2, &[ID, ID]).await;
    dealt(&scene, "orphaned", 2, &[ID, "10.0.0.8@-@1"]).await;
    dealt(&scene, "undealt", 2, &[]).await;
    dealt(&scene, "grown", 3, &[ID, ID]).await;
    let url = HistoryUrl::sqlite(scene.folder.path().join("history.db"));
    let store = Store::open(&url).await.unwrap();
    let at = SystemClock.now();
    for (ago, count, why) in [(60, 1, Why::Skipped), (600, 4, Why::NobodyThere)] {
        let first = at - SignedDuration::from_secs(ago);
        let job = "well".parse().unwrap();
        let missed = Missed { job, first, last: first, count, why, at: first };
        store.keep(&[Event::Missed(missed)]).await.unwrap();
    }
    let file = format!("[histories]\nshop = \"{url}\"\n");
    let console = Console::with(&[&format!("shop={}", scene.url)], &file);

    let overview = console.admin().data("/api/v1/r/shop/overview?hours=168");

    let told = &overview["incidents"];
    assert!(message(told, "orphaned", "ownerGone").contains("10.0.0.8@-@1"), "{told:#}");
    assert_eq!(message(told, "undealt", "shardingFlag"), "shards are not dealt");
    assert_eq!(message(told, "grown", "drift"), "2 shards are dealt, 3 are configured");
    let missed = message(told, "well", "missed");
    assert!(missed.starts_with("5 fires did not run, the last due at "), "{missed}");
    assert_eq!(told.as_array().unwrap().len(), 4, "{told:#}");
    let recent = console.admin().data("/api/v1/r/shop/overview?hours=1");
    assert_eq!(recent["lastHours"]["missed"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gravest_come_first_and_how_many_there_are_is_told() {
    let scene = Scene::with("").await;
    for number in 0..55 {
        dealt(&scene, &format!("drifts-{number:02}"), 2, &[ID]).await;
    }
    scene.put("zzz/config", "jobName: zzz\nshardingTotalCount: many\n").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);

    let overview = console.admin().data("/api/v1/r/shop/overview");

    let told = overview["incidents"].as_array().unwrap();
    assert_eq!((&told[0]["jobName"], &told[0]["kind"]), (&"zzz".into(), &"unreadable".into()));
    assert_eq!((told.len(), &overview["incidentCount"]), (50, &56.into()), "{overview:#}");
}
