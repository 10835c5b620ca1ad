//! Read-only commands: `job list`, `job show`, `job dump`, `job explain`, `shard list`, `server list`, `server show`.

use elasticjob::registry;
use serde_json::{Value, json};
use testbed::free_port;

use crate::{
    process::elasticjob,
    scene::{ADDRESS, Scene, settle},
};

#[tokio::test(flavor = "multi_thread")]
async fn job_shards_and_servers_are_shown_as_table_json_and_yaml() {
    let scene = Scene::with("").await;
    let job = settle().cron("0 0 2 1 1 ? 2099").unwrap().zone("GMT+8:00").unwrap();
    let _node = scene.node(job.prop("email.password", "hunter2").unwrap()).await;

    let jobs = scene.data(&["job", "list"]);
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    for (key, value) in [
        ("jobName", json!("settle")),
        ("status", json!("OK")),
        ("shardingTotalCount", json!(3)),
        ("instanceCount", json!(1)),
        ("nextFireTime", json!("2098-12-31T18:00:00Z")),
    ] {
        assert_eq!(jobs[0][key], value, "{jobs:#}");
    }
    let table = scene.run(&["job", "list"]);
    assert_eq!(
        (table.code, &*table.stderr, &*table.stdout),
        (
            Some(0),
            "",
            "JOB     STATUS  SHARDS  INSTANCES  CRON              NEXT RUN\n\
             settle  OK      3       1          0 0 2 1 1 ? 2099  2098-12-31T18:00:00Z\n"
        )
    );

    let details = scene.data(&["job", "show", "settle"]);
    let instance = details["instanceList"][0]["instanceId"].as_str().unwrap().to_owned();
    assert!(instance.starts_with(ADDRESS), "{details:#}");
    assert_eq!(details["leader"], instance);
    assert_eq!(details["config"]["properties"]["timeZone"], "GMT+8:00");
    let shown = scene.run(&["job", "show", "settle"]).stdout;
    for part in ["status    OK\n", "timeZone ", "settles orders\n", &instance, "ENABLED"] {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert!(!shown.contains("hunter2") && !details.to_string().contains("hunter2"));

    let shards = scene.data(&["shard", "list", "settle"]);
    assert_eq!(shards.as_array().unwrap().len(), 3);
    assert_eq!(
        (&shards[1]["instanceId"], &shards[1]["parameter"], &shards[1]["status"]),
        (&json!(instance), &json!("Shanghai"), &json!("PENDING"))
    );
    assert!(scene.run(&["shard", "list", "settle"]).stdout.contains("Guangzhou\n"));

    let servers = scene.data(&["server", "list"]);
    assert_eq!(
        (&servers[0]["serverIp"], &servers[0]["jobNames"]),
        (&json!(ADDRESS), &json!(["settle"]))
    );
    let server = scene.data(&["server", "show", ADDRESS]);
    assert_eq!(server["jobList"][0]["instances"], json!([instance]));
    let yaml = scene.run(&["server", "show", ADDRESS, "-o", "yaml"]).stdout;
    assert!(yaml.contains("jobNames:\n  - settle\n"), "{yaml}");

    for arguments in [
        &["job", "list"][..],
        &["shard", "list", "settle"],
        &["server", "list"],
        &["server", "show", ADDRESS],
        &["job", "explain", "settle"],
    ] {
        let table = scene.run(arguments).stdout;
        assert!(table.lines().count() > 1, "{arguments:?}: {table}");
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_registry_is_an_empty_list() {
    let scene = Scene::with("").await;

    let table = scene.run(&["job", "list"]);

    assert_eq!((table.code, &*table.stdout), (Some(0), ""));
    assert_eq!(table.stderr, "no jobs in /shop\n");
    assert_eq!(scene.data(&["job", "list"]), json!([]));
    assert_eq!(scene.data(&["server", "list"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_commands_write_nothing() {
    let scene = Scene::with("").await;
    let slip = scene.url.replace("/shop", "/shpo");

    for (command, code) in [
        (&["job", "list"][..], 0),
        (&["job", "show", "settle"], 5),
        (&["job", "trigger", "settle", "--wait"], 5),
        (&["server", "list"], 0),
        (&["doctor"], 10),
    ] {
        let output = elasticjob(&[command, &["--registry", &slip]].concat());

        assert_eq!(output.code, Some(code), "{command:?}: {}", output.stderr);
    }

    let registry = scene.connect().await;
    assert!(registry.exists(&"/shpo".parse().unwrap()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_job_is_listed_with_the_reason() {
    let scene = Scene::with("").await;
    scene.put("broken/config", "jobName: [").await;

    let table = scene.run(&["job", "list"]);

    assert_eq!(table.code, Some(0));
    assert!(table.stdout.contains("\nbroken  CRASHED  -"), "{}", table.stdout);
    assert!(table.stderr.starts_with("note: job broken: "), "{}", table.stderr);
    assert!(scene.data(&["job", "list"])[0]["problem"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_job_is_not_found_and_the_closest_name_suggested() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    for command in [
        &["job", "show"][..],
        &["job", "dump"],
        &["job", "explain"],
        &["job", "trigger"],
        &["job", "trigger", "--wait"],
        &["job", "cancel"],
        &["job", "enable"],
        &["job", "disable"],
        &["job", "shutdown"],
        &["job", "remove", "--force"],
        &["shard", "list"],
    ] {
        let near = scene.run(&[command, &["setle"]].concat());
        let far = scene.run(&[command, &["backup"]].concat());

        assert_eq!((near.code, &*near.stdout), (Some(5), ""), "{command:?}");
        assert_eq!(
            near.stderr, "error: there is no job setle in /shop\nhint: did you mean settle?\n",
            "{command:?}"
        );
        assert_eq!((far.code, &*far.stdout), (Some(5), ""), "{command:?}");
        assert!(far.stderr.ends_with("hint: list the jobs; is it another namespace?\n"));
    }
    for command in ["show", "enable", "disable", "shutdown", "remove"] {
        let output = scene.run(&["server", command, "10.9.9.9"]);

        assert_eq!((output.code, &*output.stdout), (Some(5), ""), "{command}");
        assert_eq!(
            output.stderr,
            "error: there is no server 10.9.9.9 in /shop\nhint: list the servers\n"
        );
    }
    for command in ["enable", "disable"] {
        assert_eq!(scene.run(&["shard", command, "setle", "0"]).code, Some(5));
        let beyond = scene.run(&["shard", command, "settle", "3"]);
        assert_eq!(beyond.code, Some(2));
        assert!(beyond.stderr.ends_with("hint: its shards are 0 to 2\n"), "{}", beyond.stderr);
    }
}

#[test]
fn unreachable_registry_has_its_own_exit_code() {
    let url = format!("zookeeper://jane:hunter2@127.0.0.1:{}/shop?maxRetries=0", free_port());
    for command in [&["job", "list"][..], &["server", "list"], &["doctor"]] {
        let output = elasticjob(&[command, &["--registry", &url]].concat());

        assert_eq!((output.code, &*output.stdout), (Some(3), ""), "{command:?}");
        assert!(
            output.stderr.contains("cannot reach the registry at 127.0.0.1"),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("\nhint: "), "{}", output.stderr);
        assert!(!output.stderr.contains("hunter2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_with_other_credentials_is_not_opened() {
    let scene = Scene::with("").await;
    let theirs = scene.url.replace("zookeeper://", "zookeeper://jane:secret@");
    let jane = registry::connect(&theirs.parse().unwrap()).await.unwrap();
    registry::ensure_path(&*jane, &"/shop/settle/config".parse().unwrap()).await.unwrap();

    for command in [&["job", "list"][..], &["job", "show", "settle"], &["server", "list"]] {
        let output = scene.run(command);

        assert_eq!((output.code, &*output.stdout), (Some(4), ""), "{}", output.stderr);
        assert!(output.stderr.contains("hint: check user and password"), "{}", output.stderr);
    }
}

#[test]
fn invalid_arguments_are_bad_input_without_a_registry() {
    for arguments in [
        &["job", "show", "a/b"][..],
        &["job", "show"],
        &["job", "trigger", "j", "--at", "noon"],
        &["job", "trigger", "j", "--shards", "first"],
        &["job", "trigger", "j", "--wait", "--timeout", "soon"],
        &["job", "trigger", "j", "--timeout", "1s"],
        &["job", "explain", "j", "--at", "noon"],
        &["shard", "enable", "j", "-1"],
        &["job", "apply"],
        &["job", "list", "-o", "xml"],
        &["job", "list", "--registry", "redis://h/x"],
    ] {
        let output = elasticjob(arguments);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{arguments:?}");
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dump_masks_addresses() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let text = scene.run(&["job", "dump", "settle"]).stdout;
    let data = scene.data(&["job", "dump", "settle"]);

    assert!(text.contains("/settle/servers/ip1 | ENABLED\n"), "{text}");
    assert!(!text.contains(ADDRESS));
    assert_eq!(data["jobName"], "settle");
    assert!(data["dump"].as_str().unwrap().contains("/settle/config | "));
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_what_blocks_a_job() {
    let scene = Scene::with("").await;
    let yaml = settle().cron("0 0 2 * * ?").unwrap().zone("GMT").unwrap().to_yaml();
    scene.put("settle/config", &yaml).await;

    let explanation = scene.data(&["job", "explain", "settle", "--at", "2026-11-15T02:00:00Z"]);
    let table = scene.run(&["job", "explain", "settle", "--shard", "1", "--history", "none"]);

    assert_eq!(explanation["dueAt"], "2026-11-15T02:00:00Z");
    let topics: Vec<&Value> =
        explanation["findings"].as_array().unwrap().iter().map(|f| &f["topic"]).collect();
    assert!(topics.contains(&&json!("noInstance")), "{explanation:#}");
    assert_eq!(table.code, Some(0));
    assert!(
        table.stdout.contains("-      blocking  the job has no instance\n"),
        "{}",
        table.stdout
    );
    assert!(table.stdout.contains("\n                 hint: start one\n"), "{}", table.stdout);
    assert!(table.stdout.contains("missed fires are not recorded"), "{}", table.stdout);
    assert!(!table.stdout.contains("\n2 "), "{}", table.stdout);
    assert!(table.stderr.starts_with("job settle at "), "{}", table.stderr);
}
