//! The output of attempts: the lines of scripts, and what handlers log through `tracing`.
//!
//! * [`bounded`] limits what is kept of one attempt's output.
//! * [`buffer`] collects an attempt's lines, wherever they are printed: in the handler, on a blocking thread, in a task that carries its span.
//! * [`layer`] (feature `log-capture`) adds log records to it.

#[cfg(feature = "log-capture")]
mod layer;
mod buffer;
mod bounded;

pub(crate) use self::buffer::{OutputBuffer, OutputBuffers};
#[cfg(feature = "log-capture")]
pub use self::layer::{Layer, layer};
