//! What is printed on standard output: data, as a table for people, as JSON or YAML for programs.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use clap::ValueEnum;
use serde_json::Value;

use crate::error::{Code, Error};

/// In which form data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns, for people
    Table,
    /// For programs
    Json,
    /// For programs, and easier to read
    Yaml,
}

/// Rows under a head, in columns.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No rows yet.
    pub(crate) fn new(head: impl Into<Vec<&'static str>>) -> Self {
        Self { head: head.into(), rows: Vec::new() }
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    fn text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        let head: Vec<String> = self.head.iter().map(ToString::to_string).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                let _ = write!(line, "{cell:width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Prints the same data in the form that was asked for.
pub(crate) fn print(format: Format, table: &Table, value: &Value) -> Result<(), Error> {
    let text = match format {
        Format::Table => table.text(),
        Format::Json => format!("{value:#}\n"),
        Format::Yaml => yaml(value),
    };
    write(text.as_bytes())
}

/// Writes to standard output. Whoever stops reading has read enough: that is no error.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Error::new(Code::Internal, format!("cannot write to standard output: {error}")))
        }
        Ok(()) => Ok(()),
    }
}

/// Says something that is not data, on standard error.
pub(crate) fn say(text: &str) {
    // Nobody is left to be told that this did not work.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn yaml(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

/// A value on lines of its own. Nothing in it is folded, and text is quoted unless it is beyond doubt that it is text.
fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(&mut inner, item, depth + 1);
                // The first line of what is inside begins beside the dash.
                let _ = write!(text, "{indent}- {}", inner.trim_start());
            }
        }
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let _ = write!(text, "{indent}{}:", scalar(&Value::String(key.clone())));
                if matches!(value, Value::Array(items) if !items.is_empty())
                    || matches!(value, Value::Object(entries) if !entries.is_empty())
                {
                    text.push('\n');
                    block(text, value, depth + 1);
                } else {
                    let _ = writeln!(text, " {}", scalar(value));
                }
            }
        }
        value => {
            let _ = writeln!(text, "{indent}{}", scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        // JSON's quoting is YAML's.
        value => value.to_string(),
    }
}

/// Letters first, nothing that means something to YAML, and no word of YAML 1.1.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || "_-./".contains(each))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_says_what_json_says() {
        let value = json!([
            { "jobName": "settle", "cron": "0/5 * * * * ?", "failover": false, "props": {} },
            { "jobName": "no", "warnings": ["a: b", "2026-11-15T06:36:07Z"] }
        ]);

        assert_eq!(
            yaml(&value),
            "- cron: \"0/5 * * * * ?\"\n  failover: false\n  jobName: settle\n  props: {}\n\
             - jobName: \"no\"\n  warnings:\n    - \"a: b\"\n    - \"2026-11-15T06:36:07Z\"\n"
        );
        assert_eq!(yaml(&json!([])), "[]\n");
    }

    #[test]
    fn a_table_is_as_wide_as_its_widest_cells_and_nothing_without_rows() {
        let mut table = Table::new(["SHARD", "INSTANCE"]);
        assert_eq!(table.text(), "");

        table.row(["0".to_owned(), "a".to_owned()]);
        table.row(["1000000".to_owned(), "b".to_owned()]);

        assert_eq!(table.text(), "SHARD    INSTANCE\n0        a\n1000000  b\n");
    }
}
