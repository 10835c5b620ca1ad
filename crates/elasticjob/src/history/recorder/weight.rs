//! Estimates the size of events: in memory, in a statement, in a file.

use crate::history::Event;

/// Size of every event without its texts: names, ids and times.
const EVENT: usize = 1024;
/// Size of every line without its text: time, stream and separators.
const LINE: usize = 64;

/// A limit on events and their bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacity {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// Estimated size of an event in its largest form: JSON within JSON, which is how lines are stored.
pub(super) fn weight(event: &Event) -> usize {
    EVENT
        + match event {
            Event::Printed(printed) => {
                printed.lines.iter().map(|line| LINE + escaped_length(&line.text)).sum()
            }
            Event::Ended(ended) => ended.message.as_deref().map_or(0, escaped_length),
            Event::Status(status) => escaped_length(&status.message),
            _ => 0,
        }
}

/// Length of a text as JSON within JSON.
fn escaped_length(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => 4,
        b'\n' | b'\r' | b'\t' => 3,
        0..0x20 => 7,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::recorder::fixture::printed;

    #[test]
    fn weight_is_close_to_stored_size() {
        let many = |text: &str| {
            let Event::Printed(mut printed) = printed(1, 0, text) else { unreachable!() };
            printed.lines = vec![printed.lines[0].clone(); 1000];
            Event::Printed(printed)
        };
        let stored = |event: &Event| {
            let Event::Printed(printed) = event else { unreachable!() };
            let lines: Vec<(i64, &str, &str)> = printed
                .lines
                .iter()
                .map(|line| (line.at.as_millisecond(), line.stream, &*line.text))
                .collect();
            let content = serde_json::to_string(&lines).unwrap();
            serde_json::to_string(&content).unwrap().len()
        };

        for text in ["", "x", "\"quoted\" and \\ more", "\u{1b}[31mred\u{1b}[0m\ttab", "报报"] {
            let event = many(text);
            let (weight, stored) = (weight(&event), stored(&event));

            assert!(weight >= stored, "{text:?}: weight {weight}, stored size {stored}");
            assert!(weight < stored * 3, "{text:?}: weight {weight}, stored size {stored}");
        }
    }
}
