//! From what happens on a node to whoever keeps it.

#[cfg(feature = "log-capture")]
mod capture;
mod node;
mod recorder;
mod shelf;
#[cfg(feature = "otel")]
mod spans;
