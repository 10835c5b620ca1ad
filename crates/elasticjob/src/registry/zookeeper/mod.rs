//! Registry adapter for ZooKeeper's protocol: a real ensemble, a single server, or tinykeeper.

mod adapter;
mod node_watch;
mod read_batches;
mod reconnect;
mod snapshot_watch;

pub use self::adapter::ZooKeeper;
