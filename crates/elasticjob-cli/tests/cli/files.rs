//! Job files, checked with `elasticjob run --check`.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{CommandOutput, binary, elasticjob};

const SCRIPT: &str = "elasticjob:\n  jobs:\n    hello:\n      elasticJobType: SCRIPT\n      cron: 0/5 * * * * ?\n      props:\n        script.command.line: echo hello\n";

fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn check(text: &str) -> CommandOutput {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "jobs.yml", text);
    let mut output = elasticjob(&["run", "--check", "-o", "json", "-f", &file]);
    output.stderr = output.stderr.replace(&file, "jobs.yml");
    output.stdout = output.stdout.replace(&file, "jobs.yml");
    output
}

#[test]
fn check_prints_jobs_without_a_registry() {
    let output = check(SCRIPT);

    assert_eq!((output.code, &*output.stderr), (Some(0), ""));
    let printed: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        printed,
        json!([{
            "jobName": "hello", "elasticJobType": "SCRIPT", "cron": "0/5 * * * * ?",
            "shardingTotalCount": 1, "file": "jobs.yml", "line": 3,
        }])
    );
}

#[test]
fn problems_are_reported_with_file_and_line() {
    for (from, to, expected) in [
        (
            "cron: 0/5",
            "crom: 0/5",
            "error: jobs.yml:5: job hello: crom is unknown\nhint: did you mean cron?\n",
        ),
        (
            "0/5 * * * * ?",
            "0 0 24 * * ?",
            "error: jobs.yml:5: job hello: cron \"0 0 24 * * ?\": hours \"24\" is out of range\nhint: hours are 0 to 23\n",
        ),
        (
            "jobs:",
            "job:",
            "error: jobs.yml:2: elasticjob.job is unknown\nhint: did you mean jobs?\n",
        ),
        ("hello:\n", "hello:\n   x\n", "error: jobs.yml:4"),
        (
            "elasticjob:",
            "other:",
            "error: no job found in jobs.yml\nhint: define jobs below elasticjob.jobs, each under its name\n",
        ),
        (
            "echo hello",
            "${UNDEFINED}",
            "error: jobs.yml:7: job hello: props.script.command.line: placeholder ${UNDEFINED} has no value",
        ),
    ] {
        let output = check(&SCRIPT.replacen(from, to, 1));

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{to}");
        assert!(output.stderr.starts_with(expected), "{to}: {}", output.stderr);
    }
}

#[test]
fn java_class_is_an_error_or_skipped_with_a_flag() {
    let folder = TempDir::new().unwrap();
    let text = format!("{SCRIPT}    settle:\n      elasticJobClass: com.acme.Settle\n");
    let file = write(&folder, "jobs.yml", &text);

    let refused = elasticjob(&["run", "--check", "-f", &file]);
    let skipped = elasticjob(&["run", "--check", "-f", &file, "--skip-java"]);

    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    assert!(
        refused
            .stderr
            .contains("job settle is the Java class com.acme.Settle, which cannot run here")
    );
    assert!(refused.stderr.contains("--skip-java"));
    assert_eq!(skipped.code, Some(0));
    assert!(skipped.stderr.contains("it is skipped"));
    assert!(skipped.stdout.contains("hello") && !skipped.stdout.contains("settle"));
}

#[test]
fn missing_file_and_unknown_format_are_bad_input() {
    let folder = TempDir::new().unwrap();
    let odd = write(&folder, "jobs.txt", "");

    let absent = elasticjob(&["run", "--check", "-f", "/nowhere/jobs.yml"]);
    let odd = elasticjob(&["run", "--check", "-f", &odd]);

    assert_eq!((absent.code, odd.code), (Some(2), Some(2)));
    assert!(
        absent.stderr.starts_with("error: cannot read /nowhere/jobs.yml: "),
        "{}",
        absent.stderr
    );
    assert!(odd.stderr.contains("hint: .yml, .yaml, .json, .toml, .properties or .xml"));
    assert_eq!(elasticjob(&["run", "--check"]).code, Some(2), "no file at all");
}

#[test]
fn placeholders_are_resolved_from_the_environment() {
    let folder = TempDir::new().unwrap();
    let text = SCRIPT.replace("echo hello", "echo ${GREETING:world}");
    let file = write(&folder, "jobs.yml", &text.replace("0/5 * * * * ?", "${WHEN}"));

    let output =
        binary().args(["run", "--check", "-f", &file]).env("WHEN", "0 0 2 * * ?").output().unwrap();

    assert!(String::from_utf8(output.stdout).unwrap().contains("0 0 2 * * ?"));
}

#[test]
fn invalid_flag_values_are_bad_input() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "jobs.yml", SCRIPT);
    for (flag, value) in [
        ("--registry", "redis://h/x"),
        ("--registry", "zookeeper://127.0.0.1:2181"),
        ("--labels", "weight"),
        ("--connect-timeout", "soon"),
        ("--connect-timeout", "0s"),
        ("--health-listen", "everywhere"),
        ("--scripts-from", "/nowhere"),
    ] {
        let output = elasticjob(&["run", "--check", "-f", &file, flag, value]);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{flag} {value}");
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
    assert!(Path::new(&file).exists());
}
