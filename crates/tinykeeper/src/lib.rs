//! ZooKeeper's protocol, both ends.
