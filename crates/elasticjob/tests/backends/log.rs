//! Captures the log of a test.

use std::{cell::RefCell, io, sync::Once};

use tracing_subscriber::fmt::MakeWriter;

/// The log of this thread, and so of this test. A separate subscriber for each test would not work, because tracing caches for all threads
/// whether a line of code logs at all.
#[derive(Clone, Copy)]
pub(crate) struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Log {
    /// Starts to capture, and discards what was captured before.
    pub(crate) fn start_capture() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing_subscriber::fmt().with_writer(Log).with_ansi(false).init());
        LOGGED.take();
    }

    pub(crate) fn captured() -> String {
        LOGGED.with_borrow(|logged| String::from_utf8_lossy(logged).into_owned())
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}
