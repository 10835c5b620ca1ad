//! Run history: which shard ran where, why, with which outcome, and what it printed.
//!
//! ```text
//!   node ── Event ──▶ recorder ── batches ──▶ Sink (sqlite | postgres | mysql | yours)
//! ```
//!
//! A run is one fire or trigger as the cluster executes it; it has shards, and a shard has attempts. Every [`Event`] is complete in itself, so
//! that a sink can store it without having seen earlier events, twice as well as once, and in any order.

#[cfg(feature = "_history-store")]
mod database_sink;
mod event;
#[cfg(test)]
mod golden;
mod jdbc;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod recorder;
mod sink;
mod stable_hash;
#[cfg(feature = "_history-store")]
#[cfg_attr(
    not(feature = "history"),
    allow(dead_code, reason = "a build for one database does not use the code of the others")
)]
mod store;
mod stored_reason;
mod trace;

#[cfg(feature = "otel")]
pub use self::otel::SpanExporter;
#[cfg(feature = "log-capture")]
pub use self::output::{Layer, layer};
#[cfg(feature = "_history-store")]
pub use self::store::{
    AttemptState, Bucket, Cursor, Execution, ExecutionFilter, FailureGroup, HistoryUrl, JobFigures,
    MissedFires, NameKind, Output, OutputLine, OutputPosition, Page, Percentiles, PruneSummary,
    Retention, Run, RunDetails, RunFilter, RunState, Span, Store, StoreError, Totals, Trace,
    TraceFilter, default_path,
};
pub use self::{
    event::{
        AttemptEnded, AttemptId, AttemptLost, AttemptStarted, Event, FiresMissed, Line,
        MissedReason, OutputCut, OutputPrinted, Status, StatusState,
    },
    jdbc::from_jdbc,
    recorder::{Counts, Importance, Recorder, Recording},
    sink::{Sink, SinkError},
};
pub(crate) use self::{
    output::{OutputBuffer, OutputBuffers},
    trace::trace_id,
};
