//! Tools for tests of jobs and of registries.
//!
//! * [`Cluster`] — nodes in one process and a clock that the test controls: a night takes milliseconds.
//! * [`ManualClock`] — a clock that the test controls, for code that takes a [`Clock`](crate::runtime::Clock).
//! * [`conformance`] — one named test for each guarantee of a registry; [`registry_conformance!`](crate::registry_conformance) makes them tests of
//!   an adapter.

mod cluster;
pub mod conformance;
mod manual_clock;
mod paused_clock;

pub use self::{cluster::Cluster, manual_clock::ManualClock};
