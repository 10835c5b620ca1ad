//! What happened: which shard ran where, why, how it ended, what it printed.
//!
//! ```text
//!   node ── Event ──▶ recorder ── batches ──▶ Sink (sqlite | postgres | mysql | yours)
//! ```
//!
//! A run is one fire as the cluster executes it; it has shards; a shard has attempts. Every [`Event`] stands for itself: it says all there is to say
//! about what it tells of, so that a sink can keep it without having seen what came before, twice as well as once, and in any order.

mod event;
mod sink;

pub use self::{
    event::{
        AttemptId, Cut, Ended, Ending, Event, Line, Missed, Printed, Source, Started, Status,
        StatusState, Why,
    },
    sink::{Sink, SinkError},
};
