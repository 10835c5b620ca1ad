//! ZooKeeper's four-letter commands, which an operator sends with `nc` to inspect a server.

use std::{collections::BTreeSet, fmt::Write, net::SocketAddr, str::FromStr, time::Duration};

use super::config::Config;
use crate::tree::Tree;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    const ALL: [Command; 10] = [
        Command::Ruok,
        Command::Srvr,
        Command::Stat,
        Command::Mntr,
        Command::Conf,
        Command::Cons,
        Command::Dump,
        Command::Wchs,
        Command::Envi,
        Command::Isro,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Command::Ruok => "ruok",
            Command::Srvr => "srvr",
            Command::Stat => "stat",
            Command::Mntr => "mntr",
            Command::Conf => "conf",
            Command::Cons => "cons",
            Command::Dump => "dump",
            Command::Wchs => "wchs",
            Command::Envi => "envi",
            Command::Isro => "isro",
        }
    }

    pub(super) fn parse(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.word().as_bytes() == word)
    }
}

/// The four-letter words that a server executes. It answers the others as ZooKeeper does: not in the whitelist.
///
/// By default these are `ruok`, `srvr`, `mntr` and `isro`. The others tell anyone who reaches the port the ids of sessions, the
/// addresses of clients, paths of nodes, or the data directory.
///
/// ```
/// use tinykeeper::server::FourLetterWords;
///
/// let words: FourLetterWords = "srvr, cons".parse()?;
/// assert!("srvr,help".parse::<FourLetterWords>().is_err());
/// # Ok::<(), tinykeeper::server::UnknownWord>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FourLetterWords(BTreeSet<Command>);

impl FourLetterWords {
    /// Every word.
    pub fn all() -> Self {
        Self(Command::ALL.into())
    }

    /// No word.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    pub(super) fn contains(&self, command: Command) -> bool {
        self.0.contains(&command)
    }
}

impl Default for FourLetterWords {
    fn default() -> Self {
        Self([Command::Ruok, Command::Srvr, Command::Mntr, Command::Isro].into())
    }
}

/// A word that is none of the four-letter words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a four-letter word of this server; hint: *, none, or a list of {words}", words = all_words())]
pub struct UnknownWord(String);

/// Reads words separated by commas, `*` for all, `none` for none.
impl FromStr for FourLetterWords {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.trim() {
            "*" => Ok(Self::all()),
            "none" => Ok(Self::none()),
            list => {
                let words = list.split(',').map(str::trim);
                let parse = |word: &str| {
                    Command::parse(word.as_bytes()).ok_or_else(|| UnknownWord(word.to_owned()))
                };
                words.map(parse).collect::<Result<_, _>>().map(Self)
            }
        }
    }
}

fn all_words() -> String {
    Command::ALL.map(Command::word).join(", ")
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
    pub(super) connection_count: usize,
    /// Empty unless the command lists them.
    pub(super) connections: Vec<ConnectionStatus>,
    pub(super) outstanding: usize,
}

impl ServerStatus<'_> {
    pub(super) fn reply(&self, command: Command) -> String {
        if !self.config.four_letter_words.contains(command) {
            return format!(
                "{} is not executed because it is not in the whitelist.\n",
                command.word()
            );
        }
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
            self.connection_count,
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
            ("num_alive_connections", self.connection_count.to_string()),
            ("outstanding_requests", self.outstanding.to_string()),
            ("znode_count", self.tree.node_count().to_string()),
            ("watch_count", self.tree.watch_total().to_string()),
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
             maxSessionTimeout={}\nmaxConnections={}\nmaxClientCnxns={}\nmaxSessions={}\n\
             maxSessionsPerAddress={}\nmaxWatchBytes={}\njute.maxbuffer={}\nserverId=0\n",
            self.listen.port(),
            self.listen.ip(),
            self.config.fsync,
            self.config.min_session_timeout.as_millis(),
            self.config.max_session_timeout.as_millis(),
            self.config.max_connections,
            self.config.max_connections_per_address,
            self.config.max_sessions,
            self.config.max_sessions_per_address,
            self.config.max_watch_bytes,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_words_tell_no_session_address_or_folder() {
        let default = FourLetterWords::default();

        for word in ["stat", "cons", "dump", "conf", "envi", "wchs"] {
            assert!(!default.contains(Command::parse(word.as_bytes()).unwrap()), "{word}");
        }
        assert_eq!("ruok,srvr, mntr ,isro".parse(), Ok(default));
    }

    #[test]
    fn list_of_words_is_read_as_a_whole() {
        assert_eq!("*".parse(), Ok(FourLetterWords::all()));
        assert_eq!("none".parse(), Ok(FourLetterWords::none()));
        assert_eq!("cons".parse(), Ok(FourLetterWords([Command::Cons].into())));
        for bad in ["", "srvr,", "srvr,help", "SRVR", "srvr cons"] {
            let error = bad.parse::<FourLetterWords>().unwrap_err().to_string();
            assert!(error.contains("is not a four-letter word"), "{error}");
        }
    }
}
