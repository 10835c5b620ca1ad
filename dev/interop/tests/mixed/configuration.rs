//! Configurations that one side stores and the other reads.

use elasticjob::{
    admin::Edit,
    job::{
        Failover, Job, KeySpelling, MaxTimeDiff, Misfire, Monitor, Overwrite, Resharding, Strategy,
        ThreadPool,
    },
};
use serde_json::json;

use crate::scenario::{Scenario, TestRegistry, idle, ms};

/// Jobs that together use every setting. None has two free properties, because Java writes those in hash order.
fn documents() -> Vec<Job> {
    let named = |name: &str| {
        let mut job = Job::named(name).unwrap();
        job.spelling = KeySpelling::UpTo304;
        job
    };
    let everything = named("everything")
        .cron("*/10 * * * * ?")
        .unwrap()
        .zone("GMT+08:00")
        .unwrap()
        .shards(3)
        .items("0=Beijing,1=上海,2=Guangzhou")
        .unwrap()
        .parameter("a: b # c")
        .monitor(Monitor::Nothing)
        .failover(Failover::TakeOver)
        .misfire(Misfire::Skip)
        .max_time_diff(MaxTimeDiff::seconds(30))
        .strategy(&Strategy::Odevity)
        .threads(&ThreadPool::SingleThread)
        .alert("THROW")
        .java_listeners(["ONCE"])
        .description("'quoted' \"twice\"")
        .label("nightly")
        .resharding(Resharding::Static)
        .disabled()
        .overwrite(Overwrite::LocalWins);
    vec![
        named("plain"),
        everything,
        named("long")
            .description("a sentence that does not end where a line ends ".repeat(4).trim()),
        named("lines").description("one\ntwo\n").parameter("three\nfour"),
        named("odd").description("tab\there").parameter("yes"),
        named("script").prop("script.command.line", "sh 'a b' \"c\"").unwrap(),
        named("number").parameter("0777").description(" spaces "),
        named("dash").parameter("- a").description("?"),
        named("empty").parameter("~").description("null"),
    ]
}

pub(crate) async fn configuration_is_the_same_document_on_both_sides(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "documents").await;
    let mut java = scenario.java("java").await;

    for job in documents() {
        let yaml = job.to_yaml();
        assert_eq!(java.command(json!({"do": "yaml", "yaml": yaml})).await, yaml, "{}", job.name);
        let read = Job::read(&job.name, yaml.as_bytes()).unwrap();
        assert_eq!(read.to_yaml(), yaml, "{}", job.name);
    }
}

pub(crate) async fn configuration_stored_by_either_side_applies_to_both(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "stored").await;
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let (java_job, rust_job) = (idle("java-made", 2), idle("rust-made", 2));
    let stored = async |job: &Job| scenario.text(&scenario.tree(job).config()).await.unwrap();

    let java_id = java.join(&java_job, ms(10)).await;
    assert_eq!(stored(&java_job).await, java_job.to_yaml(), "as Rust would have stored it");
    assert_eq!(
        scenario.text(scenario.tree(&java_job).root()).await.as_deref(),
        Some("interop.Work")
    );
    // The stored configuration overrides that of the program.
    rust.join(&java_job.clone().parameter("mine"), ms(10)).await;
    assert_eq!(stored(&java_job).await, java_job.to_yaml());

    let rust_id = rust.join(&rust_job, ms(10)).await;
    java.join(&rust_job.clone().parameter("mine"), ms(10)).await;
    assert_eq!(stored(&rust_job).await, rust_job.to_yaml());
    let read = java.command(json!({"do": "config", "job": "rust-made"})).await;
    assert_eq!(read, rust_job.to_yaml(), "as Java would have stored it");

    // An edit by either side reaches both: the shards are reassigned, and the schedule changes.
    let edit = |job: &Job, cron: &str| job.clone().shards(5).cron(cron).unwrap();
    let edited = edit(&rust_job, "0/2 * * * * ?");
    java.command(json!({"do": "update config", "yaml": edited.to_yaml()})).await;
    assert_eq!(stored(&rust_job).await, edited.to_yaml());
    scenario
        .wait_until_owners_run(
            &edited,
            &scenario.wait_until_assigned(&edited, &[&java_id, &rust_id]).await,
        )
        .await;
    let edited = edit(&java_job, "1/2 * * * * ?");
    let plan = scenario.admin().plan(Edit::new(edited.clone())).await.unwrap();
    scenario.admin().apply(&plan).await.unwrap();
    assert_eq!(java.command(json!({"do": "config", "job": "java-made"})).await, edited.to_yaml());
    scenario
        .wait_until_owners_run(
            &edited,
            &scenario.wait_until_assigned(&edited, &[&java_id, &rust_id]).await,
        )
        .await;
}
