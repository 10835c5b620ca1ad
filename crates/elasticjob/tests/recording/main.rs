//! Recording of the events of a node.

#[cfg(feature = "log-capture")]
mod capture;
mod node;
mod recorder;
mod test_sink;
#[cfg(feature = "otel")]
mod spans;
