//! Sinks: destinations of events.

use async_trait::async_trait;

use super::event::Event;

/// Stores events, or passes them on. A program can add its own.
///
/// A sink may get an event twice, if it was not certain whether the first time succeeded, and the end of an attempt before its start. It stores
/// all of a batch or nothing of it.
///
/// ```
/// use async_trait::async_trait;
/// use elasticjob::history::{Event, Sink, SinkError};
///
/// /// Prints a line when a shard fails.
/// struct Bell;
///
/// #[async_trait]
/// impl Sink for Bell {
///     async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
///         for event in batch {
///             if let Event::Ended(ended) = event && !ended.outcome.is_success() {
///                 println!("{} failed", ended.started.run);
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Stores all of these events.
    async fn store(&self, batch: &[Event]) -> Result<(), SinkError>;
}

/// Why events could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Temporary: the database is down, or busy.
    #[error("{0}")]
    Unavailable(String),
    /// Needs an operator: rights are missing, a table has other columns, the disk is full.
    #[error("{0}")]
    Refused(String),
    /// An event in this batch can never be stored: it is too large, or contains an unsupported character. The recorder retries with smaller
    /// batches, and drops an event that fails alone.
    #[error("{0}")]
    InvalidEvent(String),
}
