//! What scripts print, line by line.

use crate::job::Shard;

/// Keeps what scripts print. Called in order for each stream, from within the run: it must not block.
pub trait Output: Send + Sync + 'static {
    /// A line, without its end.
    fn line(&self, shard: &Shard, stream: Stream, line: &str);
}

/// Where a line was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
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

/// Keeps nothing.
impl Output for () {
    fn line(&self, _: &Shard, _: Stream, _: &str) {}
}
