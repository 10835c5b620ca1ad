//! One server, as a child process.
//!
//! A server is launched with a configuration that does not change over its life: its ports and its
//! folder outlast a stop, so a restart brings back the same server with what it had stored. It serves
//! once `srvr` answers with a mode and `conf` with our own folder; before that, whoever answers may
//! be someone else who got the port first. In that case a new server is tried on other ports.

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

/// How long a server may take to serve, on a machine that has a lot else to do.
const START: Duration = Duration::from_mins(1);
/// How long a server may take to answer a four-letter word.
const ANSWER: Duration = Duration::from_secs(10);
/// How long to wait for that answer while looking again anyway, as the server may be frozen.
const GLANCE: Duration = Duration::from_secs(1);

/// A real `ZooKeeper` server: a standalone one, or a member of an [`Ensemble`](crate::Ensemble).
///
/// It ends when it is dropped, or when the process does, however that ends.
pub struct ZooKeeper {
    // Before the folder, as dropping it stops the server that writes there.
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

    /// A server that differs from the usual one.
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder { settings: Settings::default(), tls: None }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients connect with TLS, given [`ZooKeeperBuilder::tls`].
    pub fn secure_address(&self) -> SocketAddr {
        self.secure_address.expect("a server has a secure address if it is built with tls(..)")
    }

    /// The process id of the server's JVM.
    pub fn pid(&self) -> u32 {
        self.child().as_ref().expect("a stopped server has no pid").pid()
    }

    /// Kills the server (`kill -9`) and waits for its end. Stopping a stopped server does nothing.
    pub fn stop(&self) {
        if let Some(child) = self.child().take() {
            child.kill();
        }
    }

    /// Starts the server again, with the same ports and what it had stored, and waits until it
    /// serves. A server that still runs is killed first.
    ///
    /// A member of an ensemble serves only with one of the others; see
    /// [`Ensemble::restart`](crate::Ensemble::restart) for when none is left.
    pub fn restart(&self) {
        self.stop();
        self.launch();
        self.wait_to_serve_again();
    }

    /// Stops the server's threads where they are (`SIGSTOP`). Its connections stay open, and silent.
    pub fn freeze(&self) {
        self.running(Child::freeze);
    }

    /// Lets a frozen server go on (`SIGCONT`).
    pub fn thaw(&self) {
        self.running(Child::thaw);
    }

    /// Lets the server write nothing more: from now on its disk is full. [`Self::make_room`] ends it.
    pub fn fill_disk(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32);
        let nothing = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::prlimit(pid, rustix::process::Resource::Fsize, nothing)
            .unwrap_or_else(|error| panic!("cannot limit what the server writes: {error}"));
    }

    /// Starts a server whose disk was full again, with room. It reads no log that it could not begin, so those are removed, as an
    /// operator has to.
    pub fn make_room(&self) {
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
        ask(self.address, word, ANSWER)
            .unwrap_or_else(|error| panic!("no answer to {word} from {}: {error}", self.address))
    }

    /// What the server has logged since it was last started.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
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

    /// Starts the process and does not wait.
    pub(crate) fn launch(&self) {
        *self.child() = Some(Child::start(&self.command, self.folder.path()));
    }

    /// Waits until the server serves; `Err` if it cannot because someone else has one of its ports.
    pub(crate) fn wait_to_serve(&self) -> Result<(), PortTaken> {
        let outcome = poll::until(START, || {
            if self.serves() {
                Some(Ok(()))
            } else if self.log().contains("java.net.BindException") {
                Some(Err(PortTaken))
            } else {
                assert!(
                    !self.has_ended(),
                    "ZooKeeper ended at once; its log:\n{}",
                    self.last_words()
                );
                None
            }
        });
        outcome.unwrap_or_else(|| {
            panic!("ZooKeeper does not serve after {START:?}; its log:\n{}", self.last_words())
        })
    }

    /// As [`Self::wait_to_serve`], for a server that has to have the ports it has.
    pub(crate) fn wait_to_serve_again(&self) {
        let outcome = poll::until(START, || {
            if self.wait_to_serve().is_ok() {
                return Some(());
            }
            // Whoever was given our port meanwhile, say for a connection, gives it back.
            self.stop();
            self.launch();
            None
        });
        outcome.unwrap_or_else(|| panic!("someone else listens on {}", self.address));
    }

    /// What the server is now: `standalone`, `leader`, `follower`, or nothing while it does not serve.
    pub(crate) fn mode(&self) -> Option<String> {
        let answer = ask(self.address, "srvr", GLANCE).ok()?;
        answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
    }

    fn serves(&self) -> bool {
        let folder = self.folder.path().display().to_string();
        self.mode().is_some()
            && ask(self.address, "conf", GLANCE).is_ok_and(|answer| answer.contains(&folder))
    }

    fn has_ended(&self) -> bool {
        self.child().as_ref().is_none_or(Child::has_ended)
    }

    fn running(&self, act: impl FnOnce(&mut Child)) {
        act(self.child().as_mut().expect("a stopped server neither freezes nor thaws"));
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`ZooKeeper`] that differs from the usual one, which has ticks of 200 ms, does not wait for
/// the disk and runs in a small JVM.
pub struct ZooKeeperBuilder {
    settings: Settings,
    tls: Option<Tls>,
}

impl ZooKeeperBuilder {
    /// The server's unit of time. Sessions last two ticks at least and are checked once a tick.
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

    /// For benchmarks: leaves the JVM's compiler and collector as they are, and gives it 1 GiB.
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

    /// Serves TLS on a port of its own, to clients whose certificate the same authority signed.
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
            if server.wait_to_serve().is_ok() {
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

/// Someone else has a port that was free when we looked.
pub(crate) struct PortTaken;

#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) client: u16,
    pub(crate) secure: Option<u16>,
}

/// What servers can differ in, alone or in an ensemble.
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
        // Short ticks make short sessions possible; long ones should be as possible as ever.
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
        let usual = [
            ("zookeeper.extendedTypesEnabled", "true"),
            ("zookeeper.4lw.commands.whitelist", "*"),
            ("zookeeper.forceSync", force_sync),
            // How long two servers may wait to tell each other again for whom they vote.
            ("zookeeper.fastleader.maxNotificationInterval", "1000"),
        ];
        let usual = usual.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Jvm {
            full_speed: self.full_speed,
            properties: usual.into_iter().chain(self.properties.iter().cloned()).collect(),
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

fn ask(address: SocketAddr, word: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
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
    fn a_started_server_serves() {
        let server = ZooKeeper::start();

        assert_eq!(server.four_letter("ruok"), "imok");
        assert_eq!(server.mode().as_deref(), Some("standalone"));
        assert!(server.four_letter("conf").contains("tickTime=200\n"));
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn a_server_whose_port_someone_else_has_says_so() {
        let someone_else = ZooKeeper::start();
        let ports = Ports { client: someone_else.address().port(), secure: None };
        let settings = Settings::default();
        let server = ZooKeeper::prepare(Main::Standalone, &settings, ports, |_| String::new());

        server.launch();

        assert!(server.wait_to_serve().is_err());
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn a_dropped_server_is_gone() {
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
    fn a_restarted_server_is_the_same_server() {
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
    fn a_frozen_server_is_silent_until_it_thaws() {
        let server = ZooKeeper::start();

        server.freeze();
        let silence = ask(server.address(), "ruok", Duration::from_millis(200));
        server.thaw();

        assert!(silence.is_err());
        assert_eq!(server.four_letter("ruok"), "imok");
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn a_server_whose_disk_is_full_takes_no_writes_until_there_is_room() {
        let server = ZooKeeper::builder().fsync(true).start();

        server.fill_disk();
        // A session is a write, too: whoever asks for one hears nothing.
        let hello = [
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
        client.write_all(&hello).unwrap();
        let mut answer = [0; 4];
        let heard = client.read_exact(&mut answer);
        let log = server.log();
        server.make_room();

        assert!(heard.is_err(), "{answer:?}; {log}");
        assert_eq!(server.four_letter("ruok"), "imok");
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn a_tls_server_listens_on_its_secure_port_as_well() {
        let certificates = Certificates::issue();
        let server = ZooKeeper::builder().tls(&certificates).start();

        let port = server.secure_address().port();

        assert!(server.four_letter("conf").contains(&format!("secureClientPort={port}\n")));
        assert!(TcpStream::connect(server.secure_address()).is_ok());
    }

    #[test]
    #[ignore = "needs a real ZooKeeper: make test"]
    fn a_server_runs_as_it_was_built() {
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
