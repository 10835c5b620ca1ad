//! `elasticjob shard`

use serde_json::Value;

use crate::process::elasticjob;

#[test]
fn plan_is_the_same_as_in_java() {
    let lines = include_str!("../../../elasticjob/tests/vectors/sharding.jsonl").lines();
    // The library checks every vector; a sample is enough for the command line.
    let mut checked = 0;
    for line in lines.step_by(9) {
        let case: Value = serde_json::from_str(line).unwrap();
        for strategy in ["AVG_ALLOCATION", "ODEVITY", "ROUND_ROBIN"] {
            if !case[strategy].is_array() {
                continue;
            }
            let total = case["total"].to_string();
            let mut arguments = vec!["shard", "plan", "--job", case["job"].as_str().unwrap()];
            arguments.extend(["--total", &total, "--strategy", strategy, "-o", "json"]);
            arguments.push("--instance");
            arguments
                .extend(case["instances"].as_array().unwrap().iter().filter_map(Value::as_str));

            let output = elasticjob(&arguments);

            let printed: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            assert_eq!(printed, case[strategy], "{strategy} {line}: {}", output.stderr);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn single_sharding_balance_depends_on_the_time() {
    let plan = |at| {
        let what = ["shard", "plan", "--job", "j", "--total", "1", "--at", at];
        let who = ["--instance", "10.0.0.1@-@1", "--instance", "10.0.0.2@-@1"];
        let strategy = ["--strategy", "SINGLE_SHARDING_BALANCE"];
        let output = elasticjob(&[&what[..], &strategy, &who].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output.stdout
    };

    assert_ne!(plan("2026-11-15T06:36:07.000Z"), plan("2026-11-15T06:36:07.001Z"));
}

#[test]
fn invalid_plan_is_bad_input() {
    for (changed, expected) in [
        (["--total", "0"], "a job has at least one shard"),
        (["--total", "100001"], "a job has at most 100000 shards"),
        (["--strategy", "FAIR"], "hint: AVG_ALLOCATION, ODEVITY"),
        (["--instance", "worker-1"], "for example 10.0.0.7@-@4711"),
        (["--instance", "10.0.0.1@-@1"], "named twice"),
        (["--at", "noon"], "2026-11-15T06:36:07Z"),
    ] {
        let mut arguments = vec!["shard", "plan", "--instance", "10.0.0.1@-@1"];
        for (flag, value) in [("--job", "j"), ("--total", "2")] {
            if flag != changed[0] {
                arguments.extend([flag, value]);
            }
        }
        arguments.extend(changed);

        let output = elasticjob(&arguments);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{arguments:?}");
        assert!(
            output.stderr.starts_with("error: ") && output.stderr.contains(expected),
            "{}",
            output.stderr
        );
    }
}
