//! How much of the console one client, one user, and all of them together may take.

use crate::error::ConsoleError;

const DEFAULT_CONNECTIONS: usize = 4_096;
const DEFAULT_STREAMS_PER_USER: usize = 64;
/// Connections beyond the limit in which only health probes are answered.
pub(super) const RESERVE_CONNECTIONS: usize = 64;
/// Files that are no connections of clients: the audit, registries, history stores, the runtime's own.
const OTHER_FILES: usize = 192;

/// Limits of connections and streams. An IPv6 address stands for its network of 64 bits; the address of a trusted proxy is never limited, the clients
/// that it forwards are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open connections.
    pub connections: usize,
    /// Open connections of one client address.
    pub connections_per_address: usize,
    /// Open event streams and exports.
    pub streams: usize,
    /// Open event streams and exports of one client address.
    pub streams_per_address: usize,
    /// Open event streams and exports of one user.
    pub streams_per_user: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(DEFAULT_CONNECTIONS)
    }
}

impl Limits {
    /// Limits that fit to this number of connections: half of them may be streams, and one address has a quarter of each.
    pub fn of(connections: usize) -> Self {
        let share = |all: usize, parts: usize| (all / parts).max(1);
        let streams = share(connections, 2);
        Self {
            connections,
            connections_per_address: share(connections, 4),
            streams,
            streams_per_address: share(streams, 4),
            streams_per_user: DEFAULT_STREAMS_PER_USER.min(streams),
        }
    }

    /// How many files the console needs to hold all connections.
    pub fn files(&self) -> usize {
        self.connections.saturating_add(RESERVE_CONNECTIONS + OTHER_FILES)
    }

    /// These limits, or lower ones if the process may not open as many files.
    #[must_use]
    pub fn fit_into(self, files: usize) -> Self {
        let connections = files.saturating_sub(RESERVE_CONNECTIONS + OTHER_FILES).max(1);
        if connections >= self.connections {
            return self;
        }
        let lower = Self::of(connections);
        Self {
            connections,
            connections_per_address: self
                .connections_per_address
                .min(lower.connections_per_address),
            streams: self.streams.min(lower.streams),
            streams_per_address: self.streams_per_address.min(lower.streams_per_address),
            streams_per_user: self.streams_per_user.min(lower.streams_per_user),
        }
    }

    /// Refuses limits of zero, and streams that leave no connection for anything else.
    pub(super) fn check(&self) -> Result<(), ConsoleError> {
        let all = [
            ("connections", self.connections),
            ("connectionsPerAddress", self.connections_per_address),
            ("streams", self.streams),
            ("streamsPerAddress", self.streams_per_address),
            ("streamsPerUser", self.streams_per_user),
        ];
        if let Some((name, _)) = all.iter().find(|(_, limit)| *limit == 0) {
            return Err(ConsoleError::setting(format!("limits.{name} is 0"))
                .with_hint("no client could be served; the least is 1"));
        }
        if self.streams >= self.connections && self.connections > 1 {
            let text = format!(
                "limits.streams ({}) is not less than limits.connections ({})",
                self.streams, self.connections
            );
            return Err(ConsoleError::setting(text)
                .with_hint("streams could take every connection; a half of them is the default"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_shrink_with_the_files_that_the_process_may_open() {
        let limits = Limits { streams_per_user: 3, ..Limits::default() };

        assert_eq!(limits.fit_into(limits.files()), limits);
        let lower = limits.fit_into(1_024);

        assert_eq!((lower.connections, lower.connections_per_address), (768, 192));
        assert_eq!(
            (lower.streams, lower.streams_per_address, lower.streams_per_user),
            (384, 96, 3)
        );
        assert!(lower.files() <= 1_024 && limits.fit_into(0).check().is_ok());
    }

    #[test]
    fn limits_that_serve_no_client_are_refused() {
        let limits = Limits::default();

        assert!(limits.check().is_ok());
        for wrong in [
            Limits { connections_per_address: 0, ..limits },
            Limits { streams_per_user: 0, ..limits },
            Limits { streams: limits.connections, ..limits },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
