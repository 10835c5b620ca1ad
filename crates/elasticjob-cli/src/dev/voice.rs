//! One line, and when it was said.

use elasticjob::runtime::{Clock, SystemClock};
use jiff::{Timestamp, tz::TimeZone};

use crate::output::say;

/// Says what happens now.
pub(super) fn tell(line: &str) {
    say(&format!("{}  {line}", clock(SystemClock.now())));
}

/// An instant as the clock on the wall shows it.
pub(super) fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}
