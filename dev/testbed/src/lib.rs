//! Real servers for tests: started as child processes on loopback, on free ports, in temporary folders, and removed when the test ends.
//!
//! - [`ZooKeeper`] is a standalone server, [`Ensemble`] three servers that elect a leader. A test can kill, freeze, thaw and restart each of them.
//! - [`Postgres`] and [`MariaDb`] are databases for job data and for history.
//! - [`Proxy`] is a TCP proxy between a client and a server that can cut connections or hold back answers.
//! - [`Certificates`] holds a certificate authority and the server and client certificates that it signed, for TLS tests.
//! - [`zookeeper_shell`] runs commands in ZooKeeper's own Java client.
//! - [`free_port`] finds a port for a server that cannot choose its own.
//! - [`golden!`] compares a text with a checked-in file, so that stored formats do not change by accident.
//!
//! This crate shares nothing between tests: a test file that wants one server for all its tests keeps it in a static. A server in a static is never
//! dropped, but neither the server nor its folder outlives the process (see `child.rs`). The same holds for certificates.
//!
//! The servers come from Debian's packages `zookeeper`, `postgresql` and `mariadb-server-core`, which
//! `scripts/install-test-servers.sh` installs. Tests that need one are marked `#[ignore = "needs a real ZooKeeper: make test"]`.

mod certificates;
mod child;
mod database;
mod ensemble;
mod folder;
#[doc(hidden)]
pub mod golden;
mod java;
mod mariadb;
mod poll;
mod ports;
mod postgres;
mod proxy;
mod shell;
mod user;
mod zookeeper;

pub use certificates::Certificates;
pub use ensemble::{Ensemble, EnsembleBuilder};
pub use mariadb::MariaDb;
pub use ports::free_port;
pub use postgres::Postgres;
pub use proxy::Proxy;
pub use shell::zookeeper_shell;
pub use zookeeper::{ZooKeeper, ZooKeeperBuilder};
