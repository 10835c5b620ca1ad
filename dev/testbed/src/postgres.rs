//! A PostgreSQL server as a child process.
//!
//! PostgreSQL refuses to run as root. If the test runs as root, the server runs as the user that Debian's package created, in a folder of that user.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::database::{DatabaseServer, Product};
use crate::folder;
use crate::user::{self, User};

/// Debian installs each version in a folder below this one.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The user of Debian's package.
const USER: User = User { name: "postgres", group: "postgres" };
const PRODUCT: Product = Product {
    name: "PostgreSQL",
    command,
    is_serving: |log, _| log.contains("database system is ready to accept connections"),
    port_taken: "could not bind",
};

/// A real PostgreSQL server without authentication, on loopback. It is for tests: it does not wait for the disk.
///
/// The server stops when this value is dropped or when the process ends, however it ends.
pub struct Postgres {
    pub(crate) server: DatabaseServer,
}

impl Postgres {
    /// Creates an empty database, starts a server on it and waits until it serves.
    pub fn start() -> Self {
        let folder = folder::temporary("testbed-postgres-");
        USER.take_ownership(folder.path());
        let mut initdb = USER.unprivileged(&program("initdb"));
        initdb.extend(
            ["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", "--username=test"]
                .map(OsString::from),
        );
        initdb.extend(["--pgdata".into(), data(folder.path()).into()]);
        user::run(&initdb);
        Self { server: DatabaseServer::start(PRODUCT, folder) }
    }

    /// Stops the server at once and closes every connection (`pg_ctl stop -m fast`). Does nothing if the server is stopped.
    pub fn stop(&mut self) {
        self.server.interrupt();
        self.server.kill();
    }

    /// Starts a stopped server again, with the same port and data, and waits until it serves.
    pub fn restart(&mut self) {
        self.stop();
        self.server.restart();
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The connection URL: `postgresql://test@127.0.0.1:…/postgres`.
    pub fn url(&self) -> String {
        format!("postgresql://test@{}/postgres", self.address())
    }
}

/// Shuts the server down gracefully: if it were killed, it would leave a shared memory segment behind.
impl Drop for Postgres {
    fn drop(&mut self) {
        self.server.interrupt();
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn command(folder: &Path, port: u16) -> Vec<OsString> {
    let mut command = USER.unprivileged(&program("postgres"));
    command.extend(["-D".into(), data(folder).into(), "-p".into(), port.to_string().into()]);
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
