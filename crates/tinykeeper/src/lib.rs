//! ZooKeeper’s protocol, both ends.
pub mod wire;
