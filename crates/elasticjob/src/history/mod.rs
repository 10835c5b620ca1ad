//! What happened: which shard ran where, why, how it ended, what it printed.
//!
//! ```text
//!   node ── Event ──▶ recorder ── batches ──▶ Sink (sqlite | postgres | mysql | yours)
//! ```
//!
//! A run is one fire as the cluster executes it; it has shards; a shard has attempts. Every [`Event`] stands for itself: it says all there is to say
//! about what it tells of, so that a sink can keep it without having seen what came before, twice as well as once, and in any order.

#[cfg(feature = "_history-store")]
mod archive;
mod event;
#[cfg(test)]
mod golden;
mod jdbc;
mod name;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod recorder;
mod sink;
#[cfg(feature = "_history-store")]
#[cfg_attr(
    not(feature = "history"),
    allow(dead_code, reason = "built for one database, it does not need what the others say")
)]
mod store;
mod trace;

#[cfg(feature = "otel")]
pub use self::otel::Spans;
#[cfg(feature = "log-capture")]
pub use self::output::{Layer, layer};
#[cfg(feature = "_history-store")]
pub use self::store::{
    Bucket, Cursor, Execution, ExecutionFilter, FailureGroup, HistoryUrl, JobFigures, MissedFires,
    Named, Output, OutputLine, OutputPosition, Page, Percentiles, Pruned, Retention, Run,
    RunDetails, RunFilter, RunState, Span, Store, StoreError, Tally, Trace, TraceFilter,
    default_path,
};
pub use self::{
    event::{
        AttemptId, Cut, Ended, Ending, Event, Line, Lost, Missed, Printed, Source, Started, Status,
        StatusState, Why,
    },
    jdbc::from_jdbc,
    recorder::{Counts, Recorder, Recording, Worth},
    sink::{Sink, SinkError},
};
pub(crate) use self::{
    output::{Notebook, Notebooks},
    trace::trace,
};
