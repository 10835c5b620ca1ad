//! A MariaDB server as a child process; it stands in for MySQL.
//!
//! MariaDB refuses to run as root. If the test runs as root, the server runs as an unprivileged user, in a folder of that user.

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
const USER: User = User { name: "nobody", group: "nogroup" };
/// Creates the user `test`, without a password and with all privileges. One statement per line, as the server requires of an init file.
const INIT_SQL: &str = "\
CREATE USER test@'%';
GRANT ALL ON *.* TO test@'%' WITH GRANT OPTION;
CREATE DATABASE test CHARACTER SET utf8mb4;
";

/// A real MariaDB server on loopback. It is for tests: it does not wait for the disk.
///
/// The server stops when this value is dropped or when the process ends, however it ends.
pub struct MariaDb {
    // Declared before the folder, so that the server is stopped before its folder is removed.
    child: Option<Child>,
    folder: TempDir,
    address: SocketAddr,
}

impl MariaDb {
    /// Creates an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-mariadb-");
        let data = folder.path().join("data");
        fs::write(folder.path().join("init.sql"), INIT_SQL).expect("the folder can be written");
        USER.take_ownership(folder.path());
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
            if wait_until_serving(&child, folder.path(), port) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Self { child: Some(child), folder, address };
            }
            child.kill();
        }
    }

    /// Kills the server (SIGKILL) and waits for its exit. Does nothing if the server is stopped.
    pub fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }

    /// Starts a stopped server again, with the same port and data, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        // The statements were executed at the first start.
        fs::write(self.folder.path().join("init.sql"), "").expect("the folder can be written");
        let (folder, port) = (self.folder.path(), self.address.port());
        let child = Child::start(&server(folder, &folder.join("data"), port), folder);
        assert!(
            wait_until_serving(&child, folder, port),
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

    /// The connection URL: `mysql://test@127.0.0.1:…/test`.
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
            // Commits survive a crash of the process, but not a power failure.
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
            format!("--init-file={}", folder.join("init.sql").display()),
        ]
        .map(OsString::from),
    );
    command
}

/// Waits until the server serves; `false` if another process has its port.
fn wait_until_serving(child: &Child, folder: &Path, port: u16) -> bool {
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    let ready = format!("port: {port}");
    let outcome = poll::until(TIMEOUT, || {
        let log = log();
        if log.contains("ready for connections") && log.contains(&ready) {
            return Some(true);
        }
        if log.contains("Address already in use") {
            return Some(false);
        }
        assert!(!child.has_exited(), "MariaDB exited at once; its log:\n{log}");
        None
    });
    outcome
        .unwrap_or_else(|| panic!("MariaDB does not serve after {TIMEOUT:?}; its log:\n{}", log()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    #[ignore = "needs a real MariaDB: make test"]
    fn server_serves_until_dropped_and_can_be_killed_and_restarted() {
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
