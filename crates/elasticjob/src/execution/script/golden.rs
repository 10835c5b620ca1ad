//! The words that scripts rely on, frozen: `tests/golden/README.md` says why.

use std::fmt::Write;

use testbed::{golden, golden_input};

use super::{Script, environment};
use crate::job::{FencingToken, Fire, Job, Shard};

#[test]
fn command_line_is_read_from_javas_property() {
    let stored = golden_input!("job-script.yaml");
    let job = Job::read(&"settle".parse().unwrap(), stored.as_bytes()).unwrap();

    let script = Script::of(&job).unwrap();

    let arguments = ["-c", "sh settle.sh | tee log", "sh"].map(ToOwned::to_owned).to_vec();
    assert_eq!(script, Script { program: "sh".to_owned(), arguments }, "elasticjob.script.shell");
}

#[test]
fn environment_of_a_script_keeps_its_names() {
    let job = Job::named("settle").unwrap().shards(3).parameter("all");
    let job = job.items("0=Beijing,1=Shanghai").unwrap();
    let fire = Fire::scheduled(job.name.clone(), "2026-11-15T06:36:07Z".parse().unwrap());
    let task = "settle@-@0,1@-@READY@-@10.0.0.7@-@4711".parse().unwrap();
    let shard = Shard::of(&job, &fire, task, 1, FencingToken::new(42));

    let mut text = String::new();
    for (name, value) in environment::variables(&shard) {
        let _ = writeln!(text, "{name}={}", value.unwrap());
    }
    golden!("script-environment.txt", text);

    let marks = environment::marks(&shard).into_iter().map(|mark| String::from_utf8(mark).unwrap());
    let golden = golden_input!("script-environment.txt");
    for mark in marks {
        assert!(golden.lines().any(|line| line == mark), "{mark}");
    }
}
