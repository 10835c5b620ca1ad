//! What people read, what a machine reads, and which bars were missed.
//!
//! Each result is told when it is there; the verdict comes last.

use std::{env, fs::File, io::Write, path::Path, thread, time::Duration};

use serde_json::json;

use super::{
    CLIENT_BAR, MEMORY_BAR, ROW_BAR,
    clients::{ClientRow, Go},
    contestant::Keeping,
    memory::{NODES, Resident},
    rounds::Rounds,
    row::{Row, Sample},
};
use crate::{
    BoxError, say,
    statistics::{median, ratio},
};

pub(super) struct Report {
    json: Option<File>,
    missed: Vec<String>,
}

impl Report {
    pub(super) fn new(json: Option<&Path>) -> Result<Self, BoxError> {
        let create = |path: &Path| {
            let place = path.display();
            File::create(path).map_err(|error| format!("cannot write {place}: {error}"))
        };
        Ok(Self { json: json.map(create).transpose()?, missed: Vec::new() })
    }

    pub(super) fn begin(rounds: Rounds) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let place = env::temp_dir();
        say(&format!(
            "medians of {} rounds after {:?} to warm up; {processors} processors, data in {}\n",
            rounds.counted,
            rounds.warm_up,
            place.display()
        ));
    }

    pub(super) fn begin_rows() {
        say(&format!(
            "{:<26}{:<8}{:>13}{:>14}{:>8}{:>14}",
            "in a second", "fsync", "ZooKeeper", "tinykeeper", "ratio", "in memory"
        ));
    }

    /// The samples of ZooKeeper, of tinykeeper and, where measured, of tinykeeper in memory.
    pub(super) fn row(
        &mut self,
        row: Row,
        keeping: Keeping,
        samples: &[Vec<Sample>],
    ) -> Result<(), BoxError> {
        let [theirs, ours, in_memory @ ..] = samples else {
            return Err(format!("{row} without two to compare").into());
        };
        let fsync = if keeping == Keeping::Synced { "on" } else { "off" };
        let rates = |samples: &[Sample]| rates(samples.iter().map(|sample| sample.per_second));
        let rate = |samples: &[Sample]| median(rates(samples));
        let ratio = ratio(&rates(ours), &rates(theirs));
        let in_memory = in_memory.first().map_or(String::new(), |samples| grouped(rate(samples)));
        let told = match (told_within(theirs), told_within(ours)) {
            (Some(theirs), Some(ours)) => {
                format!("   all told within {theirs:.1?} and {ours:.1?}")
            }
            _ => String::new(),
        };
        let (zookeeper, tinykeeper) = (grouped(rate(theirs)), grouped(rate(ours)));
        say(&format!(
            "{row:<26}{fsync:<8}{zookeeper:>13}{tinykeeper:>14}{ratio:>8.2}{in_memory:>14}{told}"
        ));
        self.expect(ratio >= ROW_BAR, || {
            format!(
                "{row}, fsync {fsync}: {ratio:.2} of ZooKeeper's rate, at least {ROW_BAR} expected"
            )
        });
        let told_ms = [told_within(theirs), told_within(ours)]
            .map(|time| time.map(|time| time.as_secs_f64() * 1e3));
        self.write(&json!({
            "row": row.to_string(),
            "fsync": keeping == Keeping::Synced,
            "zookeeper": rates(theirs),
            "tinykeeper": rates(ours),
            "ratio": ratio,
            "told_within_ms": told_ms,
        }))
    }

    pub(super) fn memory(&mut self, theirs: Resident, ours: Resident) -> Result<(), BoxError> {
        say(&format!("\n{:<34}{:>13}{:>14}", "megabytes resident", "ZooKeeper", "tinykeeper"));
        say(&format!("{:<34}{:>13.1}{:>14.1}", "just started", theirs.empty, ours.empty));
        let nodes = format!("with {NODES} nodes");
        say(&format!("{nodes:<34}{:>13.1}{:>14.1}", theirs.full, ours.full));
        self.expect(ours.full < MEMORY_BAR, || {
            format!("{NODES} nodes: {:.1} MB resident, less than {MEMORY_BAR} expected", ours.full)
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
        say(&format!(
            "\n{:<26}{:>21}{:>14}{:>8}{:>28}",
            "creates in a second",
            "zookeeper-client",
            "our client",
            "ratio",
            "processor time for each"
        ));
        let mut best = (Vec::new(), Vec::new());
        for row in rows {
            let rates = |goes: &[Go]| rates(goes.iter().map(|go| go.per_second));
            let busy = |goes: &[Go]| typical(goes.iter().map(|go| go.busy));
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
        client_line("the best of each", &theirs, &ours, "");
        let ratio = ratio(&ours, &theirs);
        self.expect(ratio >= CLIENT_BAR, || {
            format!(
                "our client: {ratio:.2} of zookeeper-client's best rate, at least {CLIENT_BAR} expected"
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

    /// Names the bars that were missed; `true` when there are none.
    pub(super) fn end(self) -> bool {
        for missed in &self.missed {
            say(&format!("MISSED  {missed}"));
        }
        self.missed.is_empty()
    }

    fn expect(&mut self, met: bool, otherwise: impl FnOnce() -> String) {
        if !met {
            self.missed.push(otherwise());
        }
    }

    fn write(&mut self, line: &serde_json::Value) -> Result<(), BoxError> {
        if let Some(json) = &mut self.json {
            writeln!(json, "{line}")?;
        }
        Ok(())
    }
}

fn told_within(samples: &[Sample]) -> Option<Duration> {
    let times = samples.iter().filter_map(|sample| sample.told_within);
    Some(typical(times)).filter(|time| !time.is_zero())
}

fn typical(times: impl Iterator<Item = Duration>) -> Duration {
    Duration::from_secs_f64(median(times.map(|time| time.as_secs_f64())))
}

fn client_line(name: &str, theirs: &[f64], ours: &[f64], busy: &str) {
    let ratio = ratio(ours, theirs);
    let [theirs, ours] = [theirs, ours].map(|rates| grouped(median(rates.iter().copied())));
    say(&format!("{name:<26}{theirs:>21}{ours:>14}{ratio:>8.2}{busy:>28}"));
}

/// The larger of both in each round.
fn larger(some: Vec<f64>, others: &[f64]) -> Vec<f64> {
    if some.is_empty() {
        return others.to_vec();
    }
    some.into_iter().zip(others).map(|(one, other)| one.max(*other)).collect()
}

/// Of each round, without the digits that mean nothing.
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
