//! A database server as a child process: what [`Postgres`](crate::Postgres) and [`MariaDb`](crate::MariaDb) have in common.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::child::Child;
use crate::poll;
use crate::ports::free_port;

/// How long a server may take to start or to stop, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A kind of database server.
pub(crate) struct Product {
    pub(crate) name: &'static str,
    /// The command that serves the data in this folder on this port.
    pub(crate) command: fn(folder: &Path, port: u16) -> Vec<OsString>,
    /// Whether the log says that the server serves on this port.
    pub(crate) is_serving: fn(log: &str, port: u16) -> bool,
    /// What the server logs if another process has its port.
    pub(crate) port_taken: &'static str,
}

pub(crate) struct DatabaseServer {
    // Declared before the folder, so that the server is stopped before its folder is removed.
    child: Option<Child>,
    folder: TempDir,
    address: SocketAddr,
    product: Product,
}

impl DatabaseServer {
    /// Starts a server on the database in `folder`, on a free port, and waits until it serves.
    pub(crate) fn start(product: Product, folder: TempDir) -> Self {
        loop {
            let port = free_port();
            if let Some(child) = product.serve(folder.path(), port) {
                let address = (Ipv4Addr::LOCALHOST, port).into();
                return Self { child: Some(child), folder, address, product };
            }
        }
    }

    /// Kills the server (SIGKILL) and waits for its exit. Does nothing if the server is stopped.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }

    /// Sends SIGINT to the server and waits for its exit. Does nothing if the server is stopped.
    pub(crate) fn interrupt(&mut self) {
        if let Some(child) = &mut self.child {
            child.interrupt();
            let _ = poll::until(TIMEOUT, || child.has_exited().then_some(()));
        }
    }

    /// Starts a stopped server again, with the same port and data, and waits until it serves.
    pub(crate) fn restart(&mut self) {
        self.child = self.product.serve(self.folder.path(), self.address.port());
        assert!(self.child.is_some(), "another process took the port: {}", self.log());
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the server has logged.
    pub(crate) fn log(&self) -> String {
        log(self.folder.path())
    }
}

impl Product {
    /// Starts a server and waits until it serves; `None` if another process has its port.
    fn serve(&self, folder: &Path, port: u16) -> Option<Child> {
        let name = self.name;
        let child = Child::start(&(self.command)(folder, port), folder);
        let is_serving = poll::until(TIMEOUT, || {
            let log = log(folder);
            if (self.is_serving)(&log, port) {
                return Some(true);
            }
            if log.contains(self.port_taken) {
                return Some(false);
            }
            assert!(!child.has_exited(), "{name} exited at once; its log:\n{log}");
            None
        });
        let is_serving = is_serving.unwrap_or_else(|| {
            panic!("{name} does not serve after {TIMEOUT:?}; its log:\n{}", log(folder))
        });
        if is_serving {
            return Some(child);
        }
        // Unlike dropping the child, this keeps the folder.
        child.kill();
        None
    }
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::{MariaDb, Postgres};

    fn server_stops_restarts_and_is_dropped<S>(
        mut server: S,
        stop: fn(&mut S),
        restart: fn(&mut S),
        inner: fn(&S) -> &DatabaseServer,
    ) {
        let (address, folder) = (inner(&server).address(), inner(&server).folder().to_owned());
        assert!(TcpStream::connect(address).is_ok());
        stop(&mut server);
        assert!(TcpStream::connect(address).is_err());
        restart(&mut server);
        assert!(TcpStream::connect(address).is_ok());

        drop(server);

        assert!(TcpStream::connect(address).is_err());
        assert!(!folder.exists());
    }

    #[test]
    #[ignore = "needs a real PostgreSQL: make test"]
    fn postgres_serves_until_dropped_and_can_be_stopped_and_restarted() {
        let server = Postgres::start();
        server_stops_restarts_and_is_dropped(server, Postgres::stop, Postgres::restart, |server| {
            &server.server
        });
    }

    #[test]
    #[ignore = "needs a real MariaDB: make test"]
    fn mariadb_serves_until_dropped_and_can_be_killed_and_restarted() {
        let server = MariaDb::start();
        server_stops_restarts_and_is_dropped(server, MariaDb::stop, MariaDb::restart, |server| {
            &server.server
        });
    }
}
