//! A database, as a child process.
//!
//! It refuses to run as root, so there it runs as the user that Debian's package made for it, in a folder of that user's own.

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

/// How long the server may take to serve, or to end, on a machine that has a lot else to do.
const PATIENCE: Duration = Duration::from_mins(1);
/// Where Debian keeps the servers, each version in a folder of its own.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Whom Debian runs them as.
const USER: User = User { name: "postgres", group: "postgres" };

/// A real PostgreSQL server that trusts everybody on loopback. It does not wait for the disk: it is for tests.
///
/// It ends when it is dropped, or when the process does, however that ends.
pub struct Postgres {
    // Before the folder, as dropping it stops the server that writes there.
    child: Option<Child>,
    folder: TempDir,
    address: SocketAddr,
}

impl Postgres {
    /// Makes an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-postgres-");
        let data = folder.path().join("data");
        USER.own(folder.path());
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
            if serves(&child, folder.path()) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Self { child: Some(child), folder, address };
            }
            child.kill();
        }
    }

    /// Ends the server at once, with every connection (`pg_ctl stop -m fast`). Stopping a stopped server does nothing.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            end(&mut child);
            child.kill();
        }
    }

    /// Starts a stopped server again, on the same port and with what it had stored, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        let data = self.folder.path().join("data");
        let child = Child::start(&server(&data, self.address.port()), self.folder.path());
        assert!(serves(&child, self.folder.path()), "somebody took the port: {}", self.log());
        self.child = Some(child);
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What clients connect with: `postgresql://test@127.0.0.1:…/postgres`.
    pub fn url(&self) -> String {
        format!("postgresql://test@{}/postgres", self.address)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        end(child);
    }
}

/// Killed, it would leave a piece of shared memory behind.
fn end(child: &mut Child) {
    child.interrupt();
    let _ = poll::until(PATIENCE, || child.has_ended().then_some(()));
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

/// Whether it serves; `false` if somebody else has its port.
fn serves(child: &Child, folder: &Path) -> bool {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let outcome = poll::until(PATIENCE, || {
        let log = log();
        if log.contains("database system is ready to accept connections") {
            return Some(true);
        }
        if log.contains("could not bind") {
            return Some(false);
        }
        assert!(!child.has_ended(), "PostgreSQL ended at once; its log:\n{log}");
        None
    });
    outcome.unwrap_or_else(|| {
        panic!("PostgreSQL does not serve after {PATIENCE:?}; its log:\n{}", log())
    })
}

/// A program of the newest version there is; the one of the `PATH`, if Debian's package is not there.
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
    fn a_started_server_serves_and_so_does_one_that_was_stopped_and_a_dropped_one_is_gone() {
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
