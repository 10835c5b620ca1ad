//! Text from outside in logs and on the terminal: it can neither forge a line nor control a terminal.

use std::fs;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    endpoint::Endpoint,
    process::{Process, binary},
    scene::Scene,
};

/// A screen that is cleared, in seven and in eight bits; a text that turns direction; a line of its own.
const HOSTILE: &str = "\u{1b}[2J\u{9b}2J\u{7f}\u{202e}live\n2026-11-18T00:00:00.000000Z  INFO forged: yes job=settle\r";

/// The characters that a terminal obeys.
fn obeyed(text: &str) -> Option<char> {
    text.chars().find(|each| {
        (each.is_control() && *each != '\n')
            || matches!(each, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// A worker with a script and an HTTP job that both fail with hostile text; runs until both have failed.
async fn log_of_hostile_jobs(format: &str) -> (Scene, String) {
    let endpoint = Endpoint::answering("500 Internal Server Error", "", HOSTILE);
    let scene = Scene::with(&format!(
        "    script: {{cron: '* * * * * ?', props: {{script.command.line: sh FOLDER/fail.sh}}}}\n    \
         request: {{cron: '* * * * * ?', props: {{http.uri: 'http://{}/', http.method: GET}}}}\n",
        endpoint.address
    ))
    .await;
    fs::write(scene.folder.path().join("hostile"), HOSTILE).unwrap();
    let script = "cat FOLDER/hostile\ncat FOLDER/hostile >&2\nexit 1\n"
        .replace("FOLDER", scene.folder.path().to_str().unwrap());
    fs::write(scene.folder.path().join("fail.sh"), script).unwrap();
    let file = scene.file();
    let history = format!("sqlite:{}", scene.folder.path().join("history.db").display());
    let mut process = Process::start(&[
        "run",
        "-f",
        &file,
        "--registry",
        &scene.url,
        "--log-format",
        format,
        "--history",
        &history,
    ]);
    let (mut script, mut request) = (false, false);
    while !(script && request) {
        let failed = process.wait_for_log("job failed");
        script |= failed.contains("exited with code 1");
        request |= failed.contains("answered 500");
    }
    process.terminate();
    process.wait();
    (scene, process.log())
}

#[tokio::test(flavor = "multi_thread")]
async fn text_log_quotes_what_scripts_and_servers_say() {
    let (_scene, log) = log_of_hostile_jobs("text").await;

    assert_eq!(obeyed(&log), None, "{log:?}");
    assert!(log.contains("forged"), "the text is there: {log}");
    for line in log.lines() {
        let mut words = line.split_whitespace();
        assert!(words.next().unwrap().parse::<Timestamp>().is_ok(), "{line:?}");
        assert!(!line.contains("INFO forged") || line.contains('"'), "{line:?}");
        assert!(!line.starts_with("2026-11-18T00:00:00.000000Z"), "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_log_escapes_what_scripts_and_servers_say() {
    let (_scene, log) = log_of_hostile_jobs("json").await;

    assert_eq!(obeyed(&log), None, "{log:?}");
    assert!(log.contains("forged"), "the text is there: {log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn history_commands_print_no_escapes_of_a_script() {
    let (scene, _) = log_of_hostile_jobs("json").await;
    let history = format!("sqlite:{}", scene.folder.path().join("history.db").display());
    let list = ["history", "list", "--job", "script", "--history", &history];
    let runs = scene.data(&list);
    let run = runs[0]["runId"].as_str().unwrap();

    for command in [&list[..], &["history", "show", run], &["history", "logs", run]] {
        for format in ["table", "json", "yaml"] {
            let store = ["--history", &history, "-o", format];
            let words = command.iter().take_while(|word| **word != "--history");
            let output = binary().args(words).args(store).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{command:?} {format}: {printed}");
            assert!(printed.contains("script") || printed.contains("forged"), "{printed}");
            assert_eq!(obeyed(&printed), None, "{command:?} {format}: {printed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn job_commands_print_no_escapes_of_the_registry() {
    let scene = Scene::with("").await;
    scene.put("settle", "SCRIPT").await;
    let escaped = r#""\e[2J\x9b2J\u202elive\nforged""#;
    let config = format!(
        "jobName: settle\ncron: '0 0 0 1 1 ? 2099'\nshardingTotalCount: 1\ndescription: {escaped}\n\
         jobParameter: {escaped}\nshardingItemParameters: \"0=\\e[2J\\x9b2J\"\n"
    );
    scene.put("settle/config", &config).await;
    scene.put("settle/leader/election/instance", "\u{1b}]0;owned\u{7}\u{9b}2J").await;
    scene.put("broken", "SCRIPT").await;
    scene
        .put("broken/config", "jobName: broken\n\u{9b}2J: \"\\e[2J\"\nshardingTotalCount: x\n")
        .await;

    for command in [
        &["job", "list"][..],
        &["job", "show", "settle"],
        &["job", "dump", "settle"],
        &["job", "dump", "broken"],
        &["job", "show", "broken"],
        &["job", "explain", "settle"],
        &["shard", "list", "settle"],
        &["server", "list"],
        &["doctor"],
    ] {
        for format in ["table", "json", "yaml"] {
            let output = scene.run(&[command, &["-o", format]].concat());
            let printed = output.stdout + &output.stderr;
            assert_eq!(obeyed(&printed), None, "{command:?} {format}: {printed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_log_quotes_what_the_registry_says() {
    let scene = Scene::with("    settle: {props: {script.command.line: echo}}\n").await;
    let file = scene.file();
    let start = || {
        let run = ["run", "-f", &file, "--registry", &scene.url];
        Process::start(&[&run[..], &["--log-format", "text"]].concat())
    };
    let mut process = start();
    process.wait_for_log("node started");

    scene.put("settle/leader/election/instance", "\u{1b}[2J\nINFO forged").await;
    process.wait_for_log("electing another one");
    let config = "jobName: settle\nshardingTotalCount: \"\\e[2J\\nINFO forged\"\n";
    scene.put("settle/config", config).await;
    process.wait_for_log("new configuration is unreadable");
    process.terminate();
    process.wait();

    let log = process.log();
    assert_eq!(obeyed(&log), None, "{log:?}");
    assert!(!log.lines().any(|line| line.starts_with("INFO forged")), "{log}");
}
