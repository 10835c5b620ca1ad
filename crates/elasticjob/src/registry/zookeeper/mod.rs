//! A registry on ZooKeeper's protocol: a real ensemble, a single server, or tinykeeper.

mod adapter;
mod outage;
mod walk;

pub use self::adapter::ZooKeeper;
