//! What a server in this test's thread logs.

use std::io;

use tokio::sync::watch;
use tracing::{Level, subscriber::DefaultGuard};

use super::soon;

/// Holds everything logged in this thread since it was made; single-threaded tests run their server here.
pub(crate) struct Log {
    text: watch::Receiver<String>,
    _here: DefaultGuard,
}

impl Log {
    pub(crate) fn capture() -> Self {
        let (sender, text) = watch::channel(String::new());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || Sink(sender.clone()))
            .finish();
        Self { text, _here: tracing::subscriber::set_default(subscriber) }
    }

    /// Waits for a line that holds all of this.
    pub(crate) async fn says(&self, parts: &[&str]) {
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        let mut text = self.text.clone();
        soon(text.wait_for(|text| text.lines().any(is_it))).await.expect("the log is kept");
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
