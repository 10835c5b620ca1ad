//! `elasticjob cron`

use serde_json::{Value, json};

use crate::process::elasticjob;

fn vectors() -> impl Iterator<Item = Value> {
    let lines = include_str!("../../../quartz-cron/tests/vectors/cron.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn fires_are_the_same_as_in_quartz() {
    // The library checks every vector; a sample is enough for the command line.
    for case in vectors().step_by(97) {
        let text = |key: &str| case[key].as_str().unwrap();
        let count = case["next"].as_array().unwrap().len().to_string();
        let mut arguments = vec!["-o", "json", "cron", "next", text("cron"), "--dst", "quartz"];
        arguments.extend(["--zone", text("zone"), "--after", text("after"), "-n", &count]);

        let output = elasticjob(&arguments);

        let printed: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(printed, case["next"], "{case}: {}", output.stderr);
    }
}

#[test]
fn next_prints_every_output_format() {
    let next = |format| {
        let what = ["cron", "next", "0 30 2 * * ?", "--zone", "America/New_York", "-n", "2"];
        let output =
            elasticjob(&[&what[..], &["--after", "2026-03-07T12:00:00Z", "-o", format]].concat());
        assert_eq!((output.code, &*output.stderr), (Some(0), ""));
        output.stdout
    };

    let printed: Value = serde_json::from_str(&next("json")).unwrap();
    assert_eq!(printed, json!(["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]));
    assert_eq!(next("yaml"), "- \"2026-03-08T07:00:00Z\"\n- \"2026-03-09T06:30:00Z\"\n");
    assert_eq!(
        next("table"),
        "FIRE                  LOCAL\n\
         2026-03-08T07:00:00Z  Sun 2026-03-08 03:00:00 -04:00\n\
         2026-03-09T06:30:00Z  Mon 2026-03-09 02:30:00 -04:00\n"
    );
}

#[test]
fn cron_without_fires_prints_an_empty_list_and_is_bad_input() {
    let output = elasticjob(&["cron", "next", "0 0 0 30 2 ?", "-o", "json"]);

    assert_eq!((output.code, &*output.stdout), (Some(2), "[]\n"));
    assert!(
        output.stderr.starts_with("error: cron \"0 0 0 30 2 ?\" never fires"),
        "{}",
        output.stderr
    );
}

#[test]
fn errors_have_one_line_and_a_hint() {
    for (arguments, stderr) in [
        (
            &["cron", "next", "0 0 24 * * ?"][..],
            "error: cron \"0 0 24 * * ?\": hours \"24\" is out of range\nhint: hours are 0 to 23\n",
        ),
        (
            &["cron", "next", "0 0 2 * * ?", "--zone", "Asia/Shangai"],
            "error: time zone \"Asia/Shangai\" is unknown\nhint: did you mean \"Asia/Shanghai\"?\n",
        ),
        (
            &["cron", "next", "0 0 2 * * ?", "--after", "tomorrow"],
            "error: \"tomorrow\" is not an instant\nhint: date, time and offset from UTC, for example 2026-11-15T06:36:07Z\n",
        ),
        (
            &["cron", "next", "0 0 2 * * ?", "--dst", "none"],
            "error: DST rule \"none\" is unknown\nhint: use default or quartz\n",
        ),
    ] {
        let output = elasticjob(arguments);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{arguments:?}");
        assert_eq!(output.stderr, stderr);
    }
}

#[test]
fn check_warns_about_parts_that_quartz_ignores() {
    let odd = elasticjob(&["cron", "check", "0 0 9 ? * MON-FRI/2", "-o", "json"]);
    let fine = elasticjob(&["cron", "check", "0/5 * * * * ?"]);
    let wrong = elasticjob(&["cron", "check", "30 9 * * 1-5"]);

    let printed: Value = serde_json::from_str(&odd.stdout).unwrap();
    let warning = json!({
        "field": "day of week", "part": "MON-FRI/2", "message": "\"/2\" is ignored; a step needs numbers, as in 2-6/2",
    });
    assert_eq!(printed, json!({ "cron": "0 0 9 ? * MON-FRI/2", "warnings": [warning] }));
    assert_eq!((odd.code, fine.code, wrong.code), (Some(0), Some(0), Some(2)));
    assert_eq!((&*fine.stdout, &*fine.stderr), ("", "\"0/5 * * * * ?\" is valid, no warnings\n"));
    assert!(wrong.stderr.contains("0 30 9 ? * MON-FRI"), "{}", wrong.stderr);
}
