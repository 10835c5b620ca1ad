//! The messages between worker and supervisor: one line each.

use std::{fmt, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use crate::runtime::Monotonic;

/// A message from the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerMessage {
    /// The lease lasts until then; with `None` the script needs no lease.
    Lease(Option<Monotonic>),
    /// No process holds the script's output open any more.
    OutputClosed,
    /// Stop the script; kill it after this time.
    Stop(Duration),
}

/// The only message from the supervisor, sent at the end.
#[derive(Debug)]
pub(super) enum SupervisorReport {
    Exited(ExitStatus),
    StartFailed(io::Error),
    /// The supervisor stopped the script because the lease was not renewed.
    LeaseLost,
    /// The supervisor stopped the script because the worker asked for it, or is gone.
    Stopped,
}

impl fmt::Display for WorkerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(Some(until)) => write!(f, "lease {}", until.since_start().as_nanos()),
            Self::Lease(None) => f.write_str("lease none"),
            Self::OutputClosed => f.write_str("over"),
            Self::Stop(grace) => write!(f, "end {}", grace.as_nanos()),
        }
    }
}

impl WorkerMessage {
    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "over" => Some(Self::OutputClosed),
            Some(("lease", "none")) => Some(Self::Lease(None)),
            Some(("lease", until)) => Some(Self::Lease(Some(Monotonic::from_start(nanos(until)?)))),
            Some(("end", grace)) => Some(Self::Stop(nanos(grace)?)),
            _ => None,
        }
    }
}

fn nanos(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_nanos)
}

impl fmt::Display for SupervisorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "status {}", status.into_raw()),
            // An error of the system has a number; any other error would already have prevented the start of the supervisor.
            Self::StartFailed(error) => {
                write!(f, "unstarted {}", error.raw_os_error().unwrap_or_default())
            }
            Self::LeaseLost => f.write_str("lease lost"),
            Self::Stopped => f.write_str("ended"),
        }
    }
}

impl SupervisorReport {
    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "ended" => Some(Self::Stopped),
            Some(("lease", "lost")) => Some(Self::LeaseLost),
            Some(("status", raw)) => Some(Self::Exited(ExitStatus::from_raw(raw.parse().ok()?))),
            Some(("unstarted", number)) => {
                Some(Self::StartFailed(io::Error::from_raw_os_error(number.parse().ok()?)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        for message in [
            WorkerMessage::Lease(None),
            WorkerMessage::Lease(Some(Monotonic::from_start(Duration::new(7, 1)))),
            WorkerMessage::OutputClosed,
            WorkerMessage::Stop(Duration::ZERO),
            WorkerMessage::Stop(Duration::from_millis(300)),
        ] {
            assert_eq!(WorkerMessage::parse(&message.to_string()), Some(message));
        }
        for report in ["status 768", "status 9", "unstarted 2", "lease lost", "ended"] {
            assert_eq!(SupervisorReport::parse(report).unwrap().to_string(), report);
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        for line in ["", "lease", "lease soon", "end", "end -1", "over now", "sudo"] {
            assert_eq!(WorkerMessage::parse(line), None, "{line}");
        }
    }
}
