//! The last lines of a script's output, for failure messages.

use std::collections::VecDeque;

use crate::problem::printable;

const LINES: usize = 10;

/// Maximum number of characters of each line.
const WIDTH: usize = 400;

#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<String>);

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        let line: String = line.chars().take(WIDTH).collect();
        self.0.push_back(printable(&line).into_owned());
    }

    /// `: ` and the lines; empty if there are none.
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
    fn only_last_lines_are_kept() {
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
