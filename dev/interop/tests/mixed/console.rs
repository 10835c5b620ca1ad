//! The console of each side manages instances of the other.

use std::time::Duration;

use elasticjob::{
    admin::{Edit, JobStatus, ShardStatus},
    coordination::trigger::TriggerRequest,
    job::Job,
};
use serde_json::{Value, json};

use crate::{
    event_log::Execution,
    peer::Peer,
    scenario::{Scenario, TestRegistry, expected_owners, idle, ms},
};
use elasticjob::admin::AdminError;

/// Long enough to be seen running.
const DURATION: Duration = Duration::from_millis(1_500);

/// Java's console, for one job.
struct JavaConsole {
    java: Peer,
    job: &'static str,
}

impl JavaConsole {
    async fn run(&mut self, command: &str) -> Value {
        self.java.command(json!({"do": command, "job": self.job})).await
    }

    async fn run_on_server(&mut self, command: &str, ip: &str) {
        self.java.command(json!({"do": command, "job": self.job, "ip": ip})).await;
    }

    async fn run_on_shard(&mut self, command: &str, item: &str) {
        self.java.command(json!({"do": command, "job": self.job, "item": item})).await;
    }

    async fn status(&mut self) -> String {
        self.run("brief").await["status"].as_str().unwrap().to_owned()
    }

    async fn shards(&mut self) -> Vec<String> {
        let shards = self.run("shards").await;
        let status = |shard: &Value| shard["status"].as_str().unwrap().to_owned();
        shards.as_array().unwrap().iter().map(status).collect()
    }
}

/// Waits until exactly this many executions have started and all of them have ended.
async fn wait_for_executions(scenario: &Scenario, job: &Job, count: usize) -> Vec<Execution> {
    let find = |executions: &[Execution]| {
        (executions.len() >= count && executions.iter().all(Execution::has_ended))
            .then(|| executions.to_vec())
    };
    let executions = scenario.events.until(&format!("{count} runs"), job.name.as_str(), find).await;
    assert_eq!(executions.len(), count, "{executions:?}");
    scenario.wait_until_quiescent(job).await;
    executions
}

/// Waits until every instance has handled its trigger.
async fn wait_until_triggers_are_handled(scenario: &Scenario, job: &Job) {
    let triggers = scenario.tree(job).triggers();
    scenario
        .until("the triggers are handled", async || scenario.children(&triggers).await.is_empty())
        .await;
}

pub(crate) async fn java_console_manages_rust_instances(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "java-console").await;
    let settle = idle("settle", 2).description("nightly");
    let mut console = JavaConsole { java: scenario.java("java").await, job: "settle" };
    scenario
        .admin()
        .apply(&scenario.admin().plan(Edit::new(settle.clone())).await.unwrap())
        .await
        .unwrap();
    assert_eq!(console.status().await, "CRASHED", "there is no instance");

    let (mut one, mut two) = (scenario.rust(1).await, scenario.rust(2).await);
    let (first, second) = (one.join(&settle, DURATION).await, two.join(&settle, DURATION).await);
    let owners = scenario.wait_until_assigned(&settle, &[&first, &second]).await;
    let brief = json!({
        "jobName": "settle",
        "status": "OK",
        "description": "nightly",
        "cron": "0 0 2 1 1 ? 2099",
        "instanceCount": 2,
        "shardingTotalCount": 2,
    });
    assert_eq!(console.run("brief").await, brief);
    assert_eq!(console.run("briefs").await, json!([brief]));
    let of_server = console.java.command(json!({"do": "briefs of", "ip": "10.0.0.1"})).await;
    assert_eq!(
        (&of_server[0]["status"], &of_server[0]["instanceCount"]),
        (&json!("OK"), &json!(1))
    );
    let servers = console.run("servers").await;
    assert_eq!(
        (&servers[0]["serverIp"], &servers[0]["instances"], &servers[1]["serverIp"]),
        (&json!("10.0.0.1"), &json!([first]), &json!("10.0.0.2"))
    );
    let shards = console.run("shards").await;
    assert_eq!(
        (&shards[0]["instanceId"], &shards[0]["serverIp"], &shards[0]["failover"]),
        (&json!(owners[&0]), &json!("10.0.0.2"), &json!(false))
    );

    console.run("trigger").await;
    scenario
        .until("both shards run", async || console.shards().await == ["RUNNING", "RUNNING"])
        .await;
    wait_for_executions(&scenario, &settle, 2).await;
    assert_eq!(console.shards().await, ["PENDING", "PENDING"]);
    console.run_on_shard("disable shard", "1").await;
    assert_eq!(console.shards().await, ["PENDING", "DISABLED"]);
    console.run("trigger").await;
    wait_until_triggers_are_handled(&scenario, &settle).await;
    assert_eq!(wait_for_executions(&scenario, &settle, 3).await[2].item, 0);
    console.run_on_shard("enable shard", "1").await;

    console.run("disable").await;
    assert_eq!(console.status().await, "DISABLED");
    scenario.until("there is no leader", async || scenario.leader(&settle).await.is_none()).await;
    console.run("trigger").await;
    wait_until_triggers_are_handled(&scenario, &settle).await;
    console.run("enable").await;
    scenario.until("there is a leader", async || scenario.leader(&settle).await.is_some()).await;
    scenario.wait_until_assigned(&settle, &[&first, &second]).await;
    assert_eq!(console.status().await, "OK");
    console.run_on_server("disable", "10.0.0.1").await;
    scenario.wait_until_assigned(&settle, &[&second]).await;
    console.run("trigger").await;
    let executions = wait_for_executions(&scenario, &settle, 5).await;
    assert!(executions[3..].iter().all(|execution| execution.instance == second), "{executions:?}");
    console.run_on_server("enable", "10.0.0.1").await;
    scenario.wait_until_assigned(&settle, &[&first, &second]).await;

    let larger = settle.clone().shards(3);
    console.java.command(json!({"do": "update config", "yaml": larger.to_yaml()})).await;
    scenario.wait_until_assigned(&larger, &[&first, &second]).await;
    console.run("trigger").await;
    wait_for_executions(&scenario, &larger, 8).await;

    console.run_on_server("shutdown", "10.0.0.1").await;
    scenario.wait_until_assigned(&larger, &[&second]).await;
    console.run("shutdown").await;
    let instances = scenario.tree(&settle).instances();
    scenario
        .until("all instances are gone", async || scenario.children(&instances).await.is_empty())
        .await;
    assert_eq!(console.status().await, "CRASHED");
    console.run("remove").await;
    assert!(scenario.children(&scenario.tree(&settle).servers()).await.is_empty());
    console.run("remove config").await;
    assert_eq!(console.run("brief").await, Value::Null);
    assert!(!scenario.exists(scenario.tree(&settle).root()).await);
}

pub(crate) async fn rust_console_manages_java_instances(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "rust-console").await;
    let settle = idle("settle", 2).description("nightly");
    let (admin, name) = (scenario.admin(), settle.name.clone());
    let status = async || admin.job(&name).await.unwrap().summary.status;
    let shards = async || -> Vec<ShardStatus> {
        let shards = admin.shards(&name).await.unwrap();
        shards.into_iter().map(|shard| shard.status).collect()
    };
    let mut java = scenario.java("java").await;
    let id = scenario.join_java_as_leader(&mut java, &settle, DURATION).await;
    let (server, _) = id.split_once("@-@").unwrap();
    assert_eq!(status().await, JobStatus::ShardingFlag, "before any run");

    admin.trigger(&name, TriggerRequest::default()).await.unwrap();
    scenario.until("both shards run", async || shards().await == [ShardStatus::Running; 2]).await;
    wait_for_executions(&scenario, &settle, 2).await;
    assert_eq!(status().await, JobStatus::Ok);
    assert_eq!(shards().await, [ShardStatus::Pending; 2]);
    assert!(admin.disable_shard(&name, 1).await.unwrap());
    assert_eq!(shards().await, [ShardStatus::Pending, ShardStatus::Disabled]);
    admin.trigger(&name, TriggerRequest::default()).await.unwrap();
    wait_until_triggers_are_handled(&scenario, &settle).await;
    assert_eq!(wait_for_executions(&scenario, &settle, 3).await[2].item, 0);
    assert!(admin.enable_shard(&name, 1).await.unwrap());

    assert_eq!(admin.disable(&name).await.unwrap().servers, [server]);
    assert_eq!(status().await, JobStatus::Disabled);
    scenario.until("there is no leader", async || scenario.leader(&settle).await.is_none()).await;
    admin.trigger(&name, TriggerRequest::default()).await.unwrap();
    wait_until_triggers_are_handled(&scenario, &settle).await;
    admin.enable(&name).await.unwrap();
    scenario
        .until("Java leads", async || scenario.leader(&settle).await.as_ref() == Some(&id))
        .await;
    assert_eq!(status().await, JobStatus::Ok);
    assert_eq!(admin.disable_server(server, Some(&name)).await.unwrap(), ["settle"]);
    assert_eq!(admin.server(server).await.unwrap().summary.disabled, 1);
    assert_eq!(admin.enable_server(server, Some(&name)).await.unwrap(), ["settle"]);
    scenario
        .until("Java leads", async || scenario.leader(&settle).await.as_ref() == Some(&id))
        .await;

    // Reshards once more, so that the next resharding request is due to the following change.
    admin.trigger(&name, TriggerRequest::default()).await.unwrap();
    wait_for_executions(&scenario, &settle, 5).await;
    let necessary = scenario.tree(&settle).necessary();
    assert!(!scenario.exists(&necessary).await);

    let larger = settle.clone().shards(3);
    let plan = admin.plan(Edit::new(larger.clone())).await.unwrap();
    assert!(admin.apply(&plan).await.unwrap().is_changed);
    scenario.until("Java has seen the change", async || scenario.exists(&necessary).await).await;
    admin.trigger(&name, TriggerRequest::default()).await.unwrap();
    wait_for_executions(&scenario, &larger, 8).await;
    assert_eq!(scenario.owners(&larger).await, expected_owners(&larger, &[&id]));

    assert_eq!(admin.shutdown(&name).await.unwrap(), [&*id]);
    assert_eq!(status().await, JobStatus::Crashed);
    scenario.until("there is no leader", async || scenario.leader(&settle).await.is_none()).await;
    assert_eq!(admin.remove_server(server, Some(&name)).await.unwrap(), ["settle"]);
    admin.remove(&name, false).await.unwrap();
    assert!(!scenario.exists(scenario.tree(&settle).root()).await);

    // The JVM joins the same job again, which is then removed while the JVM is still a member.
    java.leave(&settle).await;
    java.join(&settle, ms(10)).await;
    let refused = admin.remove(&name, false).await.unwrap_err();
    assert!(matches!(refused, AdminError::Refused { .. }), "{refused}");
    admin.remove(&name, true).await.unwrap();
    // A Java instance that keeps running may elect itself once more in the removed job and create nodes without a configuration.
    assert!(!scenario.exists(&scenario.tree(&settle).config()).await);
}

pub(crate) async fn dump_is_the_same_in_both_languages(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "dump").await;
    let settle = idle("settle", 3);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let rust_id = rust.join(&settle, ms(10)).await;
    let java_id = java.join(&settle, ms(10)).await;
    scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    scenario.wait_until_quiescent(&settle).await;
    let port = testbed::free_port();
    java.command(json!({"do": "listen", "port": port})).await;

    let command = json!({"do": "dump of", "job": "settle", "ip": "127.0.0.1", "port": port});
    let java_dump = java.command(command).await;

    assert_eq!(java_dump.as_str(), Some(&*scenario.admin().dump(&settle.name).await.unwrap()));
}
