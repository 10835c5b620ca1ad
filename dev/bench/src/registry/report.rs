//! Prints the results as tables, writes them as JSON, and lists the missed targets.
//!
//! Each result is printed as soon as it is known; the missed targets come last.

use std::{env, fs::File, io::Write, path::Path, thread, time::Duration};

use serde_json::json;

use super::{
    MAX_MEMORY, MIN_CLIENT_RATIO, MIN_SERVER_RATIO,
    clients::{ClientRow, Measurement},
    memory::{NODES, Resident},
    rounds::Rounds,
    server_under_test::Durability,
    workload::{Sample, Workload},
};
use crate::{
    BoxError, print_line,
    statistics::{median, ratio},
};

pub(super) struct Report {
    json: Option<File>,
    missed: Vec<String>,
}

impl Report {
    pub(super) fn new(json: Option<&Path>) -> Result<Self, BoxError> {
        let create = |path: &Path| {
            let name = path.display();
            File::create(path).map_err(|error| format!("cannot write {name}: {error}"))
        };
        Ok(Self { json: json.map(create).transpose()?, missed: Vec::new() })
    }

    pub(super) fn begin(rounds: Rounds) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let folder = env::temp_dir();
        print_line(&format!(
            "medians of {} rounds after {:?} to warm up; {processors} processors, data in {}\n",
            rounds.counted,
            rounds.warm_up,
            folder.display()
        ));
    }

    pub(super) fn begin_workloads() {
        print_line(&format!(
            "{:<26}{:<8}{:>13}{:>14}{:>8}{:>14}",
            "per second", "fsync", "ZooKeeper", "tinykeeper", "ratio", "in memory"
        ));
    }

    /// The samples of ZooKeeper, of tinykeeper and, where measured, of tinykeeper in memory.
    pub(super) fn workload(
        &mut self,
        workload: Workload,
        durability: Durability,
        samples: &[Vec<Sample>],
    ) -> Result<(), BoxError> {
        let [theirs, ours, in_memory @ ..] = samples else {
            return Err(format!("{workload}: two servers are needed").into());
        };
        let fsync = if durability == Durability::Synced { "on" } else { "off" };
        let rates = |samples: &[Sample]| rates(samples.iter().map(|sample| sample.per_second));
        let rate = |samples: &[Sample]| median(rates(samples));
        let ratio = ratio(&rates(ours), &rates(theirs));
        let in_memory = in_memory.first().map_or(String::new(), |samples| grouped(rate(samples)));
        let notified = match (notified_within(theirs), notified_within(ours)) {
            (Some(theirs), Some(ours)) => {
                format!("   all notified within {theirs:.1?} and {ours:.1?}")
            }
            _ => String::new(),
        };
        let (zookeeper, tinykeeper) = (grouped(rate(theirs)), grouped(rate(ours)));
        print_line(&format!(
            "{workload:<26}{fsync:<8}{zookeeper:>13}{tinykeeper:>14}{ratio:>8.2}{in_memory:>14}{notified}"
        ));
        self.expect(ratio >= MIN_SERVER_RATIO, || {
            format!(
                "{workload}, fsync {fsync}: {ratio:.2} of ZooKeeper's rate, at least {MIN_SERVER_RATIO} expected"
            )
        });
        let notified_ms = [notified_within(theirs), notified_within(ours)]
            .map(|time| time.map(|time| time.as_secs_f64() * 1e3));
        self.write(&json!({
            "row": workload.to_string(),
            "fsync": durability == Durability::Synced,
            "zookeeper": rates(theirs),
            "tinykeeper": rates(ours),
            "ratio": ratio,
            "told_within_ms": notified_ms,
        }))
    }

    pub(super) fn memory(&mut self, theirs: Resident, ours: Resident) -> Result<(), BoxError> {
        print_line(&format!(
            "\n{:<34}{:>13}{:>14}",
            "megabytes resident", "ZooKeeper", "tinykeeper"
        ));
        print_line(&format!("{:<34}{:>13.1}{:>14.1}", "just started", theirs.empty, ours.empty));
        let nodes = format!("with {NODES} nodes");
        print_line(&format!("{nodes:<34}{:>13.1}{:>14.1}", theirs.full, ours.full));
        self.expect(ours.full < MAX_MEMORY, || {
            format!("{NODES} nodes: {:.1} MB resident, less than {MAX_MEMORY} expected", ours.full)
        });
        let resident = |one: Resident| json!({ "empty": one.empty, "full": one.full });
        self.write(&json!({
            "row": "megabytes resident",
            "nodes": NODES,
            "zookeeper": resident(theirs),
            "tinykeeper": resident(ours),
        }))
    }

    pub(super) fn clients(&mut self, rows: &[ClientRow]) -> Result<(), BoxError> {
        print_line(&format!(
            "\n{:<26}{:>21}{:>14}{:>8}{:>28}",
            "creates per second",
            "zookeeper-client",
            "our client",
            "ratio",
            "processor time per create"
        ));
        let mut best = (Vec::new(), Vec::new());
        for row in rows {
            let rates = |measurements: &[Measurement]| {
                rates(measurements.iter().map(|measurement| measurement.per_second))
            };
            let busy = |measurements: &[Measurement]| {
                typical(measurements.iter().map(|measurement| measurement.busy))
            };
            let (theirs, ours) = (rates(&row.theirs), rates(&row.ours));
            let busy = format!("{:.1?} and {:.1?}", busy(&row.theirs), busy(&row.ours));
            client_line(&format!("{} in flight", row.window), &theirs, &ours, &busy);
            best = (larger(best.0, &theirs), larger(best.1, &ours));
            self.write(&json!({
                "row": "creates by clients",
                "in_flight": row.window,
                "zookeeper-client": theirs,
                "ours": ours,
                "ratio": ratio(&ours, &theirs),
            }))?;
        }
        let (theirs, ours) = best;
        client_line("best of each", &theirs, &ours, "");
        let ratio = ratio(&ours, &theirs);
        self.expect(ratio >= MIN_CLIENT_RATIO, || {
            format!(
                "our client: {ratio:.2} of zookeeper-client's best rate, at least {MIN_CLIENT_RATIO} expected"
            )
        });
        self.write(&json!({
            "row": "creates by clients",
            "in_flight": "the best of each",
            "zookeeper-client": theirs,
            "ours": ours,
            "ratio": ratio,
        }))
    }

    /// Lists the missed targets. Returns whether there are none.
    pub(super) fn end(self) -> bool {
        for missed in &self.missed {
            print_line(&format!("MISSED  {missed}"));
        }
        self.missed.is_empty()
    }

    fn expect(&mut self, is_met: bool, message: impl FnOnce() -> String) {
        if !is_met {
            self.missed.push(message());
        }
    }

    fn write(&mut self, line: &serde_json::Value) -> Result<(), BoxError> {
        if let Some(json) = &mut self.json {
            writeln!(json, "{line}")?;
        }
        Ok(())
    }
}

fn notified_within(samples: &[Sample]) -> Option<Duration> {
    let times = samples.iter().filter_map(|sample| sample.notified_within);
    Some(typical(times)).filter(|time| !time.is_zero())
}

fn typical(times: impl Iterator<Item = Duration>) -> Duration {
    Duration::from_secs_f64(median(times.map(|time| time.as_secs_f64())))
}

fn client_line(name: &str, theirs: &[f64], ours: &[f64], busy: &str) {
    let ratio = ratio(ours, theirs);
    let [theirs, ours] = [theirs, ours].map(|rates| grouped(median(rates.iter().copied())));
    print_line(&format!("{name:<26}{theirs:>21}{ours:>14}{ratio:>8.2}{busy:>28}"));
}

/// The larger value of each round.
fn larger(some: Vec<f64>, others: &[f64]) -> Vec<f64> {
    if some.is_empty() {
        return others.to_vec();
    }
    some.into_iter().zip(others).map(|(one, other)| one.max(*other)).collect()
}

/// Rounds the rates to whole numbers.
fn rates(rates: impl Iterator<Item = f64>) -> Vec<f64> {
    rates.map(f64::round).collect()
}

/// `1234567` as `1,234,567`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(grouped(7.4), "7");
        assert_eq!(grouped(123_456.0), "123,456");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
