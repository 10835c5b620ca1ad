//! Compares the fires of random expressions with those of the real Quartz, in the versions of ElasticJob 3.0.4 (Quartz 2.3.2) and 3.0.5 (2.4.0).
//!
//! The environment variable `CASES` sets their number (default 2,000), `SEED` selects them.

#[path = "../../../../crates/quartz-cron/tests/schedule/generators.rs"]
#[expect(dead_code, reason = "this test needs only some of the generators")]
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

/// How many fires of each expression are compared.
const FIRES: usize = 5;

/// From this second on Java's calendar has no table of clock changes and extrapolates.
const END: i64 = 2_114_380_800;

#[derive(Debug, Clone)]
struct Case {
    cron: String,
    zone: &'static str,
    after: Timestamp,
}

fn number(name: &str, default: u64) -> u64 {
    let number = env::var(name).ok().filter(|text| !text.is_empty());
    number.map_or(default, |text| text.parse().unwrap())
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

/// The answers of Quartz in this version.
fn run_quartz(version: &str, cases: &[Case]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let driver = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("interop");
    let jar = driver.join(format!("quartz/quartz-{version}.jar"));
    assert!(jar.exists(), "there is no {}; hint: make test-java downloads it", jar.display());
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cron-{version}"));
    let lines = cases.iter().map(|case| format!("{}\t{}\t{}\n", case.zone, case.after, case.cron));
    fs::write(&input, lines.collect::<String>()).unwrap();
    let output = Command::new("java")
        .arg("-cp")
        .arg(format!("{}:{}/lib/*", jar.display(), driver.display()))
        .arg(root.join("crates/quartz-cron/tests/vectors/RecordCron.java"))
        .stdin(File::open(&input).unwrap())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

/// An unintended difference from Quartz.
fn difference(case: &Case, quartz: &Value) -> Option<String> {
    let ours: Result<Cron, _> = case.cron.parse();
    let theirs = match quartz["quartz"].as_str() {
        None => quartz["next"].as_array().unwrap(),
        Some("invalid") => {
            return ours.ok().map(|_| "is accepted, but Quartz refuses it".to_owned());
        }
        // Quartz throws or hangs: there is nothing to compare.
        Some(_) => return None,
    };
    let cron = match ours {
        Ok(cron) => cron,
        Err(_) if is_refused_on_purpose(&case.cron, theirs) => return None,
        Err(error) => return Some(format!("is refused, but Quartz accepts it: {error}")),
    };
    let schedule = Schedule { cron, zone: case.zone.parse().unwrap(), dst: Dst::Quartz };
    let has_table = |fire: &Timestamp| fire.as_second() < END;
    let ours: Vec<Timestamp> =
        schedule.after(case.after).take(FIRES).take_while(has_table).collect();
    let theirs: Vec<Timestamp> = theirs
        .iter()
        .map(|fire| fire.as_str().unwrap().parse().unwrap())
        .take_while(has_table)
        .collect();
    (ours != theirs).then(|| format!("is due {ours:?}, in Quartz {theirs:?}"))
}

/// Expressions that are refused on purpose, see docs/cron.md: those that never fire, and the numbers that stand for `*` and `?` inside Quartz.
fn is_refused_on_purpose(cron: &str, fires: &[Value]) -> bool {
    fires.is_empty() || cron.contains("99") || cron.contains("98")
}

fn compare_with_quartz(version: &str) {
    let cases = cases();

    // Calculations that hang run until their JVM exits, so each JVM gets only some of the cases.
    let answers: Vec<Value> =
        cases.chunks(2_000).flat_map(|cases| run_quartz(version, cases)).collect();

    let count = |result: &str| answers.iter().filter(|answer| answer["quartz"] == result).count();
    eprintln!(
        "Quartz {version}: {} expressions, {} refused, {} throw, {} hang",
        cases.len(),
        count("invalid"),
        count("throws"),
        count("hangs")
    );
    let differences: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter_map(|(case, answer)| Some(format!("{case:?} {}", difference(case, answer)?)))
        .collect();
    let first = differences[..differences.len().min(20)].join("\n");
    assert!(differences.is_empty(), "{} differences:\n{first}", differences.len());
}

#[test]
#[ignore = "needs the real Quartz: make test-java"]
fn random_expressions_fire_as_in_quartz_2_3() {
    compare_with_quartz("2.3.2");
}

#[test]
#[ignore = "needs the real Quartz: make test-java"]
fn random_expressions_fire_as_in_quartz_2_4() {
    compare_with_quartz("2.4.0");
}
