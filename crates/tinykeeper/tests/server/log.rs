//! Captures the log of a server in the test's thread.

use std::io;

use tokio::sync::watch;
use tracing::{Level, subscriber::DefaultGuard};

use super::within_timeout;

/// Everything logged in this thread since it was created; single-threaded tests run their server in this thread.
pub(crate) struct Log {
    text: watch::Receiver<String>,
    _guard: DefaultGuard,
}

impl Log {
    pub(crate) fn capture() -> Self {
        let (sender, text) = watch::channel(String::new());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || Sink(sender.clone()))
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// Waits for a line that contains all `parts`.
    pub(crate) async fn wait_for_line(&self, parts: &[&str]) {
        let matches = |line: &str| parts.iter().all(|part| line.contains(part));
        let mut text = self.text.clone();
        within_timeout(text.wait_for(|text| text.lines().any(matches)))
            .await
            .expect("the log is captured");
    }

    /// How many lines so far contain all `parts`.
    pub(crate) fn count_lines(&self, parts: &[&str]) -> usize {
        let text = self.text.borrow();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }
}

struct Sink(watch::Sender<String>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_modify(|text| text.push_str(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
