//! The results: printed while the benchmark runs, and written as a section of a Markdown page at its end. Below each row stands the one of the section
//! that is replaced.

use std::fmt::Write as _;

use super::worker::Side;
use crate::print_line;

/// The page so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    targets: Vec<Target>,
    /// The section as it was written before.
    former: String,
    /// The head of the present table, and how many of its columns say what is measured.
    head: (String, usize),
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
    pub(super) fn replacing(former: &str) -> Self {
        Self { former: former.to_owned(), ..Self::default() }
    }

    /// Adds a heading, a paragraph or the head of a table.
    pub(super) fn block(&mut self, text: &str) {
        self.line(&format!("\n{text}"));
    }

    /// Begins a table. The first `labels` columns say what is measured.
    pub(super) fn table(&mut self, labels: usize, columns: &[&str]) {
        self.head = (format!("| {} |", columns.join(" | ")), labels);
        self.block(&self.head.0.clone());
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    /// Adds a row, and below it the same one as it was before.
    pub(super) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
        let former = former_row(&self.former, &self.head.0, &cells[..self.head.1]);
        if let Some(mut former) = former {
            former[self.head.1 - 1].push_str(BEFORE);
            self.line(&format!("| {} |", former.join(" | ")));
        }
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
        self.block("### Targets\n\nA missed required target fails the benchmark. The others depend on the machine as much as on the code, or are not reached yet.");
        self.table(1, &["target", "measured", "", "required"]);
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

/// Marks the last label of a former row.
const BEFORE: &str = " (before)";

/// The row with these labels in the table with this head.
fn former_row(section: &str, head: &str, labels: &[String]) -> Option<Vec<String>> {
    let table = section.lines().skip_while(|line| *line != head).skip(2);
    let mut rows = table.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let row = rows.find_map(|row| {
        let row: Vec<String> = row.split(" | ").map(ToOwned::to_owned).collect();
        row.starts_with(labels).then_some(row)
    })?;
    (row.len() > labels.len()).then_some(row)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_followed_by_the_one_of_the_last_run() {
        let write = |former: &str, time: &str| {
            let mut page = Page::replacing(former);
            page.table(2, &["jobs", "", "other"]);
            page.row(&["100", "Rust", "of another table"].map(ToOwned::to_owned));
            page.table(2, &["jobs", "", "time"]);
            page.row(&["100", "Java", "7 s"].map(ToOwned::to_owned));
            page.row(&["100", "Rust", time].map(ToOwned::to_owned));
            page.text
        };

        let first = write("", "3 s");
        let second = write(&first, "2 s");
        let third = write(&second, "1 s");

        assert!(!first.contains("before"));
        assert!(second.contains("| 100 | Rust | 2 s |\n| 100 | Rust (before) | 3 s |"), "{second}");
        assert!(third.contains("| 100 | Rust | 1 s |\n| 100 | Rust (before) | 2 s |"), "{third}");
    }
}
