//! Prints timestamped lines of the commentary.

use elasticjob::runtime::{Clock, SystemClock};
use jiff::{Timestamp, tz::TimeZone};

use crate::output::print_message;

/// Prints a line with the current time.
pub(super) fn print_event(line: &str) {
    print_message(&format!("{}  {line}", wall_clock(SystemClock.now())));
}

/// Local time of day.
pub(super) fn wall_clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}
