//! Logs on standard error, as text or JSON.
//!
//! Much of what is logged comes from outside: output of scripts, answers of servers, what is stored in a registry. In the log it can neither begin a
//! line, nor pass for a field, nor control a terminal: text values are quoted, and characters that a terminal obeys are escaped. Both happens here and
//! not only where something is logged, so that it holds for every field, those of other libraries included.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use clap::ValueEnum;
use elasticjob::problem::is_unprintable;
use tracing::field::{Field, Visit};
use tracing_subscriber::{
    EnvFilter, Layer,
    field::RecordFields,
    filter::LevelFilter,
    fmt::{FormatFields, format::Writer, layer},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::output::escape_json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// Starts logging, filtered by `RUST_LOG` or else from `level` up. Logs of job code also go to the history.
pub(crate) fn start(format: LogFormat, no_color: bool, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let logs = match format {
        LogFormat::Text => {
            let plain = no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
            let logs = layer().with_writer(io::stderr).fmt_fields(QuotedFields);
            logs.with_ansi(!plain && io::stderr().is_terminal()).boxed()
        }
        LogFormat::Json => {
            let logs = layer().with_writer(|| EscapedJson(io::stderr()));
            logs.json().flatten_event(true).boxed()
        }
    };
    let history = elasticjob::history::layer().with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(logs.with_filter(filter)).with(history).init();
}

/// Writes the fields of an event as `name=value`, with values in quotes unless they are a single plain word.
struct QuotedFields;

impl<'writer> FormatFields<'writer> for QuotedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = QuotedVisitor { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct QuotedVisitor<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl QuotedVisitor<'_> {
    fn write(&mut self, field: &Field, value: &str) -> fmt::Result {
        let name = field.name();
        // Metadata of a record of the crate `log`; it is not part of the message.
        if name.starts_with("log.") {
            return Ok(());
        }
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        if name == "message" {
            return self.writer.write_str(&escape(value));
        }
        let name = name.strip_prefix("r#").unwrap_or(name);
        if self.writer.has_ansi_escapes() {
            write!(self.writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
        } else {
            write!(self.writer, "{name}={value}")
        }
    }

    fn record(&mut self, field: &Field, value: &str) {
        if self.result.is_ok() {
            self.result = self.write(field, value);
        }
    }
}

impl Visit for QuotedVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record(field, value);
        } else {
            self.record(field, &format!("{value:?}"));
        }
    }

    /// Everything but strings, also what is logged by its `Display`.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" || is_plain_word(&text) {
            self.record(field, &text);
        } else {
            self.record(field, &format!("{text:?}"));
        }
    }
}

fn is_plain_word(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|each: char| {
            each.is_whitespace() || is_unprintable(each) || matches!(each, '"' | '=' | '\\')
        })
}

/// A message in one line. It is a constant in this program, but not in every library.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for each in text.chars() {
        if is_unprintable(each) {
            escaped.extend(each.escape_default());
        } else {
            escaped.push(each);
        }
    }
    escaped
}

/// Escapes what JSON itself would allow in a text: the characters that a terminal obeys beyond ASCII.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    /// Takes whole lines: the layer writes each event at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(escape_json(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Buffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn log_hostile_fields() {
        let hostile = "\u{1b}[2J\u{9b}1m\n0 INFO forged job=x";
        tracing::info!(
            text = hostile,
            displayed = %hostile,
            debugged = ?hostile,
            word = %"settle",
            number = 7,
            "shard ended"
        );
        tracing::info!("{hostile}");
    }

    #[test]
    fn text_log_is_one_line_per_event_with_quoted_values() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let logs = layer().with_writer(move || writer.clone()).fmt_fields(QuotedFields);
        let logs = logs.with_ansi(false).without_time().with_target(false);
        let subscriber = tracing_subscriber::registry().with(logs);

        tracing::subscriber::with_default(subscriber, log_hostile_fields);

        let quoted = r#""\u{1b}[2J\u{9b}1m\n0 INFO forged job=x""#;
        let debugged = format!("{quoted:?}");
        assert_eq!(
            buffer.text(),
            format!(
                " INFO shard ended text={quoted} displayed={quoted} debugged={debugged} word=settle number=7\n \
                 INFO \\u{{1b}}[2J\\u{{9b}}1m\\n0 INFO forged job=x\n"
            )
        );
    }

    #[test]
    fn json_log_has_nothing_that_a_terminal_obeys() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let logs = layer().with_writer(move || EscapedJson(writer.clone()));
        let subscriber = tracing_subscriber::registry().with(logs.json().flatten_event(true));

        tracing::subscriber::with_default(subscriber, log_hostile_fields);

        let text = buffer.text();
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(|each| is_unprintable(each) && each != '\n'), "{text:?}");
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(line["displayed"], "\u{1b}[2J\u{9b}1m\n0 INFO forged job=x");
    }
}
