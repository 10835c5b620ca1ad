//! The results of a benchmark: printed while it runs, with the former numbers beside them, and written as one section of a page.
//!
//! A section is what lies between two comments of the page, `<!-- begin NAME -->` and `<!-- end NAME -->`. The former numbers are those of the section
//! that is replaced.

use std::{
    fmt::{self, Write as _},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{BoxError, machine, print_line};

/// The results so far.
#[derive(Debug)]
pub(crate) struct Report {
    name: &'static str,
    page: Option<PathBuf>,
    /// The section as it was written before.
    former: String,
    text: String,
    missed: Vec<String>,
}

/// What a measured value should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// The value depends on the machine, so it is only reported. The benchmark does not fail because of it.
    Goal(f64),
    None,
}

/// The unit of a value: how it is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Milliseconds,
    Microseconds,
    Megabytes,
    Bytes,
    Count,
    Times,
    Percent,
}

impl Unit {
    pub(crate) fn format(self, value: f64) -> String {
        let number = match value.abs() {
            size if size >= 100.0 => format!("{value:.0}"),
            size if size >= 10.0 => format!("{value:.1}"),
            size if size >= 0.1 => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        };
        match self {
            Unit::Milliseconds if value >= 1_000.0 => format!("{:.2} s", value / 1e3),
            Unit::Milliseconds => format!("{value:.0} ms"),
            Unit::Microseconds => format!("{value:.0} µs"),
            Unit::Megabytes => format!("{number} MB"),
            Unit::Bytes => format!("{number} B"),
            Unit::Count => number,
            Unit::Times => format!("{number} times"),
            Unit::Percent => format!("{value:.0} %"),
        }
    }
}

impl Report {
    /// Begins a section with a heading and what it measures.
    pub(crate) fn begin(
        name: &'static str,
        page: Option<&Path>,
        introduction: &str,
    ) -> Result<Self, BoxError> {
        let former = former_section(page, name)?;
        let mut report = Self {
            name,
            page: page.map(Path::to_owned),
            former,
            text: String::new(),
            missed: vec![],
        };
        report.block(introduction);
        report.block(&format!("Measured by `bench {name}` on {}.", machine::line()));
        Ok(report)
    }

    /// Adds a paragraph.
    pub(crate) fn block(&mut self, text: &str) {
        self.line(&format!("{text}\n"));
    }

    /// Begins a table of values.
    pub(crate) fn values(&mut self) {
        self.table(&["", "measured", "before", "target"]);
    }

    /// Adds a value to a table of values.
    pub(crate) fn value(&mut self, label: &str, (value, unit): (f64, Unit), target: Target) {
        let measured = unit.format(value);
        let (is_met, is_required, expected) = match target {
            Target::AtMost(most) => (value <= most, true, format!("≤ {}", unit.format(most))),
            Target::AtLeast(least) => (value >= least, true, format!("≥ {}", unit.format(least))),
            Target::Goal(most) => (value <= most, false, format!("≤ {}", unit.format(most))),
            Target::None => (true, false, String::new()),
        };
        let before = self.former(label).unwrap_or_else(|| "–".to_owned());
        let mark = if is_met { "" } else { " **missed**" };
        self.row(&[label, &measured, &before, &format!("{expected}{mark}")]);
        if is_required && !is_met {
            self.missed.push(format!("{label}: {measured}, {expected} expected"));
        }
    }

    /// Begins another table.
    pub(crate) fn table(&mut self, columns: &[&str]) {
        self.line(&format!("| {} |", columns.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    pub(crate) fn row(&mut self, cells: &[impl fmt::Display]) {
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Ends a table.
    pub(crate) fn end_table(&mut self) {
        self.line("");
    }

    /// Checks something that no table shows.
    pub(crate) fn require(&mut self, is_met: bool, problem: &str) {
        if !is_met {
            self.missed.push(problem.to_owned());
        }
    }

    /// Prints what was missed and writes the section. Returns whether every required target was met.
    pub(crate) fn end(self) -> Result<bool, BoxError> {
        for missed in &self.missed {
            print_line(&format!("MISSED  {missed}"));
        }
        if let Some(page) = &self.page {
            replace_section(page, self.name, &self.text)?;
            print_line(&format!("wrote the section {} of {}", self.name, page.display()));
        }
        Ok(self.missed.is_empty())
    }

    fn former(&self, label: &str) -> Option<String> {
        let cells =
            self.former.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let mut rows = cells.map(|row| row.split(" | "));
        rows.find_map(|mut row| (row.next()? == label).then(|| row.next())?).map(ToOwned::to_owned)
    }

    fn line(&mut self, line: &str) {
        print_line(line);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Writes one section of a page and leaves the others as they are. A new section goes to the end.
pub(crate) fn replace_section(page: &Path, name: &str, text: &str) -> Result<(), BoxError> {
    let before = read(page)?;
    let section_text = format!("{}\n{}\n{}", begin_of(name), text.trim(), end_of(name));
    let after = match section(&before, name) {
        Some(old) => {
            let old = format!("{}{old}{}", begin_of(name), end_of(name));
            before.replacen(&old, &section_text, 1)
        }
        None => format!("{}\n\n{section_text}\n", before.trim_end()),
    };
    fs::write(page, after.trim_start())?;
    Ok(())
}

/// A section as it was written before; empty if there is none.
pub(crate) fn former_section(page: Option<&Path>, name: &str) -> Result<String, BoxError> {
    let page = page.map(read).transpose()?.unwrap_or_default();
    Ok(section(&page, name).unwrap_or_default().to_owned())
}

/// A section without the comments around it.
fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&begin_of(name))?;
    rest.split_once(&end_of(name)).map(|(section, _)| section)
}

fn begin_of(name: &str) -> String {
    format!("<!-- begin {name} -->")
}

fn end_of(name: &str) -> String {
    format!("<!-- end {name} -->")
}

fn read(page: &Path) -> Result<String, BoxError> {
    match fs::read_to_string(page) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => Ok(text.map_err(|error| format!("cannot read {}: {error}", page.display()))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_report_shows_the_numbers_of_the_first_and_leaves_other_sections() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        fs::write(&page, "# Title\n\n<!-- begin other -->\nkept\n<!-- end other -->\n").unwrap();
        let write = |value: f64| {
            let mut report = Report::begin("burst", Some(&page), "## Burst").unwrap();
            report.values();
            report.value("delay", (value, Unit::Milliseconds), Target::AtMost(100.0));
            report.end().unwrap()
        };

        assert!(write(90.0));
        assert!(!write(1_500.0));

        let text = fs::read_to_string(&page).unwrap();
        assert!(text.starts_with("# Title\n\n<!-- begin other -->\nkept\n<!-- end other -->\n"));
        assert!(text.contains("| delay | 1.50 s | 90 ms | ≤ 100 ms **missed** |"), "{text}");
        assert_eq!(text.matches("## Burst").count(), 1);
    }
}
