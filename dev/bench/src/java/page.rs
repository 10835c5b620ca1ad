//! The results: printed while the benchmark runs, and written as a Markdown page at its end.

use std::fmt::Write as _;

use super::worker::Side;
use crate::print_line;

/// The page so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    description: String,
    is_met: bool,
    /// Whether the benchmark fails if the target is missed.
    is_required: bool,
    measured: String,
}

impl Page {
    /// Adds a heading, a paragraph or the head of a table.
    pub(super) fn block(&mut self, text: &str) {
        self.line(&format!("\n{text}"));
    }

    /// Begins a table.
    pub(super) fn table(&mut self, columns: &[&str]) {
        self.block(&format!("| {} |", columns.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Records a target that fails the benchmark if it is missed.
    pub(super) fn required(&mut self, description: &str, measured: &str, is_met: bool) {
        let (description, measured) = (description.to_owned(), measured.to_owned());
        self.targets.push(Target { description, is_met, is_required: true, measured });
    }

    /// Records a target that is only reported.
    pub(super) fn goal(&mut self, description: &str, measured: &str, is_met: bool) {
        let (description, measured) = (description.to_owned(), measured.to_owned());
        self.targets.push(Target { description, is_met, is_required: false, measured });
    }

    /// Returns the page with the table of targets, and whether all required targets were met.
    pub(super) fn end(mut self) -> (String, bool) {
        self.block("## Targets\n\nA missed required target fails the benchmark. The others depend on the machine as much as on the code, or are not reached yet.");
        self.table(&["target", "measured", "", "required"]);
        let targets = std::mem::take(&mut self.targets);
        let is_passed = targets.iter().all(|target| target.is_met || !target.is_required);
        for Target { description, is_met, is_required, measured } in targets {
            let result = if is_met { "met" } else { "**missed**" };
            let required = if is_required { "yes" } else { "no" };
            self.row(&[description, measured, result.into(), required.into()]);
        }
        (self.text, is_passed)
    }

    fn line(&mut self, line: &str) {
        print_line(line);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// The results of both sides, in the order in which they are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison<T> {
    pub(super) java: T,
    pub(super) rust: T,
}

impl<T> Comparison<T> {
    /// From the results of the sides in any order; `None` if one is missing.
    pub(super) fn of(measured: Vec<(Side, T)>) -> Option<Self> {
        let (mut java, mut rust) = (None, None);
        for (side, value) in measured {
            match side {
                Side::Java => java = Some(value),
                Side::Rust => rust = Some(value),
            }
        }
        Some(Self { java: java?, rust: rust? })
    }

    pub(super) fn each(&self) -> [(Side, &T); 2] {
        [(Side::Java, &self.java), (Side::Rust, &self.rust)]
    }
}

/// Formats a number with about three significant digits.
pub(super) fn format_number(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Formats a duration given in milliseconds.
pub(super) fn format_ms(ms: f64) -> String {
    if ms >= 10_000.0 {
        format!("{:.1} s", ms / 1e3)
    } else if ms >= 1_000.0 {
        format!("{:.2} s", ms / 1e3)
    } else {
        format!("{ms:.0} ms")
    }
}
