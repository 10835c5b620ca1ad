//! `/metrics` of a worker.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::runtime::{Clock, SystemClock};
use serde_json::Value;

use crate::{
    process::{PATIENCE, Process},
    run::get,
    scene::Scene,
};

/// One job that succeeds and one that fails, every second.
const JOBS: &str = "    well: {cron: '* * * * * ?', props: {script.command.line: 'true'}}\n    \
    badly: {cron: '* * * * * ?', props: {script.command.line: 'false'}}\n";

/// A worker that runs both jobs, and the address of its health endpoint.
pub(crate) async fn worker() -> (Scene, Process, String) {
    let scene = Scene::with(JOBS).await;
    let mut process = scene.start_worker(&["--health-listen", "0"]);
    let line: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    process.wait_for_log("node started");
    (scene, process, address)
}

/// The value of each series; panics if the page is not in Prometheus's text format.
pub(crate) fn metrics(address: &str) -> BTreeMap<String, f64> {
    let (status, text) = get(address, "/metrics");
    assert_eq!(status, 200);
    let mut kinds = BTreeMap::new();
    let mut series = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(help.split_once(' ').is_some_and(|(_, text)| !text.is_empty()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kinds.insert(name, kind), None, "{name} is declared twice");
        } else {
            let (named, value) = line.rsplit_once(' ').unwrap();
            let name = named.split('{').next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_histogram = family.is_some_and(|family| kinds.get(family) == Some(&"histogram"));
            assert!(is_histogram || kinds.contains_key(name), "{name} is not declared");
            if let Some(labels) = named.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let inside = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                for label in inside.unwrap().split(',') {
                    let (_, value) = label.split_once('=').unwrap();
                    assert!(
                        value.len() >= 2 && value.starts_with('"') && value.ends_with('"'),
                        "{line}"
                    );
                }
            }
            assert!(series.insert(named.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    series
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_change_with_runs_and_with_the_registry() {
    let (scene, mut process, address) = worker().await;
    let jobs: BTreeSet<&str> = BTreeSet::from(["well", "badly"]);
    let mut ended_shards: Vec<String> = Vec::new();
    while !jobs.iter().all(|job| ended_shards.iter().filter(|line| line.contains(job)).count() >= 2)
    {
        ended_shards.push(process.wait_for_log("shard ended"));
    }

    let now = metrics(&address);

    let count = |series: &str| now[series] as u64;
    assert!(count(r#"elasticjob_fires_total{job_name="well",reason="schedule"}"#) >= 2, "{now:?}");
    assert!(count(r#"elasticjob_shards_total{job_name="well",outcome="done"}"#) >= 2, "{now:?}");
    assert_eq!(count(r#"elasticjob_shards_total{job_name="well",outcome="failed"}"#), 0);
    assert!(count(r#"elasticjob_shards_total{job_name="badly",outcome="failed"}"#) >= 2, "{now:?}");
    assert_eq!(count(r#"elasticjob_shards_total{job_name="badly",outcome="done"}"#), 0);
    let fires = ["schedule", "trigger", "misfire", "failover", "catch_up"].map(|reason| {
        count(&format!(r#"elasticjob_fires_total{{job_name="well",reason="{reason}"}}"#))
    });
    assert_eq!(
        count(r#"elasticjob_lateness_seconds_count{job_name="well"}"#),
        fires.iter().sum::<u64>()
    );
    let since = |job| now[&format!(r#"elasticjob_seconds_since_last_success{{job_name="{job}"}}"#)];
    assert!(since("well") < since("badly"), "{now:?}");
    assert_eq!((count("elasticjob_registry_connected"), count("elasticjob_ready")), (1, 1));
    for request in ["read", "write"] {
        let series = format!(r#"elasticjob_registry_request_seconds_count{{request="{request}"}}"#);
        assert!(count(&series) > 0, "{now:?}");
    }

    scene.registry.unwrap().shutdown().await.unwrap();
    let limit = SystemClock.monotonic() + PATIENCE;
    while metrics(&address)["elasticjob_registry_connected"] > 0.0 {
        assert!(
            SystemClock.monotonic() < limit,
            "the worker never noticed that the registry is down"
        );
    }
}
