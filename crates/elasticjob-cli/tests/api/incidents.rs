//! Incidents of the overview.

use elasticjob::{
    Job,
    history::{Event, FiresMissed, HistoryUrl, MissedReason, Sink, Store},
    runtime::{Clock, SystemClock},
};
use jiff::SignedDuration;
use serde_json::Value;

use crate::{console::Console, scene::Scene};

const ID: &str = "10.0.0.9@-@4711";

/// Puts a job with one instance, whose shards are assigned to `owners`.
async fn put_job(scene: &Scene, name: &str, shards: u32, owners: &[&str]) {
    let job = Job::named(name).unwrap().shards(shards);
    scene.put(&format!("{name}/config"), &job.to_yaml()).await;
    scene.put(&format!("{name}/servers/10.0.0.9"), "ENABLED").await;
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
async fn missing_owners_drift_and_missed_fires_are_distinct_incidents() {
    let scene = Scene::with("").await;
    put_job(&scene, "well", 2, &[ID, ID]).await;
    put_job(&scene, "orphaned", 2, &[ID, "10.0.0.8@-@1"]).await;
    put_job(&scene, "unassigned", 2, &[]).await;
    put_job(&scene, "grown", 3, &[ID, ID]).await;
    let url = HistoryUrl::sqlite(scene.folder.path().join("history.db"));
    let store = Store::open(&url).await.unwrap();
    let at = SystemClock.now();
    let fires = [
        (60, 1, MissedReason::Skipped),
        (600, 4, MissedReason::NoInstance),
        (30, 9, MissedReason::Coalesced),
    ];
    for (ago, count, reason) in fires {
        let first = at - SignedDuration::from_secs(ago);
        let job = "well".parse().unwrap();
        let missed = FiresMissed { job, first, last: first, count, reason, at: first };
        store.store(&[Event::Missed(missed)]).await.unwrap();
    }
    let file = format!("[histories]\nshop = \"{url}\"\n");
    let console = Console::with(&[&format!("shop={}", scene.url)], &file);

    let overview = console.admin().data("/api/v1/r/shop/overview?hours=168");

    let incidents = &overview["incidents"];
    assert!(message(incidents, "orphaned", "ownerGone").contains("10.0.0.8@-@1"), "{incidents:#}");
    assert_eq!(message(incidents, "unassigned", "shardingFlag"), "shards are not assigned");
    assert_eq!(message(incidents, "grown", "drift"), "2 shards are assigned, 3 are configured");
    let missed = message(incidents, "well", "missed");
    assert!(missed.starts_with("5 fires did not run, the last due at "), "{missed}");
    assert_eq!(incidents.as_array().unwrap().len(), 4, "{incidents:#}");
    let recent = console.admin().data("/api/v1/r/shop/overview?hours=1");
    assert_eq!(recent["lastHours"]["missed"], 5, "a run answers the coalesced ones");
    assert_eq!(recent["lastHours"]["coalesced"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn most_severe_incidents_come_first_and_all_are_counted() {
    let scene = Scene::with("").await;
    for number in 0..55 {
        put_job(&scene, &format!("drifts-{number:02}"), 2, &[ID]).await;
    }
    scene.put("zzz/config", "jobName: zzz\nshardingTotalCount: many\n").await;
    let console = Console::start(&[&format!("shop={}", scene.url)]);

    let overview = console.admin().data("/api/v1/r/shop/overview");

    let incidents = overview["incidents"].as_array().unwrap();
    assert_eq!(
        (&incidents[0]["jobName"], &incidents[0]["kind"]),
        (&"zzz".into(), &"unreadable".into())
    );
    assert_eq!((incidents.len(), &overview["incidentCount"]), (50, &56.into()), "{overview:#}");
}
