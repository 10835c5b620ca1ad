//! A PostgreSQL server as a child process.
//!
//! PostgreSQL refuses to run as root. If the test runs as root, the server runs as the user that Debian's package created, in a folder of that user.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::child::Child;
use crate::folder;
use crate::poll;
use crate::ports::free_port;
use crate::user::{self, User};

/// How long the server may take to start or to stop, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Debian installs each version in a folder below this one.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user of Debian's package.
const USER: User = User { name: "postgres", group: "postgres" };

/// A real PostgreSQL server without authentication, on loopback. It is for tests: it does not wait for the disk.
///
/// The server stops when this value is dropped or when the process ends, however it ends.
pub struct Postgres {
    // Declared before the folder, so that the server is stopped before its folder is removed.
    child: Option<Child>,
    folder: TempDir,
    address: SocketAddr,
}

impl Postgres {
    /// Creates an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-postgres-");
        let data = folder.path().join("data");
        USER.take_ownership(folder.path());
        let mut initdb = USER.unprivileged(&program("initdb"));
        initdb.extend(
            ["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", "--username=test"]
                .map(OsString::from),
        );
        initdb.extend(["--pgdata".into(), data.clone().into()]);
        user::run(&initdb);
        loop {
            let port = free_port();
            let child = Child::start(&server(&data, port), folder.path());
            if wait_until_serving(&child, folder.path()) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Self { child: Some(child), folder, address };
            }
            child.kill();
        }
    }

    /// Stops the server at once and closes every connection (`pg_ctl stop -m fast`). Does nothing if the server is stopped.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            shut_down(&mut child);
            child.kill();
        }
    }

    /// Starts a stopped server again, with the same port and data, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        let data = self.folder.path().join("data");
        let child = Child::start(&server(&data, self.address.port()), self.folder.path());
        assert!(
            wait_until_serving(&child, self.folder.path()),
            "another process took the port: {}",
            self.log()
        );
        self.child = Some(child);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The connection URL: `postgresql://test@127.0.0.1:…/postgres`.
    pub fn url(&self) -> String {
        format!("postgresql://test@{}/postgres", self.address)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        shut_down(child);
    }
}

/// Shuts the server down gracefully: if it were killed, it would leave a shared memory segment behind.
fn shut_down(child: &mut Child) {
    child.interrupt();
    let _ = poll::until(TIMEOUT, || child.has_exited().then_some(()));
}

fn server(data: &Path, port: u16) -> Vec<OsString> {
    let mut command = USER.unprivileged(&program("postgres"));
    command.extend(["-D".into(), data.into(), "-p".into(), port.to_string().into()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "shared_buffers=16MB",
        "max_connections=50",
    ] {
        command.extend(["-c".into(), setting.into()]);
    }
    command
}

/// Waits until the server serves; `false` if another process has its port.
fn wait_until_serving(child: &Child, folder: &Path) -> bool {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let outcome = poll::until(TIMEOUT, || {
        let log = log();
        if log.contains("database system is ready to accept connections") {
            return Some(true);
        }
        if log.contains("could not bind") {
            return Some(false);
        }
        assert!(!child.has_exited(), "PostgreSQL exited at once; its log:\n{log}");
        None
    });
    outcome.unwrap_or_else(|| {
        panic!("PostgreSQL does not serve after {TIMEOUT:?}; its log:\n{}", log())
    })
}

/// The path of a program of the newest installed version; just its name, to be found in the `PATH`, without Debian's package.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let number = |folder: &Path| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .filter(|folder| folder.join("bin").join(name).exists())
        .max_by_key(|folder| number(folder));
    newest.map_or_else(|| name.into(), |folder| folder.join("bin").join(name))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    #[ignore = "needs a real PostgreSQL: make test"]
    fn server_serves_until_dropped_and_can_be_stopped_and_restarted() {
        let mut server = Postgres::start();
        let (address, folder) = (server.address(), server.folder.path().to_owned());
        assert!(TcpStream::connect(address).is_ok());
        server.stop();
        assert!(TcpStream::connect(address).is_err());
        server.restart();
        assert!(TcpStream::connect(address).is_ok());

        drop(server);

        assert!(TcpStream::connect(address).is_err());
        assert!(!folder.exists());
    }
}
