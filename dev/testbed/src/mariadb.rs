//! The other database, as a child process: MariaDB stands for MySQL.
//!
//! It refuses to run as root, so there it runs as nobody, in a folder of its own.

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
const USER: User = User { name: "nobody", group: "nogroup" };
/// The server lets anybody in who says to be `test`, with every right there is. One statement a line: it reads no other file.
const FIRST_WORDS: &str = "\
CREATE USER test@'%';
GRANT ALL ON *.* TO test@'%' WITH GRANT OPTION;
CREATE DATABASE test CHARACTER SET utf8mb4;
";

/// A real MariaDB server on loopback. It does not wait for the disk: it is for tests.
///
/// It ends when it is dropped, or when the process does, however that ends.
pub struct MariaDb {
    // Before the folder, as dropping it stops the server that writes there.
    child: Option<Child>,
    folder: TempDir,
    address: SocketAddr,
}

impl MariaDb {
    /// Makes an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-mariadb-");
        let data = folder.path().join("data");
        fs::write(folder.path().join("first.sql"), FIRST_WORDS).expect("the folder can be written");
        USER.own(folder.path());
        let mut install = USER.unprivileged(Path::new("mariadb-install-db"));
        install.extend(
            [
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-flush-method=nosync",
            ]
            .map(OsString::from),
        );
        install.push(format!("--datadir={}", data.display()).into());
        user::run(&install);
        loop {
            let port = free_port();
            let child = Child::start(&server(folder.path(), &data, port), folder.path());
            if serves(&child, folder.path(), port) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Self { child: Some(child), folder, address };
            }
            child.kill();
        }
    }

    /// Kills the server (`kill -9`) and waits for its end. Stopping a stopped server does nothing.
    pub fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }

    /// Starts a stopped server again, on the same port and with what it had stored, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        // What it was told at its first start it knows.
        fs::write(self.folder.path().join("first.sql"), "").expect("the folder can be written");
        let (folder, port) = (self.folder.path(), self.address.port());
        let child = Child::start(&server(folder, &folder.join("data"), port), folder);
        assert!(serves(&child, folder, port), "somebody took the port: {}", self.log());
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

    /// What clients connect with: `mysql://test@127.0.0.1:…/test`.
    pub fn url(&self) -> String {
        format!("mysql://test@{}/test", self.address)
    }
}

fn server(folder: &Path, data: &Path, port: u16) -> Vec<OsString> {
    let program = Path::new("/usr/sbin/mariadbd");
    let program = if program.exists() { program.to_owned() } else { PathBuf::from("mariadbd") };
    let mut command = USER.unprivileged(&program);
    command.extend(
        [
            "--no-defaults",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            // What is committed outlives the process, though no power cut.
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-flush-method=nosync",
            "--innodb-doublewrite=0",
            "--innodb-buffer-pool-size=64M",
            "--character-set-server=utf8mb4",
        ]
        .map(OsString::from),
    );
    command.extend(
        [
            format!("--datadir={}", data.display()),
            format!("--port={port}"),
            format!("--socket={}", folder.join("socket").display()),
            format!("--init-file={}", folder.join("first.sql").display()),
        ]
        .map(OsString::from),
    );
    command
}

/// Whether it serves; `false` if somebody else has its port.
fn serves(child: &Child, folder: &Path, port: u16) -> bool {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let ready = format!("port: {port}");
    let outcome = poll::until(PATIENCE, || {
        let log = log();
        if log.contains("ready for connections") && log.contains(&ready) {
            return Some(true);
        }
        if log.contains("Address already in use") {
            return Some(false);
        }
        assert!(!child.has_ended(), "MariaDB ended at once; its log:\n{log}");
        None
    });
    outcome
        .unwrap_or_else(|| panic!("MariaDB does not serve after {PATIENCE:?}; its log:\n{}", log()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    #[ignore = "needs a real MariaDB: make test"]
    fn a_started_server_serves_and_so_does_one_that_was_killed_and_a_dropped_one_is_gone() {
        let mut server = MariaDb::start();
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
