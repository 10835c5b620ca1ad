//! A ZooKeeper server as a child process.
//!
//! The configuration of a server never changes: its ports and its folder survive a stop, so that a restart brings back the same server with its data.
//! The server serves once `srvr` answers with a mode and `conf` with our own folder; before that, the answer may come from another server that
//! got the port first. In that case a new server is started on other ports.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::child::Child;
use crate::folder;
use crate::java::{self, Jvm, Main};
use crate::poll;
use crate::ports::free_port;

/// How long a server may take to start, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a server may take to answer a four-letter word.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for an answer while polling, since the server may be frozen.
const POLL_TIMEOUT: Duration = Duration::from_secs(1);

/// A real `ZooKeeper` server: a standalone one, or a member of an [`Ensemble`](crate::Ensemble).
///
/// The server stops when this value is dropped or when the process ends, however it ends.
pub struct ZooKeeper {
    // Declared before the folder, so that the server is stopped before its folder is removed.
    child: Mutex<Option<Child>>,
    folder: TempDir,
    command: Vec<OsString>,
    address: SocketAddr,
    secure_address: Option<SocketAddr>,
}

impl ZooKeeper {
    /// Starts a server and waits until it serves.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with other settings than the default.
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder { settings: Settings::default(), tls: None }
    }

    /// The client address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The client address for TLS; panics without [`ZooKeeperBuilder::tls`].
    pub fn secure_address(&self) -> SocketAddr {
        self.secure_address.expect("a server has a secure address if it is built with tls(..)")
    }

    /// The process id of the server's JVM.
    pub fn pid(&self) -> u32 {
        self.child().as_ref().expect("a stopped server has no pid").pid()
    }

    /// Kills the server (SIGKILL) and waits for its exit. Does nothing if the server is stopped.
    pub fn stop(&self) {
        if let Some(child) = self.child().take() {
            child.kill();
        }
    }

    /// Starts the server again, with the same ports and data, and waits until it serves. A server that still runs is killed first.
    ///
    /// A member of an ensemble serves only together with another member; use [`Ensemble::restart`](crate::Ensemble::restart) if none runs.
    pub fn restart(&self) {
        self.stop();
        self.launch();
        self.wait_until_serving_again();
    }

    /// Suspends the server (SIGSTOP). Its connections stay open and silent.
    pub fn freeze(&self) {
        self.with_child(Child::freeze);
    }

    /// Resumes a frozen server (SIGCONT).
    pub fn thaw(&self) {
        self.with_child(Child::thaw);
    }

    /// Makes every further write to disk fail, as if the disk were full. [`Self::restart_with_free_disk`] ends this.
    pub fn fill_disk(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32);
        let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::prlimit(pid, rustix::process::Resource::Fsize, limit)
            .unwrap_or_else(|error| panic!("cannot limit the file size of the server: {error}"));
    }

    /// Restarts a server after [`Self::fill_disk`], with space on its disk. ZooKeeper does not start with an empty transaction log, so empty logs are
    /// removed first, as an operator has to do.
    pub fn restart_with_free_disk(&self) {
        self.stop();
        let logs = fs::read_dir(self.folder.path().join("data/version-2"));
        for log in logs.into_iter().flatten().flatten() {
            if log.metadata().is_ok_and(|log| log.len() == 0) {
                fs::remove_file(log.path()).expect("an empty log can be removed");
            }
        }
        self.restart();
    }

    /// The server's answer to a four-letter word such as `ruok`, `srvr`, `mntr`, `cons`, `dump`.
    pub fn four_letter(&self, word: &str) -> String {
        send_four_letter(self.address, word, ANSWER_TIMEOUT)
            .unwrap_or_else(|error| panic!("no answer to {word} from {}: {error}", self.address))
    }

    /// The log of the server since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The size of the newest snapshot. A server writes one when it starts.
    pub fn snapshot_bytes(&self) -> u64 {
        let files = fs::read_dir(self.folder.path().join("data/version-2"));
        let snapshots = files.into_iter().flatten().flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let zxid = u64::from_str_radix(name.strip_prefix("snapshot.")?, 16).ok()?;
            Some((zxid, file.metadata().ok()?.len()))
        });
        snapshots.max().map_or(0, |(_, size)| size)
    }

    /// Prepares a server without starting it.
    pub(crate) fn prepare(
        main: Main,
        settings: &Settings,
        ports: Ports,
        configure: impl FnOnce(&Path) -> String,
    ) -> Self {
        let folder = folder::temporary("testbed-zookeeper-");
        let zoo_cfg = settings.zoo_cfg(folder.path(), ports) + &configure(folder.path());
        write(folder.path(), "zoo.cfg", &zoo_cfg);
        write(folder.path(), "log4j.properties", java::LOG4J);

        Self {
            command: java::command(main, &settings.jvm(), folder.path()),
            child: Mutex::new(None),
            address: (Ipv4Addr::LOCALHOST, ports.client).into(),
            secure_address: ports.secure.map(|port| (Ipv4Addr::LOCALHOST, port).into()),
            folder,
        }
    }

    /// Starts the process without waiting for it to serve.
    pub(crate) fn launch(&self) {
        *self.child() = Some(Child::start(&self.command, self.folder.path()));
    }

    /// Waits until the server serves; `Err` if another process has one of its ports.
    pub(crate) fn wait_until_serving(&self) -> Result<(), PortTaken> {
        let outcome = poll::until(START_TIMEOUT, || {
            if self.is_serving() {
                Some(Ok(()))
            } else if self.log().contains("java.net.BindException") {
                Some(Err(PortTaken))
            } else {
                assert!(
                    !self.has_exited(),
                    "ZooKeeper exited at once; its log:\n{}",
                    self.log_tail()
                );
                None
            }
        });
        outcome.unwrap_or_else(|| {
            panic!(
                "ZooKeeper does not serve after {START_TIMEOUT:?}; its log:\n{}",
                self.log_tail()
            )
        })
    }

    /// Like [`Self::wait_until_serving`], but retries until the server gets its own ports.
    pub(crate) fn wait_until_serving_again(&self) {
        let outcome = poll::until(START_TIMEOUT, || {
            if self.wait_until_serving().is_ok() {
                return Some(());
            }
            // Another process may hold our port for a while, for example for an outgoing connection.
            self.stop();
            self.launch();
            None
        });
        outcome.unwrap_or_else(|| panic!("another process listens on {}", self.address));
    }

    /// The mode of the server: `standalone`, `leader`, `follower`; `None` while it does not serve.
    pub(crate) fn mode(&self) -> Option<String> {
        let answer = send_four_letter(self.address, "srvr", POLL_TIMEOUT).ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    fn is_serving(&self) -> bool {
        let folder = self.folder.path().display().to_string();
        self.mode().is_some()
            && send_four_letter(self.address, "conf", POLL_TIMEOUT)
                .is_ok_and(|answer| answer.contains(&folder))
    }

    fn has_exited(&self) -> bool {
        self.child().as_ref().is_none_or(Child::has_exited)
    }

    fn with_child(&self, act: impl FnOnce(&mut Child)) {
        act(self.child().as_mut().expect("a stopped server cannot be frozen or thawed"));
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds a [`ZooKeeper`]. By default the server has ticks of 200 ms, does not wait for the disk and runs in a small JVM.
pub struct ZooKeeperBuilder {
    settings: Settings,
    tls: Option<Tls>,
}

impl ZooKeeperBuilder {
    /// The server's unit of time. Sessions last at least two ticks and are checked once per tick.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.settings.tick = tick;
        self
    }

    /// Whether a write is on disk before it is answered.
    #[must_use]
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.settings.fsync = fsync;
        self
    }

    /// For benchmarks: keeps the JVM's default compiler and garbage collector and gives it 1 GiB.
    #[must_use]
    pub fn full_speed(mut self) -> Self {
        self.settings.full_speed = true;
        self
    }

    /// Sets a Java system property, e.g. `znode.container.checkIntervalMs` to `100`.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.settings.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Serves TLS on a separate port, to clients with a certificate of the same authority.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        self.tls = Some(Tls {
            key_store: certificates.server_pem().to_owned(),
            trust_store: fs::read_to_string(certificates.ca_pem()).expect("the CA is in its file"),
        });
        self
    }

    /// Starts the server and waits until it serves.
    pub fn start(&self) -> ZooKeeper {
        loop {
            let server = self.prepare();
            server.launch();
            if server.wait_until_serving().is_ok() {
                return server;
            }
        }
    }

    fn prepare(&self) -> ZooKeeper {
        let ports = Ports { client: free_port(), secure: self.tls.as_ref().map(|_| free_port()) };
        ZooKeeper::prepare(Main::Standalone, &self.settings, ports, |folder| {
            self.tls.as_ref().map(|tls| tls.zoo_cfg(folder)).unwrap_or_default()
        })
    }
}

/// Another process took a port that had been free.
pub(crate) struct PortTaken;

#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) client: u16,
    pub(crate) secure: Option<u16>,
}

/// The settings of a server, standalone or in an ensemble.
pub(crate) struct Settings {
    pub(crate) tick: Duration,
    pub(crate) fsync: bool,
    pub(crate) full_speed: bool,
    pub(crate) properties: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(200),
            fsync: false,
            full_speed: false,
            properties: Vec::new(),
        }
    }
}

impl Settings {
    fn zoo_cfg(&self, folder: &Path, ports: Ports) -> String {
        // Short ticks allow short sessions; long sessions must stay allowed.
        let longest_session = (self.tick * 20).max(Duration::from_secs(40));
        let mut zoo_cfg = format!(
            "tickTime={}\n\
             maxSessionTimeout={}\n\
             dataDir={}\n\
             clientPort={}\n\
             clientPortAddress=127.0.0.1\n\
             maxClientCnxns=0\n\
             admin.enableServer=false\n",
            self.tick.as_millis(),
            longest_session.as_millis(),
            folder.join("data").display(),
            ports.client,
        );
        if let Some(port) = ports.secure {
            let _ = writeln!(zoo_cfg, "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1");
        }
        zoo_cfg
    }

    fn jvm(&self) -> Jvm {
        let force_sync = if self.fsync { "yes" } else { "no" };
        let defaults = [
            ("zookeeper.extendedTypesEnabled", "true"),
            ("zookeeper.4lw.commands.whitelist", "*"),
            ("zookeeper.forceSync", force_sync),
            // How long a server waits at most before it repeats its vote during an election.
            ("zookeeper.fastleader.maxNotificationInterval", "1000"),
        ];
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Jvm {
            full_speed: self.full_speed,
            properties: defaults.into_iter().chain(self.properties.iter().cloned()).collect(),
        }
    }
}

struct Tls {
    key_store: String,
    trust_store: String,
}

impl Tls {
    fn zoo_cfg(&self, folder: &Path) -> String {
        write(folder, "key-store.pem", &self.key_store);
        write(folder, "trust-store.pem", &self.trust_store);
        format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             ssl.keyStore.type=PEM\n\
             ssl.keyStore.location={}\n\
             ssl.trustStore.type=PEM\n\
             ssl.trustStore.location={}\n",
            folder.join("key-store.pem").display(),
            folder.join("trust-store.pem").display(),
        )
    }
}

pub(crate) fn write(folder: &Path, name: &str, content: &str) {
    fs::write(folder.join(name), content).expect("a temporary folder can be written to");
}

fn send_four_letter(address: SocketAddr, word: &str, timeout: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn started_server_serves() {
        let server = ZooKeeper::start();

        assert_eq!(server.four_letter("ruok"), "imok");
        assert_eq!(server.mode().as_deref(), Some("standalone"));
        assert!(server.four_letter("conf").contains("tickTime=200\n"));
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn server_reports_that_another_process_has_its_port() {
        let other_server = ZooKeeper::start();
        let ports = Ports { client: other_server.address().port(), secure: None };
        let settings = Settings::default();
        let server = ZooKeeper::prepare(Main::Standalone, &settings, ports, |_| String::new());

        server.launch();

        assert!(server.wait_until_serving().is_err());
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn dropped_server_is_gone() {
        let server = ZooKeeper::start();
        let (address, pid, folder) =
            (server.address(), server.pid(), server.folder.path().to_owned());

        drop(server);

        assert!(TcpStream::connect(address).is_err());
        let probe = Command::new("kill")
            .args(["-0", &pid.to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!probe.success());
        assert!(!folder.exists());
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn restarted_server_keeps_its_address() {
        let server = ZooKeeper::start();
        let (address, pid) = (server.address(), server.pid());
        server.stop();
        assert!(TcpStream::connect(address).is_err());

        server.restart();

        assert_eq!(server.address(), address);
        assert_ne!(server.pid(), pid);
        assert_eq!(server.four_letter("ruok"), "imok");
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn frozen_server_answers_only_after_it_thaws() {
        let server = ZooKeeper::start();

        server.freeze();
        let answer = send_four_letter(server.address(), "ruok", Duration::from_millis(200));
        server.thaw();

        assert!(answer.is_err());
        assert_eq!(server.four_letter("ruok"), "imok");
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn server_with_a_full_disk_accepts_no_writes() {
        let server = ZooKeeper::builder().fsync(true).start();

        server.fill_disk();
        // Creating a session is a write too, so the request gets no answer.
        let connect_request = [
            &45_i32.to_be_bytes()[..],
            &[0; 12],
            &10_000_i32.to_be_bytes(),
            &[0; 8],
            &16_i32.to_be_bytes(),
            &[0; 17],
        ]
        .concat();
        let mut client = TcpStream::connect(server.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.write_all(&connect_request).unwrap();
        let mut answer = [0; 4];
        let result = client.read_exact(&mut answer);
        let log = server.log();
        server.restart_with_free_disk();

        assert!(result.is_err(), "{answer:?}; {log}");
        assert_eq!(server.four_letter("ruok"), "imok");
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn tls_server_listens_on_its_secure_port() {
        let certificates = Certificates::issue();
        let server = ZooKeeper::builder().tls(&certificates).start();

        let port = server.secure_address().port();

        assert!(server.four_letter("conf").contains(&format!("secureClientPort={port}\n")));
        assert!(TcpStream::connect(server.secure_address()).is_ok());
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn server_runs_with_the_built_settings() {
        let server = ZooKeeper::builder()
            .tick(Duration::from_millis(500))
            .fsync(true)
            .full_speed()
            .property("zookeeper.snapCount", "1000")
            .start();

        let conf = server.four_letter("conf");
        let command = fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap();

        assert!(
            conf.contains("tickTime=500\nmaxClientCnxns=0\nminSessionTimeout=1000\n"),
            "{conf}"
        );
        assert!(conf.contains("maxSessionTimeout=40000\n"), "{conf}");
        for flag in ["-Xmx1g", "-Dzookeeper.forceSync=yes", "-Dzookeeper.snapCount=1000"] {
            assert!(command.split('\0').any(|argument| argument == flag), "{command}");
        }
    }
}
