//! What the instances of a job agree on through the registry: the leader, the owner of each shard, and its holder.
//!
//! The registry holds Java ElasticJob's [`tree`], node for node, so that Java instances can take part. Among Rust instances the
//! [`ledger`] beside it is authoritative. Decisions are pure functions of a [`view`], a local mirror of the tree. Writes are
//! transactions that check everything the decision relied on and fail if any of it has changed. A [`member`] combines both for
//! one instance in one job. User code never runs in this module.

pub mod barrier;
pub mod claim;
pub mod ephemerals;
pub mod flaw;
pub mod floor;
#[cfg(test)]
mod golden;
pub mod latch;
pub mod ledger;
pub mod member;
pub mod process;
pub mod server_status;
pub mod shard_ranges;
pub mod sharding;
pub mod clock_skew;
pub mod tree;
pub mod trigger;
pub mod view;
