//! What is shown while it runs, and the page that is written in the end.

use std::fmt::Write as _;

use super::worker::Side;
use crate::say;

/// The page as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    bars: Vec<Bar>,
}

/// What was aimed at.
#[derive(Debug)]
struct Bar {
    what: String,
    is_met: bool,
    /// Whether missing it is a failure.
    is_held: bool,
    measured: String,
}

impl Page {
    /// Something that stands by itself: a heading, a paragraph, the head of a table.
    pub(super) fn block(&mut self, text: &str) {
        self.line(&format!("\n{text}"));
    }

    /// A table begins. The first columns are words or what was asked for.
    pub(super) fn table(&mut self, columns: &[&str]) {
        self.block(&format!("| {} |", columns.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Notes what is held: a run that misses it fails.
    pub(super) fn held(&mut self, what: &str, measured: &str, is_met: bool) {
        let (what, measured) = (what.to_owned(), measured.to_owned());
        self.bars.push(Bar { what, is_met, is_held: true, measured });
    }

    /// Notes what is aimed at: a run that misses it says so.
    pub(super) fn aimed(&mut self, what: &str, measured: &str, is_met: bool) {
        let (what, measured) = (what.to_owned(), measured.to_owned());
        self.bars.push(Bar { what, is_met, is_held: false, measured });
    }

    /// The page, with all that was aimed at, and whether everything was held that is.
    pub(super) fn end(mut self) -> (String, bool) {
        self.block("## What was aimed at\n\nWhat is held fails the run when it is missed. What is not held is the machine's as much as ours, or not reached yet.");
        self.table(&["aimed at", "measured", "", "held"]);
        let bars = std::mem::take(&mut self.bars);
        let is_held = bars.iter().all(|bar| bar.is_met || !bar.is_held);
        for Bar { what, is_met, is_held, measured } in bars {
            let word = if is_met { "met" } else { "**missed**" };
            let held = if is_held { "yes" } else { "no" };
            self.row(&[what, measured, word.into(), held.into()]);
        }
        (self.text, is_held)
    }

    fn line(&mut self, line: &str) {
        say(line);
        // A string takes everything.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Both in the order in which they are shown, whoever was measured first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Both<T> {
    pub(super) java: T,
    pub(super) ours: T,
}

impl<T> Both<T> {
    /// From what each side came to, in whatever order.
    pub(super) fn of(measured: Vec<(Side, T)>) -> Option<Self> {
        let (mut java, mut ours) = (None, None);
        for (side, value) in measured {
            match side {
                Side::Java => java = Some(value),
                Side::Ours => ours = Some(value),
            }
        }
        Some(Self { java: java?, ours: ours? })
    }

    pub(super) fn each(&self) -> [(Side, &T); 2] {
        [(Side::Java, &self.java), (Side::Ours, &self.ours)]
    }
}

/// A number with as many digits as tell something.
pub(super) fn short(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// How long, from milliseconds.
pub(super) fn long(ms: f64) -> String {
    if ms >= 10_000.0 {
        format!("{:.1} s", ms / 1e3)
    } else if ms >= 1_000.0 {
        format!("{:.2} s", ms / 1e3)
    } else {
        format!("{ms:.0} ms")
    }
}
