//! ElasticJob in Rust: a distributed job scheduler without a centre.
//!
//! What is here so far is the ground it stands on:
//!
//! * [`registry`] — the shared tree that instances meet in: in memory, or on ZooKeeper's protocol.
//! * [`runtime`] — the seams that tests turn by hand.
//! * `testing` (feature) — a hand-turned clock, and one named test for each promise of a registry.

pub mod registry;
pub mod runtime;
#[cfg(feature = "testing")]
pub mod testing;

/// What the README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
