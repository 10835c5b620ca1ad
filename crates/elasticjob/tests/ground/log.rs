//! What was logged.

use std::{cell::RefCell, io, sync::Once};

use tracing_subscriber::fmt::MakeWriter;

/// What this thread, and so this test, has logged. A subscriber of its own for each test would not do: whether a line of code logs at all
/// is remembered for all threads.
#[derive(Clone, Copy)]
pub(crate) struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Log {
    /// From now on.
    pub(crate) fn listen() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing_subscriber::fmt().with_writer(Log).with_ansi(false).init());
        LOGGED.take();
    }

    pub(crate) fn read() -> String {
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
