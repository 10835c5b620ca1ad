//! The last lines of what was printed, for the message of a failure.

use std::collections::VecDeque;

/// At most this many lines.
const LINES: usize = 10;

/// At most this many characters of each.
const WIDTH: usize = 400;

/// The last lines.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<String>);

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.chars().take(WIDTH).collect());
    }

    /// `: ` and the lines, or nothing if there are none.
    pub(super) fn after_colon(&self) -> String {
        let lines: Vec<&str> = self.0.iter().map(|line| line.trim_end()).collect();
        let text = lines.join("\n");
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut tail = Tail::default();
        assert_eq!(tail.after_colon(), "");

        for number in 0..100 {
            tail.push(&format!("{number} {}", "x".repeat(1000)));
        }

        let text = tail.after_colon();
        assert!(text.starts_with(": 90 x"));
        assert!(text.len() < LINES * (WIDTH + 1) + 3);
    }
}
