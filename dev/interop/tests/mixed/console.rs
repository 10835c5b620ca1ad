//! Each side's console on instances of the other.

use std::time::Duration;

use elasticjob::{
    admin::{Edit, JobStatus, ShardStatus},
    coordination::trigger::Ask,
    job::Job,
};
use serde_json::{Value, json};

use crate::{
    peer::Peer,
    record::Run,
    scene::{Ground, Scene, deal, idle, ms},
};
use elasticjob::admin::AdminError;

/// Long enough to be seen running.
const LASTS: Duration = Duration::from_millis(1_500);

/// Java's console, and what it is asked of one job.
struct Console {
    java: Peer,
    job: &'static str,
}

impl Console {
    async fn ask(&mut self, what: &str) -> Value {
        self.java.does(json!({"do": what, "job": self.job})).await
    }

    async fn on_server(&mut self, what: &str, ip: &str) {
        self.java.does(json!({"do": what, "job": self.job, "ip": ip})).await;
    }

    async fn on_shard(&mut self, what: &str, item: &str) {
        self.java.does(json!({"do": what, "job": self.job, "item": item})).await;
    }

    async fn status(&mut self) -> String {
        self.ask("brief").await["status"].as_str().unwrap().to_owned()
    }

    async fn shards(&mut self) -> Vec<String> {
        let shards = self.ask("shards").await;
        let status = |shard: &Value| shard["status"].as_str().unwrap().to_owned();
        shards.as_array().unwrap().iter().map(status).collect()
    }
}

/// Waits until this many runs have begun and all of them are over.
async fn ran(scene: &Scene, job: &Job, count: usize) -> Vec<Run> {
    let look = |runs: &[Run]| {
        (runs.len() >= count && runs.iter().all(Run::is_over)).then(|| runs.to_vec())
    };
    let runs = scene.record.until(&format!("{count} runs"), job.name.as_str(), look).await;
    assert_eq!(runs.len(), count, "{runs:?}");
    scene.is_at_peace(job).await;
    runs
}

/// Waits until everybody has looked at their trigger.
async fn heard(scene: &Scene, job: &Job) {
    let triggers = scene.tree(job).triggers();
    scene
        .until("the triggers are heard", async || scene.children(&triggers).await.is_empty())
        .await;
}

pub(crate) async fn the_java_console_manages_rust_instances(ground: Ground) {
    let scene = Scene::new(&ground, "java-console").await;
    let settle = idle("settle", 2).description("nightly");
    let mut console = Console { java: scene.java("java").await, job: "settle" };
    scene
        .admin()
        .apply(&scene.admin().plan(Edit::of(settle.clone())).await.unwrap())
        .await
        .unwrap();
    assert_eq!(console.status().await, "CRASHED", "nobody is there");

    let (mut one, mut two) = (scene.rust(1).await, scene.rust(2).await);
    let (first, second) = (one.joins(&settle, LASTS).await, two.joins(&settle, LASTS).await);
    let owners = scene.dealt(&settle, &[&first, &second]).await;
    let brief = json!({
        "jobName": "settle",
        "status": "OK",
        "description": "nightly",
        "cron": "0 0 2 1 1 ? 2099",
        "instanceCount": 2,
        "shardingTotalCount": 2,
    });
    assert_eq!(console.ask("brief").await, brief);
    assert_eq!(console.ask("briefs").await, json!([brief]));
    let of = console.java.does(json!({"do": "briefs of", "ip": "10.0.0.1"})).await;
    assert_eq!((&of[0]["status"], &of[0]["instanceCount"]), (&json!("OK"), &json!(1)));
    let servers = console.ask("servers").await;
    assert_eq!(
        (&servers[0]["serverIp"], &servers[0]["instances"], &servers[1]["serverIp"]),
        (&json!("10.0.0.1"), &json!([first]), &json!("10.0.0.2"))
    );
    let shards = console.ask("shards").await;
    assert_eq!(
        (&shards[0]["instanceId"], &shards[0]["serverIp"], &shards[0]["failover"]),
        (&json!(owners[&0]), &json!("10.0.0.2"), &json!(false))
    );

    console.ask("trigger").await;
    scene.until("both run", async || console.shards().await == ["RUNNING", "RUNNING"]).await;
    ran(&scene, &settle, 2).await;
    assert_eq!(console.shards().await, ["PENDING", "PENDING"]);
    console.on_shard("disable shard", "1").await;
    assert_eq!(console.shards().await, ["PENDING", "DISABLED"]);
    console.ask("trigger").await;
    heard(&scene, &settle).await;
    assert_eq!(ran(&scene, &settle, 3).await[2].item, 0);
    console.on_shard("enable shard", "1").await;

    console.ask("disable").await;
    assert_eq!(console.status().await, "DISABLED");
    scene.until("nobody leads", async || scene.leader(&settle).await.is_none()).await;
    console.ask("trigger").await;
    heard(&scene, &settle).await;
    console.ask("enable").await;
    scene.until("somebody leads", async || scene.leader(&settle).await.is_some()).await;
    scene.dealt(&settle, &[&first, &second]).await;
    assert_eq!(console.status().await, "OK");
    console.on_server("disable", "10.0.0.1").await;
    scene.dealt(&settle, &[&second]).await;
    console.ask("trigger").await;
    let runs = ran(&scene, &settle, 5).await;
    assert!(runs[3..].iter().all(|run| run.instance == second), "{runs:?}");
    console.on_server("enable", "10.0.0.1").await;
    scene.dealt(&settle, &[&first, &second]).await;

    let larger = settle.clone().shards(3);
    console.java.does(json!({"do": "update config", "yaml": larger.to_yaml()})).await;
    scene.dealt(&larger, &[&first, &second]).await;
    console.ask("trigger").await;
    ran(&scene, &larger, 8).await;

    console.on_server("shutdown", "10.0.0.1").await;
    scene.dealt(&larger, &[&second]).await;
    console.ask("shutdown").await;
    let instances = scene.tree(&settle).instances();
    scene.until("all are gone", async || scene.children(&instances).await.is_empty()).await;
    assert_eq!(console.status().await, "CRASHED");
    console.ask("remove").await;
    assert!(scene.children(&scene.tree(&settle).servers()).await.is_empty());
    console.ask("remove config").await;
    assert_eq!(console.ask("brief").await, Value::Null);
    assert!(!scene.is_there(scene.tree(&settle).root()).await);
}

pub(crate) async fn the_rust_console_manages_java_instances(ground: Ground) {
    let scene = Scene::new(&ground, "rust-console").await;
    let settle = idle("settle", 2).description("nightly");
    let (admin, name) = (scene.admin(), settle.name.clone());
    let status = async || admin.job(&name).await.unwrap().summary.status;
    let shards = async || -> Vec<ShardStatus> {
        let shards = admin.shards(&name).await.unwrap();
        shards.into_iter().map(|shard| shard.status).collect()
    };
    let mut java = scene.java("java").await;
    let id = scene.java_leads(&mut java, &settle, LASTS).await;
    let (server, _) = id.split_once("@-@").unwrap();
    assert_eq!(status().await, JobStatus::ShardingFlag, "before any run");

    admin.trigger(&name, Ask::default()).await.unwrap();
    scene.until("both run", async || shards().await == [ShardStatus::Running; 2]).await;
    ran(&scene, &settle, 2).await;
    assert_eq!(status().await, JobStatus::Ok);
    assert_eq!(shards().await, [ShardStatus::Pending; 2]);
    assert!(admin.disable_shard(&name, 1).await.unwrap());
    assert_eq!(shards().await, [ShardStatus::Pending, ShardStatus::Disabled]);
    admin.trigger(&name, Ask::default()).await.unwrap();
    heard(&scene, &settle).await;
    assert_eq!(ran(&scene, &settle, 3).await[2].item, 0);
    assert!(admin.enable_shard(&name, 1).await.unwrap());

    assert_eq!(admin.disable(&name).await.unwrap().servers, [server]);
    assert_eq!(status().await, JobStatus::Disabled);
    scene.until("nobody leads", async || scene.leader(&settle).await.is_none()).await;
    admin.trigger(&name, Ask::default()).await.unwrap();
    heard(&scene, &settle).await;
    admin.enable(&name).await.unwrap();
    scene.until("Java leads", async || scene.leader(&settle).await.as_ref() == Some(&id)).await;
    assert_eq!(status().await, JobStatus::Ok);
    assert_eq!(admin.disable_server(server, Some(&name)).await.unwrap(), ["settle"]);
    assert_eq!(admin.server(server).await.unwrap().summary.disabled, 1);
    assert_eq!(admin.enable_server(server, Some(&name)).await.unwrap(), ["settle"]);
    scene.until("Java leads", async || scene.leader(&settle).await.as_ref() == Some(&id)).await;

    // Deals once more, so that what it has to deal next is what follows.
    admin.trigger(&name, Ask::default()).await.unwrap();
    ran(&scene, &settle, 5).await;
    let necessary = scene.tree(&settle).necessary();
    assert!(!scene.is_there(&necessary).await);

    let larger = settle.clone().shards(3);
    let plan = admin.plan(Edit::of(larger.clone())).await.unwrap();
    assert!(admin.apply(&plan).await.unwrap().is_changed);
    scene.until("Java has seen it", async || scene.is_there(&necessary).await).await;
    admin.trigger(&name, Ask::default()).await.unwrap();
    ran(&scene, &larger, 8).await;
    assert_eq!(scene.owners(&larger).await, deal(&larger, &[&id]));

    assert_eq!(admin.shutdown(&name).await.unwrap(), [&*id]);
    assert_eq!(status().await, JobStatus::Crashed);
    scene.until("nobody leads", async || scene.leader(&settle).await.is_none()).await;
    assert_eq!(admin.remove_server(server, Some(&name)).await.unwrap(), ["settle"]);
    admin.remove(&name, false).await.unwrap();
    assert!(!scene.is_there(scene.tree(&settle).root()).await);

    // The JVM is as good as new: the same job once more, and removed under it.
    java.leaves(&settle).await;
    java.joins(&settle, ms(10)).await;
    let refused = admin.remove(&name, false).await.unwrap_err();
    assert!(matches!(refused, AdminError::Refused { .. }), "{refused}");
    admin.remove(&name, true).await.unwrap();
    // A Java instance that lives on may elect itself once more, in a job that is not there: nodes without a configuration.
    assert!(!scene.is_there(&scene.tree(&settle).config()).await);
}

pub(crate) async fn a_dump_says_the_same_in_both_languages(ground: Ground) {
    let scene = Scene::new(&ground, "dump").await;
    let settle = idle("settle", 3);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let rust_id = rust.joins(&settle, ms(10)).await;
    let java_id = java.joins(&settle, ms(10)).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    scene.is_at_peace(&settle).await;
    let port = testbed::free_port();
    java.does(json!({"do": "listen", "port": port})).await;

    let order = json!({"do": "dump of", "job": "settle", "ip": "127.0.0.1", "port": port});
    let javas = java.does(order).await;

    assert_eq!(javas.as_str(), Some(&*scene.admin().dump(&settle.name).await.unwrap()));
}
