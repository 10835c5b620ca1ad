//! `elasticjob doctor`

use elasticjob::registry::{self, Create, Op, ensure_path};
use serde_json::{Value, json};

use crate::scene::{Scene, settle};

/// The problems found by one check.
fn problems<'a>(findings: &'a Value, check: &str) -> Vec<&'a Value> {
    let findings = findings.as_array().unwrap().iter();
    findings.filter(|one| one["check"] == check && one["isProblem"] == true).collect()
}

fn run_doctor(scene: &Scene) -> Value {
    let output = scene.run(&["doctor", "-o", "json"]);
    assert_eq!((output.code, &*output.stderr), (Some(10), ""), "{}", output.stdout);
    serde_json::from_str(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_registry_has_no_problems() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let output = scene.run(&["doctor"]);

    assert_eq!(
        (output.code, &*output.stderr),
        (Some(0), "no problems found\n"),
        "{}",
        output.stdout
    );
    for part in [
        "server   ok ",
        " ZooKeeper 3.9.0",
        ", standalone\n",
        "access   ok ",
        "are for world:anyone\n",
        "clock    ok ",
        "session  ok ",
    ] {
        assert!(output.stdout.contains(part), "{part:?}: {}", output.stdout);
    }
    assert!(problems(&scene.data(&["doctor"]), "server").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_jobs_and_stale_nodes_are_found() {
    let scene = Scene::with("").await;
    let over = settle().cron("0 0 2 1 1 ? 2020").unwrap();
    scene.put("settle/config", &over.to_yaml()).await;
    scene.put("settle/servers/10.0.0.9", "ENABLED").await;
    scene.put("settle/trigger/10.0.0.9@-@4711", "").await;
    scene.put("broken/config", "jobName: [").await;
    let registry = scene.connect().await;
    ensure_path(&*registry, &"/shop~ledger/gone/0".parse().unwrap()).await.unwrap();

    let findings = run_doctor(&scene);

    let has_problem = |check: &str, about: Value, message: &str| {
        let is_found = problems(&findings, check).iter().any(|one| {
            one["about"] == about
                && one["message"].as_str().unwrap().contains(message)
                && !one["hint"].as_str().unwrap().is_empty()
        });
        assert!(is_found, "{check} {about} {message}: {findings:#}");
    };
    has_problem("job", json!("settle"), "the job has no instance");
    has_problem("job", json!("settle"), "its schedule is over");
    has_problem("job", json!("broken"), "cannot be read");
    has_problem("stale", Value::Null, "servers without an instance: 10.0.0.9");
    has_problem("stale", json!("settle"), "triggers of instances that are gone: 10.0.0.9@-@4711");
    has_problem("stale", Value::Null, "pages of jobs that are gone: gone");
    let table = scene.run(&["doctor"]);
    assert_eq!((table.code, &*table.stderr), (Some(10), "6 problems found\n"), "{}", table.stdout);
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 100), "{}", table.stdout);

    // Following the hints solves the problems.
    for cure in
        [&["job", "remove", "gone"][..], &["job", "remove", "broken"], &["job", "remove", "settle"]]
    {
        let output = scene.run(cure);
        assert_eq!(output.code, Some(0), "{cure:?}: {}", output.stderr);
    }
    let cured = scene.run(&["doctor"]);
    assert_eq!((cured.code, &*cured.stderr), (Some(0), "no problems found\n"), "{}", cured.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_too_large_for_zookeeper_to_restart_is_found() {
    let scene = Scene::with("").await;
    scene.put("settle/config", &settle().to_yaml()).await;
    let java = scene.connect().await;
    let instances = java.namespace().path().join("settle/instances").unwrap();
    ensure_path(&*java, &instances).await.unwrap();
    let session = java.session().id();
    // Longer names instead of more nodes: it is the bytes that count.
    let names = (0..1_100).map(|number| format!("10.0.0.9@-@{number:01000}"));
    let ops = names
        .map(|name| Op::Create(Create::ephemeral(&instances.join(name).unwrap(), "", session)));
    for batch in ops.collect::<Vec<_>>().chunks(500) {
        java.multi(batch.to_vec()).await.unwrap();
    }

    let findings = run_doctor(&scene);

    let [large] = &problems(&findings, "session")[..] else { panic!("{findings:#}") };
    assert!(large["about"].as_str().unwrap().starts_with("10.0.0.9@-@"), "{large:#}");
    let message = large["message"].as_str().unwrap();
    assert!(message.contains(&format!("session {session} has 1100 ephemeral nodes")), "{message}");
    assert!(large["hint"].as_str().unwrap().contains("closeSessionTxn"), "{large:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_job_is_not_a_problem() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    scene.run(&["job", "disable", "settle"]);

    let output = scene.run(&["doctor"]);

    assert_eq!(output.code, Some(0), "{}", output.stdout);
    assert!(output.stdout.contains("settle is disabled in its configuration"), "{}", output.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_mixed_access_rights_are_found() {
    let scene = Scene::with("").await;
    scene.put("settle/config", &settle().to_yaml()).await;
    let theirs = scene.url.replace("zookeeper://", "zookeeper://jane:secret@");
    let jane = registry::connect(&theirs.parse().unwrap()).await.unwrap();
    ensure_path(&*jane, &"/shop/backup/config".parse().unwrap()).await.unwrap();

    let findings = run_doctor(&scene);

    let [mix] = &problems(&findings, "access")[..] else { panic!("{findings:#}") };
    let message = mix["message"].as_str().unwrap();
    assert!(message.contains("3 for world:anyone (/shop, /shop/settle"), "{message}");
    assert!(message.contains("/shop/backup"), "{message}");
    assert!(!findings.to_string().contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_server_of_an_ensemble_is_found() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let port = testbed::free_port();
    let both = scene.url.replace("/shop", &format!(",127.0.0.1:{port}/shop"));

    let output = crate::process::elasticjob(&["doctor", "-o", "json", "--registry", &both]);

    assert_eq!(output.code, Some(10), "{}", output.stderr);
    let findings: Value = serde_json::from_str(&output.stdout).unwrap();
    let servers = problems(&findings, "server");
    assert_eq!(servers.len(), 1, "{findings:#}");
    assert_eq!(servers[0]["about"], format!("127.0.0.1:{port}"));
    assert_eq!(crate::process::elasticjob(&["doctor", "--registry", "memory:"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn doctor_checks_a_real_zookeeper() {
    let server = testbed::ZooKeeper::start();
    let scene = Scene::at(server.address());
    let _node = scene.node(settle()).await;

    let waited = scene.run(&["job", "trigger", "settle", "--wait", "--timeout", "30s"]);
    let well = scene.data(&["doctor"]);
    let theirs = scene.url.replace("zookeeper://", "zookeeper://jane:secret@");
    let jane = registry::connect(&theirs.parse().unwrap()).await.unwrap();
    ensure_path(&*jane, &"/shop/backup/config".parse().unwrap()).await.unwrap();
    let mixed = run_doctor(&scene);

    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    assert!(well[0]["message"].as_str().unwrap().starts_with("ZooKeeper 3."), "{well:#}");
    assert_eq!(problems(&mixed, "access").len(), 1, "{mixed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reference_to_a_secret_is_a_problem_of_a_job_with_java_instances() {
    let scene = Scene::with("").await;
    let job = settle().prop("email.password", "secret:mail").unwrap();
    let _node = scene.node(job).await;
    assert_eq!(scene.run(&["doctor"]).code, Some(0), "Rust instances resolve it");

    scene.put("settle/instances/10.0.0.9@-@4711", "jobInstanceId: 10.0.0.9@-@4711\n").await;
    let findings = run_doctor(&scene);

    let problems = problems(&findings, "job");
    let message = |one: &&Value| one["message"].as_str().unwrap().to_owned();
    assert!(
        problems.iter().map(message).any(|text| text.contains("Java instances")
            && text.contains("email.password")
            && !text.contains("secret:mail")),
        "{findings:#}"
    );
}
