//! Splits the output of a process into lines, within limits.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Longer lines are truncated to this many bytes.
const MAX_LINE: usize = 16 * 1024;

/// After this many bytes in all, further output is read and discarded.
const MAX_TOTAL: usize = 4 * 1024 * 1024;

/// Reads to the end and calls `on_line` with every line, without its line end. Invalid UTF-8 becomes `�`. Truncated output is marked as such.
pub(super) async fn read_lines(stream: impl AsyncRead + Unpin, mut on_line: impl FnMut(&str)) {
    let mut reader = BufReader::new(stream);
    let mut line = Line::default();
    let mut total = 0;
    let mut on_line = |text: &str| {
        if total > MAX_TOTAL {
            return;
        }
        total += text.len() + 1;
        if total > MAX_TOTAL { on_line("… (further output was not kept)") } else { on_line(text) }
    };
    // A read error counts as the end of the pipe.
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        line.push(&chunk[..end.unwrap_or(chunk.len())]);
        let read = end.map_or(chunk.len(), |end| end + 1);
        reader.consume(read);
        if end.is_some() {
            on_line(&line.take());
        }
    }
    if !line.bytes.is_empty() {
        on_line(&line.take());
    }
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(MAX_LINE - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.truncated |= fits < bytes.len();
    }

    fn take(&mut self) -> String {
        let line = std::mem::take(self);
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        let text = String::from_utf8_lossy(bytes);
        if line.truncated { format!("{text}…") } else { text.into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        read_lines(bytes, |line| lines.push(line.to_owned())).await;
        lines
    }

    #[tokio::test]
    async fn lines_are_passed_on_as_printed() {
        assert_eq!(lines(b"one\r\n\ntwo\nthree").await, ["one", "", "two", "three"]);
        assert_eq!(lines("报表 \u{fffd}\n".as_bytes()).await, ["报表 \u{fffd}"]);
        assert_eq!(lines(b"caf\xe9\n").await, ["caf\u{fffd}"]);
        assert!(lines(b"").await.is_empty());
    }

    #[tokio::test]
    async fn long_lines_and_long_output_are_truncated() {
        let long = lines(&b"x".repeat(3 * MAX_LINE)).await;
        let flood = lines(&b"0123456789abcde\n".repeat(MAX_TOTAL / 8)).await;

        assert_eq!((long.len(), long[0].chars().count()), (1, MAX_LINE + 1));
        assert!(long[0].ends_with('…'));
        assert_eq!(flood.len(), MAX_TOTAL / 16 + 1);
        assert!(flood.last().unwrap().contains("not kept"));
    }
}
