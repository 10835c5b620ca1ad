//! Prints data to standard output, as tables, JSON or YAML, and messages to standard error.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

use clap::ValueEnum;
use elasticjob::problem::is_unprintable;
use serde_json::Value;

use crate::error::{Code, Error};

/// Output format of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Assumed width of the terminal, at which sentences are wrapped.
const WIDTH: usize = 100;
/// A last column that begins further right than this is not wrapped: its lines would be too narrow.
const MAX_WRAP_COLUMN: usize = 70;

/// A table with aligned columns. The last column may hold sentences, which are wrapped.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl Into<Vec<&'static str>>) -> Self {
        Self { head: head.into(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into().iter().map(|cell| replace_control_chars(cell)).collect());
    }

    fn text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        widths.pop();
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
            let start = line.chars().count();
            for (number, part) in wrap(row.last().map_or("", |last| last), start).enumerate() {
                if number > 0 {
                    line = " ".repeat(start);
                }
                line.push_str(&part);
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// Stored text may contain anything, including control characters that move the terminal's cursor or break a row.
pub(crate) fn replace_control_chars(text: &str) -> String {
    text.chars().map(|each| if is_unprintable(each) { ' ' } else { each }).collect()
}

/// JSON in which the characters that a terminal obeys are escaped. JSON itself escapes only those below 32; the others can only be within its strings.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |each: char| is_unprintable(each) && each != '\n';
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for each in json.chars() {
        if is_escaped(each) {
            // All of them have four digits.
            let _ = write!(escaped, "\\u{:04x}", u32::from(each));
        } else {
            escaped.push(each);
        }
    }
    Cow::Owned(escaped)
}

/// Wraps a text that begins in column `start`; words are never split.
fn wrap(text: &str, start: usize) -> impl Iterator<Item = String> {
    let room = if start > MAX_WRAP_COLUMN { usize::MAX } else { WIDTH - start };
    let mut lines = vec![String::new()];
    if text.chars().count() <= room {
        lines = vec![text.to_owned()];
    } else {
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines.into_iter()
}

/// Prints data in the chosen format.
pub(crate) fn print(format: Format, table: &Table, value: &Value) -> Result<(), Error> {
    print_all(format, std::slice::from_ref(table), value)
}

/// The same with several tables, one below the other; empty ones are omitted.
pub(crate) fn print_all(format: Format, tables: &[Table], value: &Value) -> Result<(), Error> {
    let text = match format {
        Format::Table => {
            let texts = tables.iter().map(Table::text).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join("\n")
        }
        Format::Json => escape_json(&format!("{value:#}\n")).into_owned(),
        // Only in quotes, where YAML reads the same escapes.
        Format::Yaml => escape_json(&yaml(value)).into_owned(),
    };
    write(text.as_bytes())
}

/// Prints the result of a change: a sentence, or data for JSON and YAML.
pub(crate) fn done(format: Format, sentence: &str, value: &Value) -> Result<(), Error> {
    if format == Format::Table {
        print_message(sentence);
        return Ok(());
    }
    print_all(format, &[], value)
}

/// Writes to standard output. A closed pipe is not an error.
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

/// Prints a message that is not data to standard error.
pub(crate) fn print_message(text: &str) {
    // If standard error is closed there is no one left to report to.
    let _ = writeln!(io::stderr().lock(), "{}", replace_control_chars(text));
}

fn yaml(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

/// Writes a value as a YAML block. Text is never folded, and is quoted unless it can only be read as text.
fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(&mut inner, item, depth + 1);
                // The first line of an item is on the line of its dash.
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
        // JSON strings are valid YAML.
        value => value.to_string(),
    }
}

/// Whether YAML reads the text as a string without quotes: starts with a letter, no special characters, not a keyword of YAML 1.1.
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
    fn yaml_has_the_same_data_as_json() {
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
    fn columns_fit_their_widest_cell_and_empty_tables_print_nothing() {
        let mut table = Table::new(["SHARD", "INSTANCE"]);
        assert_eq!(table.text(), "");

        table.row(["0".to_owned(), "a".to_owned()]);
        table.row(["1000000".to_owned(), "b".to_owned()]);

        assert_eq!(table.text(), "SHARD    INSTANCE\n0        a\n1000000  b\n");
    }

    #[test]
    fn json_and_yaml_escape_what_a_terminal_obeys() {
        let value = json!({ "te\u{9b}xt": "\u{1b}[2J\u{9b}\u{7f}\u{202e}作业" });

        let text = escape_json(&format!("{value:#}")).into_owned();

        assert!(!text.contains(|each| is_unprintable(each) && each != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(
            escape_json(&yaml(&value)),
            "\"te\\u009bxt\": \"\\u001b[2J\\u009b\\u007f\\u202e作业\"\n"
        );
    }

    #[test]
    fn control_characters_are_replaced() {
        let mut table = Table::new(["PARAMETER"]);
        table.row(["a\nb\x1b[2Jc".to_owned()]);

        assert_eq!(table.text(), "PARAMETER\na b [2Jc\n");
    }

    #[test]
    fn long_sentences_are_wrapped_within_their_column() {
        let mut table = Table::new(["SHARD", "MESSAGE"]);
        let sentence = ["word"; 40].join(" ");
        table.row(["0".to_owned(), sentence.clone()]);

        let text = table.text();

        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().skip(2).all(|line| line.starts_with("       word")), "{text}");
        assert_eq!(text.matches("word").count(), 40);
    }
}
