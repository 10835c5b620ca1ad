//! Registry adapter in memory, built on `tinykeeper::tree`, the same tree that the tinykeeper server serves over the network.
//!
//! One [`MemoryServer`] is one shared tree; every [`MemoryServer::join`] adds a member with its own session. Tests disconnect,
//! freeze and expire members through [`MemoryRegistry::link`]. Members then behave as ZooKeeper clients do: the outcome of a
//! request in flight is unknown, watches start over, and an expired member gets a new session.

mod link;
mod member;
mod server;
mod watch;

pub use self::{link::Link, member::MemoryRegistry, server::MemoryServer};
