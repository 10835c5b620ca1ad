//! What attempts print: the lines of scripts, and what a handler logs through `tracing`.
//!
//! * [`page`] keeps what one attempt prints within bounds.
//! * [`notebook`] is where an attempt's lines go, wherever they are printed: in the handler, on a thread of its own, in a task that carries its span.
//! * [`layer`] (feature `log-capture`) writes log records into it.

#[cfg(feature = "log-capture")]
mod layer;
mod notebook;
mod page;

#[cfg(feature = "log-capture")]
pub use self::layer::{Layer, layer};
pub(crate) use self::notebook::{Notebook, Notebooks};
