//! Random expressions, asked of the real Quartz and of us: the versions ElasticJob 3.0.4 (2.3.2) and 3.0.5 (2.4.0) ship.
//!
//! `CASES` says how many (2,000 if nothing does), `SEED` which.

#[path = "../../../../crates/quartz-cron/tests/schedule/generators.rs"]
#[expect(dead_code, reason = "not all that the property tests need is needed here")]
mod any;

use std::{
    env,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use elasticjob::schedule::{Cron, Dst, Schedule};
use jiff::Timestamp;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::Value;

/// How many fires of each.
const FIRES: usize = 5;

/// From here on Java's calendar has no table of clock changes, and makes them up.
const END: i64 = 2_114_380_800;

/// What is asked.
#[derive(Debug, Clone)]
struct Case {
    cron: String,
    zone: &'static str,
    after: Timestamp,
}

fn number(name: &str, otherwise: u64) -> u64 {
    let number = env::var(name).ok().filter(|text| !text.is_empty());
    number.map_or(otherwise, |text| text.parse().unwrap())
}

fn cases() -> Vec<Case> {
    let (count, seed) = (number("CASES", 2_000), number("SEED", 1));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let cron = prop_oneof![4 => any::expression(), 1 => any::mutation()];
    let after = (1_700_000_000..2_000_000_000_i64)
        .prop_map(|second| Timestamp::from_second(second).unwrap());
    let case =
        (cron, any::zone(), after).prop_map(|(cron, zone, after)| Case { cron, zone, after });
    let mut draw = || case.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| draw()).collect()
}

/// What Quartz of this version says of each.
fn ask(version: &str, cases: &[Case]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let driver = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("interop");
    let jar = driver.join(format!("quartz/quartz-{version}.jar"));
    assert!(jar.exists(), "there is no {}; hint: make test-java gets it first", jar.display());
    let questions = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cron-{version}"));
    let lines = cases.iter().map(|case| format!("{}\t{}\t{}\n", case.zone, case.after, case.cron));
    fs::write(&questions, lines.collect::<String>()).unwrap();
    let asked = Command::new("java")
        .arg("-cp")
        .arg(format!("{}:{}/lib/*", jar.display(), driver.display()))
        .arg(root.join("crates/quartz-cron/tests/vectors/RecordCron.java"))
        .stdin(File::open(&questions).unwrap())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", asked.status);
    let answers = String::from_utf8(asked.stdout).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

/// Where we differ from Quartz, and should not.
fn differs(case: &Case, quartz: &Value) -> Option<String> {
    let ours: Result<Cron, _> = case.cron.parse();
    let theirs = match quartz["quartz"].as_str() {
        None => quartz["next"].as_array().unwrap(),
        Some("invalid") => return ours.ok().map(|_| "is taken, Quartz refuses it".to_owned()),
        // What Quartz throws or hangs on must not break anybody; there is nothing to compare.
        Some(_) => return None,
    };
    let cron = match ours {
        Ok(cron) => cron,
        Err(_) if cannot_run(&case.cron, theirs) => return None,
        Err(error) => return Some(format!("is refused, Quartz takes it: {error}")),
    };
    let schedule = Schedule { cron, zone: case.zone.parse().unwrap(), dst: Dst::Quartz };
    let is_known = |fire: &Timestamp| fire.as_second() < END;
    let ours: Vec<Timestamp> =
        schedule.after(case.after).take(FIRES).take_while(is_known).collect();
    let theirs: Vec<Timestamp> = theirs
        .iter()
        .map(|fire| fire.as_str().unwrap().parse().unwrap())
        .take_while(is_known)
        .collect();
    (ours != theirs).then(|| format!("is due {ours:?}, in Quartz {theirs:?}"))
}

/// What is refused on purpose, see docs/cron.md: what names nothing and so never fires, and the numbers that are `*` and `?` inside of Quartz.
fn cannot_run(cron: &str, fires: &[Value]) -> bool {
    fires.is_empty() || cron.contains("99") || cron.contains("98")
}

fn random_expressions_are_due_as_in(version: &str) {
    let cases = cases();

    // What hangs goes on for as long as its JVM lives: not for long.
    let answers: Vec<Value> = cases.chunks(2_000).flat_map(|cases| ask(version, cases)).collect();

    let of = |what: &str| answers.iter().filter(|answer| answer["quartz"] == what).count();
    eprintln!(
        "Quartz {version}: {} expressions, {} refused, {} it throws and {} it hangs on",
        cases.len(),
        of("invalid"),
        of("throws"),
        of("hangs")
    );
    let differences: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter_map(|(case, answer)| Some(format!("{case:?} {}", differs(case, answer)?)))
        .collect();
    let first = differences[..differences.len().min(20)].join("\n");
    assert!(differences.is_empty(), "{} differences:\n{first}", differences.len());
}

#[test]
#[ignore = "needs the real Quartz: make test-java"]
fn random_expressions_are_due_as_in_quartz_2_3() {
    random_expressions_are_due_as_in("2.3.2");
}

#[test]
#[ignore = "needs the real Quartz: make test-java"]
fn random_expressions_are_due_as_in_quartz_2_4() {
    random_expressions_are_due_as_in("2.4.0");
}
