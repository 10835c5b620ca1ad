//! The output of scripts, line by line.

use crate::job::Shard;

/// Receives the lines that scripts print: in order for each stream, and from within the run, so it must not block.
pub trait Output: Send + Sync + 'static {
    /// Called for every line, without its line end.
    fn line(&self, shard: &Shard, stream: Stream, line: &str);
}

/// The stream that a line was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// `stdout` or `stderr`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Discards all lines.
impl Output for () {
    fn line(&self, _: &Shard, _: Stream, _: &str) {}
}
