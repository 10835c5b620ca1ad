//! Passes events to sinks without delaying the jobs that cause them.
//!
//! ```text
//!                    ┌─ queue ──▶ writer ── batch ──▶ Sink          one pipeline per sink: a slow sink delays no other
//!   record(event) ───┤              │  ▲
//!                    └─ queue …     ▼  │ first in, first out
//!                                  spill (files, up to a limit)
//! ```
//!
//! * **Recording never waits and never fails.** A full [queue] drops the least important events: output first, failures last; drops are counted.
//! * **Order**: spilled events come before the writer's pending batch, and that before the queue. So events reach a sink in the order they
//!   happened.
//! * **A sink that fails temporarily** ([`SinkError::Unavailable`]) is retried with growing delays. Meanwhile all events go to the [spill] files, where
//!   the next process finds them if this one dies.
//! * **A sink that is slower than the events** gets them from the spill files, too: what waits goes there when the [queue] is half full.
//! * **A sink that refuses** ([`SinkError::Refused`]) is treated the same, retried rarely, and logged once.
//! * **A batch with an invalid event** ([`SinkError::InvalidEvent`]) is halved until that event is found. The event is logged and counted as dropped,
//!   and all others are kept.
//! * **Shutdown**: the writers have until a deadline to empty their queues; what is left goes to the spill files, or is counted as dropped.
//!
//! [`SinkError::Unavailable`]: super::SinkError::Unavailable
//! [`SinkError::Refused`]: super::SinkError::Refused
//! [`SinkError::InvalidEvent`]: super::SinkError::InvalidEvent

mod counts;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
mod spill_line;
mod queue;
mod recording;
mod settings;
mod spill;
mod weight;
mod writer;

pub use self::{counts::Counts, queue::Importance, recording::Recording, settings::Recorder};
