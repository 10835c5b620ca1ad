//! URLs with passwords come from files and from systemd's credentials, so that neither a command line nor an environment holds them.

use std::{fs, process::Command};

use crate::{
    process::{CommandOutput, binary},
    scene::{Scene, settle},
};

fn run(command: &mut Command) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_url_is_read_from_a_file_or_a_credential() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let file = scene.write("registry", &format!("{}\n", scene.url));
    let folder = scene.folder.path().join("credentials");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("elasticjob.registry"), &scene.url).unwrap();

    let by_flag = run(binary().args(["job", "list", "--registry-file", &file]));
    let by_variable = run(binary().args(["job", "list"]).env("ELASTICJOB_REGISTRY_FILE", &file));
    let by_credential = run(binary().args(["job", "list"]).env("CREDENTIALS_DIRECTORY", &folder));

    for output in [by_flag, by_variable, by_credential] {
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(output.stdout.contains("settle"), "{}", output.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_reads_registry_and_history_from_files() {
    let scene =
        Scene::with("    a: {cron: '* * * * * ?', props: {script.command.line: echo}}\n").await;
    let registry = scene.write("registry", &scene.url);
    let database = scene.folder.path().join("history.db");
    let history = scene.write("history", &format!("sqlite:{}\n", database.display()));
    let file = scene.file();
    let mut command = binary();
    command.env_remove("ELASTICJOB_HISTORY");
    command.args(["run", "-f", &file, "--registry-file", &registry, "--history-file", &history]);

    let mut process = crate::process::Process::spawn(&mut command);
    process.wait_for_log("shard ended");
    process.terminate();
    process.wait();

    let list = ["history", "list", "--history-file", &history];
    let output = run(binary().env_remove("ELASTICJOB_HISTORY").args(list));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("done"), "{}", output.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_file_that_is_missing_empty_or_ambiguous_is_an_error() {
    let scene = Scene::with("").await;
    let empty = scene.write("empty", "\n");
    let two_lines = scene.write("lines", "zookeeper://a/b\nhunter2\n");
    let missing = scene.folder.path().join("missing").to_str().unwrap().to_owned();

    for file in [&empty, &two_lines, &missing] {
        let output = run(binary().args(["job", "list", "--registry-file", file]));
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains(&**file), "{}", output.stderr);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
    let both = ["job", "list", "--registry", &scene.url, "--registry-file", &empty];
    let output = run(binary().args(both));
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("--registry-file"), "{}", output.stderr);
}
