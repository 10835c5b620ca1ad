//! Compares with answers recorded from Quartz 2.3.2 by `tests/vectors/RecordCron.java`.

use std::{fs, path::Path};

use jiff::Timestamp;
use quartz_cron::{Cron, Dst};
use serde_json::Value;

use crate::{at, schedule};

fn vectors(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

fn next(row: &Value) -> Vec<Timestamp> {
    row["next"].as_array().unwrap().iter().map(|fire| at(fire.as_str().unwrap())).collect()
}

fn fires(row: &Value) -> Vec<Timestamp> {
    let schedule = schedule(text(row, "cron"), text(row, "zone"), Dst::Quartz);
    schedule.after(at(text(row, "after"))).take(5).collect()
}

#[test]
fn next_five_fires_of_2000_expressions_agree_with_quartz() {
    let rows = vectors("cron.jsonl");
    assert_eq!(rows.len(), 2000);

    for row in &rows {
        assert_eq!(fires(row), next(row), "{row}");
    }
}

#[test]
fn expressions_are_accepted_and_refused_as_in_quartz() {
    let rows = vectors("cron-validity.jsonl");
    assert_eq!(rows.len(), 50);

    for row in &rows {
        let parsed = text(row, "cron").parse::<Cron>();

        assert_eq!(parsed.is_ok(), row["valid"].as_bool().unwrap(), "{row}: {parsed:?}");
    }
}

#[test]
fn quirks_of_quartz_are_reproduced_unless_it_hangs() {
    let rows = vectors("cron-odd.jsonl");
    assert!(rows.len() > 300);

    for row in &rows {
        let parsed = text(row, "cron").parse::<Cron>();

        if row["refused"] == true || row["quartz"] == "invalid" {
            assert!(parsed.is_err(), "{row}");
        } else if row["quartz"] == "hangs" {
            assert_eq!(fires(row).len(), 5, "{row}");
        } else {
            assert_eq!(fires(row), next(row), "{row}");
        }
    }
}
