//! What the cluster agrees on: where things are, what is known, who comes first, who owns which shard, who runs it.
//!
//! The public face is the ancestor's tree, node for node; the truth among Rust instances is the [`ledger`]. Decisions are pure
//! functions of a [`view`]; acts are short exchanges with the registry that say what was seen and fail if it is no longer so. A
//! [`member`] holds them together for one instance in one job. User code never runs here.

pub mod barrier;
pub mod claim;
pub mod flaw;
#[cfg(test)]
mod golden;
pub mod latch;
pub mod ledger;
pub mod member;
pub mod process;
pub mod sharding;
pub mod skew;
pub mod tree;
pub mod trigger;
pub mod view;
