//! A ZooKeeper client, and a ZooKeeper server in one process for development, tests and small installations.
//!
//! * [`wire`]: the wire protocol, shared by client and server.
//! * [`tree`]: an in-memory model of ZooKeeper's tree, without I/O and clock.
//! * [`client`]: one connection to a server or an ensemble, with one ordered stream of replies and notifications.
//! * [`server`]: sockets and sessions around the tree.
//! * [`store`]: the server's log and snapshots on disk.

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;
pub mod tree;
pub mod wire;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
