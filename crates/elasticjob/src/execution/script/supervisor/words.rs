//! What worker and supervisor say to each other: one line each.

use std::{fmt, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use crate::runtime::Monotonic;

/// What a worker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease lasts until then; `None`: the script may go on without one.
    Lease(Option<Monotonic>),
    /// Nobody holds the script's output any more.
    Over,
    /// End it, in this time at most.
    End(Duration),
}

/// What a supervisor says: one thing, at the end.
#[derive(Debug)]
pub(super) enum Report {
    /// The script ended by itself.
    Status(ExitStatus),
    /// It could not be started.
    Unstarted(io::Error),
    /// The supervisor ended it because the lease was not renewed.
    LeaseLost,
    /// The supervisor ended it because it was told to.
    Ended,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(Some(until)) => write!(f, "lease {}", until.since_start().as_nanos()),
            Self::Lease(None) => f.write_str("lease none"),
            Self::Over => f.write_str("over"),
            Self::End(grace) => write!(f, "end {}", grace.as_nanos()),
        }
    }
}

impl Order {
    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "over" => Some(Self::Over),
            Some(("lease", "none")) => Some(Self::Lease(None)),
            Some(("lease", until)) => Some(Self::Lease(Some(Monotonic::from_start(nanos(until)?)))),
            Some(("end", grace)) => Some(Self::End(nanos(grace)?)),
            _ => None,
        }
    }
}

fn nanos(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_nanos)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {}", status.into_raw()),
            // What the system refused has a number, and everything else was refused when the supervisor was started.
            Self::Unstarted(error) => {
                write!(f, "unstarted {}", error.raw_os_error().unwrap_or_default())
            }
            Self::LeaseLost => f.write_str("lease lost"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

impl Report {
    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "ended" => Some(Self::Ended),
            Some(("lease", "lost")) => Some(Self::LeaseLost),
            Some(("status", raw)) => Some(Self::Status(ExitStatus::from_raw(raw.parse().ok()?))),
            Some(("unstarted", number)) => {
                Some(Self::Unstarted(io::Error::from_raw_os_error(number.parse().ok()?)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for order in [
            Order::Lease(None),
            Order::Lease(Some(Monotonic::from_start(Duration::new(7, 1)))),
            Order::Over,
            Order::End(Duration::ZERO),
            Order::End(Duration::from_millis(300)),
        ] {
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        for report in ["status 768", "status 9", "unstarted 2", "lease lost", "ended"] {
            assert_eq!(Report::parse(report).unwrap().to_string(), report);
        }
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        for line in ["", "lease", "lease soon", "end", "end -1", "over now", "sudo"] {
            assert_eq!(Order::parse(line), None, "{line}");
        }
    }
}
