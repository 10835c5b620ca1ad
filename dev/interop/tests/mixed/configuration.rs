//! What either side stores, the other reads, and would store the same.

use elasticjob::{
    admin::Edit,
    job::{
        Failover, Job, MaxTimeDiff, Misfire, Monitor, Overwrite, Resharding, Spelling, Strategy,
        ThreadPool,
    },
};
use serde_json::json;

use crate::scene::{Ground, Scene, idle, ms};

/// Jobs that say everything there is to say. No two free properties in any: Java writes those in the order of a hash.
fn documents() -> Vec<Job> {
    let named = |name: &str| {
        let mut job = Job::named(name).unwrap();
        job.spelling = Spelling::UpTo304;
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
        .if_node_dies(Failover::TakeOver)
        .if_late(Misfire::Skip)
        .max_time_diff(MaxTimeDiff::seconds(30))
        .strategy(&Strategy::Odevity)
        .threads(&ThreadPool::SingleThread)
        .alert("THROW")
        .java_listeners(["ONCE"])
        .description("'quoted' \"twice\"")
        .label("nightly")
        .resharding(Resharding::Static)
        .disabled()
        .if_stored_differs(Overwrite::LocalWins);
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

pub(crate) async fn a_configuration_is_the_same_document_on_both_sides(ground: Ground) {
    let scene = Scene::new(&ground, "documents").await;
    let mut java = scene.java("java").await;

    for job in documents() {
        let yaml = job.to_yaml();
        assert_eq!(java.does(json!({"do": "yaml", "yaml": yaml})).await, yaml, "{}", job.name);
        let read = Job::read(&job.name, yaml.as_bytes()).unwrap();
        assert_eq!(read.to_yaml(), yaml, "{}", job.name);
    }
}

pub(crate) async fn what_either_side_stores_the_other_reads_and_obeys(ground: Ground) {
    let scene = Scene::new(&ground, "stored").await;
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let (javas, rusts) = (idle("java-made", 2), idle("rust-made", 2));
    let stored = async |job: &Job| scene.text(&scene.tree(job).config()).await.unwrap();

    let java_id = java.joins(&javas, ms(10)).await;
    assert_eq!(stored(&javas).await, javas.to_yaml(), "as Rust would have stored it");
    assert_eq!(scene.text(scene.tree(&javas).root()).await.as_deref(), Some("interop.Work"));
    // What the program says otherwise does not count.
    rust.joins(&javas.clone().parameter("mine"), ms(10)).await;
    assert_eq!(stored(&javas).await, javas.to_yaml());

    let rust_id = rust.joins(&rusts, ms(10)).await;
    java.joins(&rusts.clone().parameter("mine"), ms(10)).await;
    assert_eq!(stored(&rusts).await, rusts.to_yaml());
    let read = java.does(json!({"do": "config", "job": "rust-made"})).await;
    assert_eq!(read, rusts.to_yaml(), "as Java would have stored it");

    // An edit of either side reaches both: the shards are dealt anew, and the schedule counts.
    let more = |job: &Job, cron: &str| job.clone().shards(5).cron(cron).unwrap();
    let edited = more(&rusts, "0/2 * * * * ?");
    java.does(json!({"do": "update config", "yaml": edited.to_yaml()})).await;
    assert_eq!(stored(&rusts).await, edited.to_yaml());
    scene.runs_as(&edited, &scene.dealt(&edited, &[&java_id, &rust_id]).await).await;
    let edited = more(&javas, "1/2 * * * * ?");
    let plan = scene.admin().plan(Edit::of(edited.clone())).await.unwrap();
    scene.admin().apply(&plan).await.unwrap();
    assert_eq!(java.does(json!({"do": "config", "job": "java-made"})).await, edited.to_yaml());
    scene.runs_as(&edited, &scene.dealt(&edited, &[&java_id, &rust_id]).await).await;
}
