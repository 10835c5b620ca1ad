//! From what happens to whoever keeps it, without anybody having to wait.
//!
//! ```text
//!                    ┌─ queue ──▶ writer ── batch ──▶ Sink          one line for each sink: a slow one holds up no other
//!   record(event) ───┤              │  ▲
//!                    └─ queue …     ▼  │ first in, first out
//!                                  spill (files, up to a limit)
//! ```
//!
//! * **Recording never waits and never fails.** A [queue] that is full drops what is worth least: output first, failures last; each is counted.
//! * **Order**: what is in the file comes before what the writer has in hand, and that before what is in the queue. So events reach a sink in the
//!   order they happened.
//! * **A sink that cannot keep a batch now** ([`SinkError::Later`]) is asked again, less and less often. Meanwhile everything goes to the
//!   [file](spill), and is there for the next process if this one dies.
//! * **A sink that refuses** ([`SinkError::Refused`]) is the same, asked rarely, and said once.
//! * **A batch with something in it that cannot be kept** ([`SinkError::Unfit`]) is halved until that one event is found. It is told and counted as
//!   dropped, and everything else is kept.
//! * **The end**: the writers have until a deadline to empty their queues; what is left goes to the file, or is counted as lost.
//!
//! [`SinkError::Later`]: super::SinkError::Later
//! [`SinkError::Refused`]: super::SinkError::Refused
//! [`SinkError::Unfit`]: super::SinkError::Unfit

mod counts;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
mod line;
mod queue;
mod recording;
mod settings;
mod spill;
mod weight;
mod writer;

pub use self::{counts::Counts, queue::Worth, recording::Recording, settings::Recorder};
