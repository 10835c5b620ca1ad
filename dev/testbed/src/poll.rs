//! Polls for something that another process does, until a deadline.

use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);

/// Calls `check` until it returns something, or until `limit` has passed.
#[expect(
    clippy::disallowed_methods,
    reason = "real servers run on the real clock, and so do the timeouts of tests"
)]
pub(crate) fn until<T>(limit: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = check() {
            return Some(found);
        }
        if start.elapsed() >= limit {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}
