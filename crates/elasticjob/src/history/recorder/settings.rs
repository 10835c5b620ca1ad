//! The settings of a recorder.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{recording::Recording, weight::Capacity, writer::BatchSettings};
#[cfg(feature = "_history-store")]
use crate::history::{HistoryUrl, Retention, database_sink::DatabaseSink};
use crate::{
    history::Sink,
    runtime::{Clock, Randomness, Tasks},
};

/// Maximum size of a batch. Databases reject much larger statements: MariaDB's limit is usually 16 MiB, and sometimes 4 MiB.
const MAX_BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Passes events to sinks. Every setting has a default.
///
/// ```
/// use std::sync::Arc;
/// use elasticjob::{history::{Event, Recorder, Sink, SinkError}, node::Node};
///
/// struct Bell;
///
/// #[async_trait::async_trait]
/// impl Sink for Bell {
///     async fn store(&self, batch: &[Event]) -> Result<(), SinkError> {
///         Ok(println!("{} events", batch.len()))
///     }
/// }
///
/// let recorder = Recorder::new().sink("bell", Arc::new(Bell)).spill("/var/lib/shop/history");
/// let node = Node::join("zookeeper://127.0.0.1:2181/shop").history(recorder);
/// # let _ = node;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Recorder {
    pub(super) sinks: Vec<SinkSettings>,
    pub(super) spill: Option<PathBuf>,
    pub(super) spill_limit: u64,
    pub(super) capacity: Capacity,
    pub(super) batching: BatchSettings,
    output_limit: usize,
    is_traced: bool,
    #[cfg(feature = "_history-store")]
    pub(super) databases: Vec<(Arc<DatabaseSink>, Retention)>,
}

/// A sink, its name, and the name of its spill folder.
#[derive(Clone)]
pub(super) struct SinkSettings {
    pub(super) name: String,
    pub(super) folder: String,
    pub(super) sink: Arc<dyn Sink>,
}

impl Recorder {
    /// A recorder without sinks.
    pub fn new() -> Self {
        Self {
            sinks: Vec::new(),
            spill: None,
            spill_limit: 256 * 1024 * 1024,
            // Ten thousand jobs of four shards that are due in one second cause 110,000 events, which are estimated at a kibibyte each.
            capacity: Capacity { events: 150_000, bytes: 160 * 1024 * 1024 },
            batching: BatchSettings {
                batch: Capacity { events: 500, bytes: MAX_BATCH_BYTES },
                linger: Duration::from_millis(500),
                timeout: Duration::from_secs(30),
            },
            output_limit: 256 * 1024,
            is_traced: false,
            #[cfg(feature = "_history-store")]
            databases: Vec::new(),
        }
    }

    /// Adds a sink, which gets every event. The name is for messages, for metrics and for its spill folder.
    pub fn sink(mut self, name: impl Into<String>, sink: Arc<dyn Sink>) -> Self {
        let name = name.into();
        let folder = utf8_percent_encode(&name, NON_ALPHANUMERIC).to_string();
        self.sinks.push(SinkSettings { name, folder, sink });
        self
    }

    /// Adds a database, which gets every event and is pruned from time to time. It may be unreachable at first: until it is reachable, events wait in
    /// a spill folder named after this database, so that no other database ever gets them. The sink is called `history`.
    ///
    /// ```
    /// use elasticjob::history::{HistoryUrl, Recorder, Retention};
    ///
    /// let url: HistoryUrl = "sqlite:/var/lib/shop/history.db".parse()?;
    /// let recorder = Recorder::new().database(url, Retention::default()).spill("/var/lib/shop/history");
    /// # drop(recorder);
    /// # Ok::<(), elasticjob::history::StoreError>(())
    /// ```
    #[cfg(feature = "_history-store")]
    pub fn database(mut self, url: HistoryUrl, retention: Retention) -> Self {
        let folder = format!("history-{}", url.key());
        let database = Arc::new(DatabaseSink::new(url));
        self.databases.push((Arc::clone(&database), retention));
        self.sinks.push(SinkSettings { name: "history".to_owned(), folder, sink: database });
        self
    }

    /// Adds an exporter of spans for every run and every attempt, and records the trace id of attempts. The sink is called `spans`.
    #[cfg(feature = "otel")]
    pub fn spans(mut self, spans: crate::history::SpanExporter) -> Self {
        self.is_traced = true;
        self.sink("spans", Arc::new(spans))
    }

    /// The folder where events wait while their sink cannot store them, for this process or the next. Several processes may share it. Without a
    /// folder, events wait in memory, and are lost when the process ends.
    pub fn spill(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill = Some(folder.into());
        self
    }

    /// Maximum number of bytes that may wait in the folder for each sink; 256 MiB by default.
    pub fn spill_limit(mut self, bytes: u64) -> Self {
        self.spill_limit = bytes;
        self
    }

    /// Maximum number of events and bytes that may wait in memory for each sink; 150,000 and 160 MiB by default. From half of that on, they wait in the spill folder, if there is one. When the queue is full, a new event
    /// replaces [less important ones](super::Importance).
    pub fn queue(mut self, events: usize, bytes: usize) -> Self {
        self.capacity = Capacity { events: events.max(1), bytes: bytes.max(64 * 1024) };
        self
    }

    /// Maximum number of events in a batch, and how long an event waits for others; 500 and half a second by default. Batches of large events have
    /// fewer: a batch has at most about 2 MiB.
    pub fn batch(mut self, events: usize, linger: Duration) -> Self {
        self.batching.batch.events = events.max(1);
        self.batching.linger = linger;
        self
    }

    /// Maximum number of bytes of an attempt's output: half for its head, half for its tail; 256 KiB by default.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// The limit set with [`Recorder::output_limit`].
    pub fn max_output(&self) -> usize {
        self.output_limit
    }

    /// Whether attempts are recorded with their trace id.
    pub fn is_traced(&self) -> bool {
        self.is_traced
    }

    /// Starts a writer task for each sink in `tasks`. A node does this itself.
    pub fn start(
        self,
        clock: &Arc<dyn Clock>,
        randomness: &Arc<dyn Randomness>,
        tasks: &mut Tasks,
    ) -> Recording {
        Recording::start(self, clock, randomness, tasks)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.sinks.iter().map(|outlet| &outlet.name).collect();
        f.debug_struct("Recorder")
            .field("sinks", &names)
            .field("spill", &self.spill)
            .finish_non_exhaustive()
    }
}
