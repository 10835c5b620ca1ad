//! ZooKeeper's protocol, both ends: a client, and a server in one process for development, tests and small installs.
//!
//! * [`wire`] — the protocol as bytes, shared by both ends.
//! * [`tree`] — what ZooKeeper's tree *is*: pure, no I/O, no clock.
//! * [`client`] — one connection to a server or an ensemble; one ordered stream of answers and notifications.
//! * [`server`] — sockets and sessions around the tree; [`store`] — what survives a restart.

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;
pub mod tree;
pub mod wire;

/// What the README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
