//! A registry in memory: `tinykeeper::tree` in process, the same model the wire server serves.
//!
//! One [`MemoryServer`] is one shared tree; every [`MemoryServer::join`] is a member with a session of its own. Members can be
//! cut off, frozen and expired by tests ([`MemoryRegistry::link`]), and behave then as a ZooKeeper client does: a request that
//! was on its way is unknown, watches start over, an expired member gets a new session.

mod link;
mod member;
mod server;
mod watch;

pub use self::{link::Link, member::MemoryRegistry, server::MemoryServer};
