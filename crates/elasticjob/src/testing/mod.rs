//! For tests: of jobs, and of registries.
//!
//! * [`Cluster`] — nodes in one process whose time passes when told to: a night in milliseconds.
//! * [`ManualClock`] — time that passes when told to, for whoever takes a [`Clock`](crate::runtime::Clock).
//! * [`conformance`] — one named test for each promise of a registry; [`registry_conformance!`](crate::registry_conformance)
//!   makes them tests of an adapter.

mod clock;
mod cluster;
pub mod conformance;
mod held;

pub use self::{clock::ManualClock, cluster::Cluster};
