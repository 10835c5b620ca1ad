//! For tests: of jobs, and of registries.
//!
//! * [`ManualClock`] — time that passes when told to.
//! * [`conformance`] — one named test for each promise of a registry; [`registry_conformance!`](crate::registry_conformance)
//!   makes them tests of an adapter.

mod clock;
pub mod conformance;

pub use self::clock::ManualClock;
