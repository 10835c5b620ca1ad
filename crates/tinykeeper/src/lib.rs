//! ZooKeeper's protocol, both ends: a client, and a server in one process for development, tests and small installs.
//!
//! * [`wire`] — the protocol as bytes, shared by both ends.
//! * [`tree`] — what ZooKeeper's tree *is*: pure, no I/O, no clock.
//! * [`client`] — one connection to a server or an ensemble; one ordered stream of answers and notifications.
//! * [`server`] — sockets and sessions around the tree; [`store`] — what survives a restart.

pub mod tree;
pub mod wire;
