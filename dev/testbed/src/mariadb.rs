//! A MariaDB server as a child process; it stands in for MySQL.
//!
//! MariaDB refuses to run as root. If the test runs as root, the server runs as an unprivileged user, in a folder of that user.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::database::{DatabaseServer, Product};
use crate::folder;
use crate::user::{self, User};

const USER: User = User { name: "nobody", group: "nogroup" };
const PRODUCT: Product = Product {
    name: "MariaDB",
    command,
    is_serving: |log, port| {
        log.contains("ready for connections") && log.contains(&format!("port: {port}"))
    },
    port_taken: "Address already in use",
};
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
    pub(crate) server: DatabaseServer,
}

impl MariaDb {
    /// Creates an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-mariadb-");
        write_init_sql(folder.path(), INIT_SQL);
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
        install.push(format!("--datadir={}", data(folder.path()).display()).into());
        user::run(&install);
        Self { server: DatabaseServer::start(PRODUCT, folder) }
    }

    /// Kills the server (SIGKILL) and waits for its exit. Does nothing if the server is stopped.
    pub fn stop(&mut self) {
        self.server.kill();
    }

    /// Starts a stopped server again, with the same port and data, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        // The statements were executed at the first start.
        write_init_sql(self.server.folder(), "");
        self.server.restart();
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The connection URL: `mysql://test@127.0.0.1:…/test`.
    pub fn url(&self) -> String {
        format!("mysql://test@{}/test", self.address())
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn write_init_sql(folder: &Path, statements: &str) {
    fs::write(folder.join("init.sql"), statements).expect("the folder can be written");
}

fn command(folder: &Path, port: u16) -> Vec<OsString> {
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
            format!("--datadir={}", data(folder).display()),
            format!("--port={port}"),
            format!("--socket={}", folder.join("socket").display()),
            format!("--init-file={}", folder.join("init.sql").display()),
        ]
        .map(OsString::from),
    );
    command
}
