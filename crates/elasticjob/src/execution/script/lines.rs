//! What a process prints, cut into lines and within limits.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// A line is cut after this many bytes.
const LONGEST: usize = 16 * 1024;

/// After this many bytes nothing more is told, only read away.
const MOST: usize = 4 * 1024 * 1024;

/// Reads to the end and tells every line, without its end. Bytes that are no text become `�`. What is too long is cut, and says so.
pub(super) async fn read_lines(stream: impl AsyncRead + Unpin, mut tell: impl FnMut(&str)) {
    let mut reader = BufReader::new(stream);
    let mut line = Line::default();
    let mut told = 0;
    let mut tell = |text: &str| {
        if told > MOST {
            return;
        }
        told += text.len() + 1;
        if told > MOST { tell("… (what follows was not kept)") } else { tell(text) }
    };
    // A pipe that cannot be read any more has ended.
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        line.push(&chunk[..end.unwrap_or(chunk.len())]);
        let read = end.map_or(chunk.len(), |end| end + 1);
        reader.consume(read);
        if end.is_some() {
            tell(&line.take());
        }
    }
    if !line.bytes.is_empty() {
        tell(&line.take());
    }
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(LONGEST - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.cut |= fits < bytes.len();
    }

    fn take(&mut self) -> String {
        let line = std::mem::take(self);
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        let text = String::from_utf8_lossy(bytes);
        if line.cut { format!("{text}…") } else { text.into_owned() }
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
    async fn lines_are_told_as_they_were_printed() {
        assert_eq!(lines(b"one\r\n\ntwo\nthree").await, ["one", "", "two", "three"]);
        assert_eq!(lines("报表 \u{fffd}\n".as_bytes()).await, ["报表 \u{fffd}"]);
        assert_eq!(lines(b"caf\xe9\n").await, ["caf\u{fffd}"]);
        assert!(lines(b"").await.is_empty());
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_so_is_a_flood() {
        let long = lines(&b"x".repeat(3 * LONGEST)).await;
        let flood = lines(&b"0123456789abcde\n".repeat(MOST / 8)).await;

        assert_eq!((long.len(), long[0].chars().count()), (1, LONGEST + 1));
        assert!(long[0].ends_with('…'));
        assert_eq!(flood.len(), MOST / 16 + 1);
        assert!(flood.last().unwrap().contains("not kept"));
    }
}
