//! Real servers for tests: started as child processes on loopback, on free ports, in temporary
//! folders, and gone when the test is.
//!
//! - [`ZooKeeper`] is one standalone server, [`Ensemble`] three that elect a leader. Each can be
//!   killed, frozen, thawed and restarted, so a test can do to it what the world does.
//! - [`Postgres`] and [`MariaDb`] are databases for what jobs write, and for history.
//! - [`Proxy`] stands between a client and a server, to cut the one off from the other or to keep
//!   the answers back.
//! - [`Certificates`] are what a TLS test needs: an authority, a server and a client it vouches for.
//! - [`zookeeper_shell`] is the Java client, typing.
//! - [`free_port`] finds a port for a server that cannot find its own.
//! - [`golden!`] compares a text with a file that is checked in, so that what is stored keeps its words.
//!
//! There is nothing shared here: a test file that wants one server for all its tests keeps it in a
//! static of its own. A server in a static is never dropped, yet it does not outlive the process
//! (see `child.rs`), and neither does its folder. The same goes for certificates.
//!
//! The servers come from Debian's packages `zookeeper`, `postgresql` and `mariadb-server-core`, which
//! `scripts/install-test-servers.sh` installs. Tests that need one are marked `#[ignore = "needs a real ZooKeeper: make test"]`.

mod certificates;
mod child;
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
