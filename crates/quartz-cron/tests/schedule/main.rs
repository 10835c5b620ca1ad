//! Tests of schedules: recorded answers of the real Quartz, clock changes, grammar, and properties of random expressions.

mod clock_changes;
mod generators;
mod grammar;
mod properties;
mod quartz;
mod speed;
mod zones;

use jiff::Timestamp;
use quartz_cron::{Dst, Schedule};

fn schedule(cron: &str, zone: &str, dst: Dst) -> Schedule {
    let cron = cron.parse().unwrap_or_else(|error| panic!("{error}"));
    Schedule { cron, zone: zone.parse().unwrap(), dst }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}
