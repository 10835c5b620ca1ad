//! ZooKeeper's four-letter commands, which an operator sends with `nc` to inspect a server.

use std::{fmt::Write, net::SocketAddr, time::Duration};

use super::config::Config;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Ruok,
    Srvr,
    Stat,
    Mntr,
    Conf,
    Cons,
    Dump,
    Wchs,
    Envi,
    Isro,
}

impl Command {
    pub(super) fn parse(bytes: [u8; 4]) -> Option<Self> {
        Some(match &bytes {
            b"ruok" => Command::Ruok,
            b"srvr" => Command::Srvr,
            b"stat" => Command::Stat,
            b"mntr" => Command::Mntr,
            b"conf" => Command::Conf,
            b"cons" => Command::Cons,
            b"dump" => Command::Dump,
            b"wchs" => Command::Wchs,
            b"envi" => Command::Envi,
            b"isro" => Command::Isro,
            _ => return None,
        })
    }
}

/// Statistics of the server.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) replied: u64,
    pub(super) latency_sum: Duration,
    pub(super) latency_min: Option<Duration>,
    pub(super) latency_max: Duration,
}

/// Status of one connection, for `cons`.
pub(super) struct ConnectionStatus {
    pub(super) address: SocketAddr,
    pub(super) session: Option<i64>,
    /// Bytes waiting to be sent.
    pub(super) queued: usize,
    pub(super) received: u64,
    pub(super) sent: u64,
}

/// The data that commands report.
pub(super) struct ServerStatus<'a> {
    pub(super) tree: &'a Tree,
    pub(super) config: &'a Config,
    pub(super) listen: SocketAddr,
    pub(super) counters: Counters,
    pub(super) connections: Vec<ConnectionStatus>,
    pub(super) outstanding: usize,
}

impl ServerStatus<'_> {
    pub(super) fn reply(&self, command: Command) -> String {
        match command {
            Command::Ruok => "imok".into(),
            Command::Isro => "rw".into(),
            Command::Srvr => self.server(),
            Command::Stat => {
                let clients =
                    self.connections.iter().fold(String::new(), |mut text, connection| {
                        let _ = writeln!(text, " /{}[1]", connection.address);
                        text
                    });
                let server = self.server();
                let (version, rest) = server.split_once('\n').unwrap_or((&server, ""));
                format!("{version}\nClients:\n{clients}\n{rest}")
            }
            Command::Mntr => self.monitor(),
            Command::Conf => self.configuration(),
            Command::Cons => self.connections.iter().fold(String::new(), |mut text, connection| {
                let session =
                    connection.session.map_or(String::new(), |id| format!(",sid={id:#x}"));
                let ConnectionStatus { address, queued, received, sent, .. } = connection;
                let _ = writeln!(
                    text,
                    " /{address}[1](queued={queued},recved={received},sent={sent}{session})"
                );
                text
            }),
            Command::Dump => self.dump(),
            Command::Wchs => {
                let (watchers, paths, total) = self.tree.watch_count();
                format!("{watchers} connections watching {paths} paths\nTotal watches:{total}\n")
            }
            Command::Envi => format!(
                "Environment:\nzookeeper.version={}\nhost.name=localhost\nos.name={}\nos.arch={}\n",
                version(),
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
        }
    }

    fn average_ms(&self) -> f64 {
        let replied = self.counters.replied.max(1);
        #[allow(clippy::cast_precision_loss, reason = "an average for display")]
        let replied = replied as f64;
        self.counters.latency_sum.as_secs_f64() * 1000.0 / replied
    }

    fn minimum_ms(&self) -> u128 {
        self.counters.latency_min.unwrap_or_default().as_millis()
    }

    fn server(&self) -> String {
        format!(
            "Zookeeper version: {}\nLatency min/avg/max: {}/{:.4}/{}\nReceived: {}\nSent: {}\nConnections: {}\n\
             Outstanding: {}\nZxid: {:#x}\nMode: standalone\nNode count: {}\n",
            version(),
            self.minimum_ms(),
            self.average_ms(),
            self.counters.latency_max.as_millis(),
            self.counters.received,
            self.counters.sent,
            self.connections.len(),
            self.outstanding,
            self.tree.zxid(),
            self.tree.node_count(),
        )
    }

    fn monitor(&self) -> String {
        let ephemerals: usize = self.tree.sessions().map(|session| session.ephemerals).sum();
        let rows: &[(&str, String)] = &[
            ("version", version()),
            ("server_state", "standalone".into()),
            ("avg_latency", format!("{:.4}", self.average_ms())),
            ("max_latency", self.counters.latency_max.as_millis().to_string()),
            ("min_latency", self.minimum_ms().to_string()),
            ("packets_received", self.counters.received.to_string()),
            ("packets_sent", self.counters.sent.to_string()),
            ("num_alive_connections", self.connections.len().to_string()),
            ("outstanding_requests", self.outstanding.to_string()),
            ("znode_count", self.tree.node_count().to_string()),
            ("watch_count", self.tree.watch_count().2.to_string()),
            ("ephemerals_count", ephemerals.to_string()),
            ("approximate_data_size", self.tree.data_bytes().to_string()),
            ("global_sessions", self.tree.sessions().count().to_string()),
        ];
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "zk_{name}\t{value}");
            text
        })
    }

    fn configuration(&self) -> String {
        let data =
            self.config.data.as_ref().map_or("(memory)".into(), |dir| dir.display().to_string());
        format!(
            "clientPort={}\nclientPortAddress={}\ndataDir={data}\nfsync={}\nminSessionTimeout={}\n\
             maxSessionTimeout={}\nmaxConnections={}\nmaxSessions={}\njute.maxbuffer={}\nserverId=0\n",
            self.listen.port(),
            self.listen.ip(),
            self.config.fsync,
            self.config.min_session_timeout.as_millis(),
            self.config.max_session_timeout.as_millis(),
            self.config.max_connections,
            self.config.max_sessions,
            self.config.max_frame,
        )
    }

    fn dump(&self) -> String {
        let sessions: Vec<_> = self.tree.sessions().collect();
        let mut text = format!("SessionTracker dump:\nSessions ({}):\n", sessions.len());
        for session in &sessions {
            let _ = writeln!(text, "{:#x}\ttimeout {} ms", session.id, session.timeout_ms);
        }
        let owners = sessions.iter().filter(|session| session.ephemerals > 0);
        let _ = writeln!(
            text,
            "ephemeral nodes dump:\nSessions with Ephemerals ({}):",
            owners.clone().count()
        );
        for session in owners {
            let _ = writeln!(text, "{:#x}:", session.id);
            for path in self.tree.ephemerals(session.id, "") {
                let _ = writeln!(text, "\t{path}");
            }
        }
        text
    }
}

/// The version that clients and tools read: a ZooKeeper version to compare, with the name of this server to recognise it.
fn version() -> String {
    format!("3.9.0-tinykeeper-{}", env!("CARGO_PKG_VERSION"))
}
