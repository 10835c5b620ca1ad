//! Who keeps events.

use async_trait::async_trait;

use super::event::Event;

/// Keeps events. Yours can stand beside ours.
///
/// A sink may be given an event twice, when it was not certain whether the first time counted, and an end before its beginning. It keeps all
/// of a batch or nothing of it.
///
/// ```
/// use async_trait::async_trait;
/// use elasticjob::history::{Event, Sink, SinkError};
///
/// /// Tells somebody when a shard fails.
/// struct Bell;
///
/// #[async_trait]
/// impl Sink for Bell {
///     async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
///         for event in batch {
///             if let Event::Ended(ended) = event && !ended.ending.is_done() {
///                 println!("{} failed", ended.started.run);
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Keeps all of these.
    async fn keep(&self, batch: &[Event]) -> Result<(), SinkError>;
}

/// Why events could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// It may work later: the database is down, or busy.
    #[error("{0}")]
    Later(String),
    /// It will not work until somebody does something: rights are missing, a table has other columns, the disk is full.
    #[error("{0}")]
    Refused(String),
    /// Something in this batch cannot be kept, now or ever: it is too large, or there is a character that there is no room for. Others are given in
    /// smaller batches then, and an event that comes alone and is unfit is dropped.
    #[error("{0}")]
    Unfit(String),
}
