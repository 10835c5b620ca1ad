//! Waiting for something another process does: look, and look again, until a deadline.

use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// Looks until there is something to see, or until `limit` has passed.
#[expect(
    clippy::disallowed_methods,
    reason = "real servers run on the real clock, and so does the patience of a test"
)]
pub(crate) fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if start.elapsed() >= limit {
            return None;
        }
        thread::sleep(PAUSE);
    }
}
