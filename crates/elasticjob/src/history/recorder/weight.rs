//! How much room an event takes: in memory, in a statement, in a file.

use crate::history::Event;

/// What every event takes: names, ids and times, with the words around them.
const PLAIN: usize = 1024;
/// What every line takes beside its text: when it was printed, on which stream, and what stands around that.
const LINE: usize = 64;

/// How many events there may be, and how many bytes they may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// About how many bytes an event takes where it takes most: as JSON in JSON, which is how lines are stored.
pub(super) fn weight(event: &Event) -> usize {
    PLAIN
        + match event {
            Event::Printed(printed) => {
                printed.lines.iter().map(|line| LINE + escaped(&line.text)).sum()
            }
            Event::Ended(ended) => ended.ending.message().map_or(0, escaped),
            Event::Status(status) => escaped(&status.message),
            _ => 0,
        }
}

/// How long a text is as JSON in JSON.
fn escaped(text: &str) -> usize {
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
    fn lines_weigh_what_they_are_when_they_are_stored() {
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

            assert!(weight >= stored, "{text:?} weighs {weight} and takes {stored}");
            assert!(weight < stored * 3, "{text:?} weighs {weight} and takes {stored}");
        }
    }
}
