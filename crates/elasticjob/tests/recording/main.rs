//! Recording of the events of a node.

#[cfg(feature = "log-capture")]
mod capture;
mod node;
mod recorder;
#[cfg(feature = "otel")]
mod spans;
mod test_sink;
