//! `job apply`, `job import`

use std::{
    fs::{File, OpenOptions},
    io::Write,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::{process::binary, scene::Scene};

const HELLO: &str =
    "    hello: {cron: '0 0 2 * * ?', shardingTotalCount: 2, props: {script.command.line: echo}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_shown_and_stored_only_after_confirmation() {
    let scene = Scene::with(HELLO).await;
    let file = scene.file();

    let new = scene.run(&["job", "apply", "-f", &file, "--dry-run"]);
    let unconfirmed = scene.run(&["job", "apply", "-f", &file]);
    assert_eq!(scene.get("hello/config").await, None);
    let stored = scene.run(&["job", "apply", "-f", &file, "--yes"]);
    let same = scene.run(&["job", "apply", "-f", &file, "--dry-run"]);
    let unneeded = scene.run(&["job", "apply", "-f", &file]);

    assert_eq!((new.code, &*new.stderr), (Some(10), ""));
    assert_eq!(new.stdout, "JOB    CHANGE  KEY  STORED  FILE\nhello  new     -    -       -\n");
    assert_eq!(unconfirmed.code, Some(7));
    assert!(
        unconfirmed
            .stderr
            .ends_with("hint: --yes stores without asking, --dry-run only prints the changes\n"),
        "{}",
        unconfirmed.stderr
    );
    assert_eq!((stored.code, &*stored.stderr), (Some(0), "job hello stored, version 0\n"));
    assert_eq!(scene.get("hello").await.unwrap(), "SCRIPT");
    assert_eq!((same.code, &*same.stderr), (Some(0), "no changes\n"));
    assert_eq!((unneeded.code, &*unneeded.stderr), (Some(0), "no changes\n"));

    scene.write_jobs(&HELLO.replace("Count: 2", "Count: 5").replace("echo", "date"));
    let changed = scene.run(&["job", "apply", "-f", &file, "--dry-run"]);
    let data = scene.run(&["job", "apply", "-f", &file, "--dry-run", "-o", "json"]);
    let applied = scene.run(&["job", "apply", "-f", &file, "--yes", "-o", "json"]);

    assert_eq!(changed.code, Some(10));
    assert!(
        changed.stdout.contains("hello  changed  shardingTotalCount         2       5\n"),
        "{}",
        changed.stdout
    );
    let data: Value = serde_json::from_str(&data.stdout).unwrap();
    let count = json!({ "key": "shardingTotalCount", "stored": "2", "file": "5" });
    assert!(data[0]["differences"].as_array().unwrap().contains(&count), "{data:#}");
    let applied: Value = serde_json::from_str(&applied.stdout).unwrap();
    assert_eq!((&applied[0]["change"], &applied[0]["version"]), (&json!("changed"), &json!(1)));
    assert!(scene.get("hello/config").await.unwrap().contains("shardingTotalCount: 5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_asks_for_confirmation_on_a_terminal() {
    let scene = Scene::with(HELLO).await;

    for (typed, code, is_stored) in [("\n", 7, false), ("n\n", 7, false), ("y\n", 0, true)] {
        let (mut master, slave) = terminal();
        master.write_all(typed.as_bytes()).unwrap();
        let output = binary()
            .args(["job", "apply", "-f", &scene.file(), "--registry", &scene.url])
            .stdin(slave)
            .output()
            .unwrap();

        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{typed:?}: {stderr}");
        assert!(stderr.starts_with("Store hello? [y/N] "), "{stderr}");
        assert_eq!(scene.get("hello/config").await.is_some(), is_stored, "{typed:?}");
    }
}

/// Both ends of a terminal.
fn terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(master), slave)
}

#[tokio::test(flavor = "multi_thread")]
async fn job_of_another_handler_is_a_conflict_and_nothing_is_stored() {
    let scene =
        Scene::with(&format!("    another: {{props: {{script.command.line: echo}}}}\n{HELLO}"))
            .await;
    scene.put("hello", "com.acme.Hello").await;

    let output = scene.run(&["job", "apply", "-f", &scene.file(), "--yes"]);

    assert_eq!((output.code, &*output.stdout), (Some(6), ""), "{}", output.stderr);
    assert!(output.stderr.contains("job hello belongs to the Java class com.acme.Hello"));
    assert_eq!(scene.get("another/config").await, None, "all or nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_leaves_unreadable_configuration_unchanged() {
    let scene = Scene::with(HELLO).await;
    scene.put("hello/config", "jobName: [").await;

    let output = scene.run(&["job", "apply", "-f", &scene.file(), "--yes"]);

    assert_eq!(output.code, Some(7), "{}", output.stderr);
    assert_eq!(scene.get("hello/config").await.unwrap(), "jobName: [");
}

#[tokio::test(flavor = "multi_thread")]
async fn import_stores_jobs_of_2_1_5_with_their_handler() {
    let scene = Scene::with("").await;
    let json = scene.write(
        "settle.json",
        r#"{"jobName":"settle","jobClass":"com.acme.Settle","jobType":"SIMPLE","cron":"0 0 2 * * ?","shardingTotalCount":2,"monitorPort":9888}"#,
    );
    let xml = scene.write(
        "jobs.xml",
        r#"<beans xmlns:job="http://www.dangdang.com/schema/ddframe/job"><job:script id="backup" cron="0 0 3 * * ?" sharding-total-count="1" script-command-line="echo"/></beans>"#,
    );

    let imported = scene.run(&["job", "import", "-f", &json, &xml, "--yes"]);
    let boot = scene.run(&["job", "import", "-f", &scene.file(), "--yes"]);

    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(
        imported.stderr.contains("note: ") && imported.stderr.contains("monitorPort"),
        "{}",
        imported.stderr
    );
    assert_eq!(scene.get("settle").await.unwrap(), "com.acme.Settle");
    assert!(scene.get("settle/config").await.unwrap().contains("shardingTotalCount: 2"));
    assert_eq!(scene.get("backup").await.unwrap(), "SCRIPT");
    assert_eq!(boot.code, Some(2));
    assert!(boot.stderr.contains("elasticjob job apply takes the others"), "{}", boot.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_and_empty_files_are_bad_input() {
    let scene = Scene::with("    hello: {crom: x}\n").await;
    let empty = scene.write("empty.yml", "server: {port: 80}\n");

    let wrong = scene.run(&["job", "apply", "-f", &scene.file(), "--yes"]);
    let empty = scene.run(&["job", "apply", "-f", &empty, "--yes"]);
    let absent = scene.run(&["job", "apply", "-f", "/nowhere.yml", "--yes"]);

    assert_eq!((wrong.code, empty.code, absent.code), (Some(2), Some(2), Some(2)));
    assert!(wrong.stderr.contains("hint: did you mean cron?"), "{}", wrong.stderr);
    assert!(empty.stderr.contains("no job found in these files"), "{}", empty.stderr);
}
