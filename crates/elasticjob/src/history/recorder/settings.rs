//! What a recorder is told before it starts.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{recording::Recording, weight::Room, writer::Pace};
#[cfg(feature = "_history-store")]
use crate::history::{HistoryUrl, Retention, archive::Archive};
use crate::{
    history::Sink,
    runtime::{Clock, Randomness, Tasks},
};

/// How many bytes are kept at once. Databases take no statement that is much larger: 16 MiB are usual with MariaDB, 4 MiB not rare.
const BATCH: usize = 2 * 1024 * 1024;

/// Carries events to sinks. What may be left as it is has a default.
///
/// ```
/// use std::sync::Arc;
/// use elasticjob::{history::{Event, Recorder, Sink, SinkError}, node::Node};
///
/// struct Bell;
///
/// #[async_trait::async_trait]
/// impl Sink for Bell {
///     async fn keep(&self, batch: &[Event]) -> Result<(), SinkError> {
///         Ok(println!("{} things happened", batch.len()))
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
    pub(super) sinks: Vec<Outlet>,
    pub(super) spill: Option<PathBuf>,
    pub(super) spill_limit: u64,
    pub(super) room: Room,
    pub(super) pace: Pace,
    output_limit: usize,
    is_traced: bool,
    #[cfg(feature = "_history-store")]
    pub(super) archives: Vec<(Arc<Archive>, Retention)>,
}

/// A sink, what it is called, and what the folder is called that its events wait in.
#[derive(Clone)]
pub(super) struct Outlet {
    pub(super) name: String,
    pub(super) folder: String,
    pub(super) sink: Arc<dyn Sink>,
}

impl Recorder {
    /// With nobody to keep anything yet.
    pub fn new() -> Self {
        Self {
            sinks: Vec::new(),
            spill: None,
            spill_limit: 256 * 1024 * 1024,
            room: Room { events: 20_000, bytes: 32 * 1024 * 1024 },
            pace: Pace {
                batch: Room { events: 500, bytes: BATCH },
                linger: Duration::from_millis(500),
                answer: Duration::from_secs(30),
            },
            output_limit: 256 * 1024,
            is_traced: false,
            #[cfg(feature = "_history-store")]
            archives: Vec::new(),
        }
    }

    /// Every event goes to this one, too. The name is for people, for counters and for the file its events wait in.
    pub fn sink(mut self, name: impl Into<String>, sink: Arc<dyn Sink>) -> Self {
        let name = name.into();
        let folder = utf8_percent_encode(&name, NON_ALPHANUMERIC).to_string();
        self.sinks.push(Outlet { name, folder, sink });
        self
    }

    /// Every event goes to this database, and what is older than this is forgotten there now and then. The database need not be there yet: until it is, events
    /// wait, in a folder named after this database, so that no other is ever given them. The sink is called `history`.
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
        let archive = Arc::new(Archive::new(url));
        self.archives.push((Arc::clone(&archive), retention));
        self.sinks.push(Outlet { name: "history".to_owned(), folder, sink: archive });
        self
    }

    /// Every run and every attempt of a shard is a span for a collector, too, and attempts say which trace they are in. The sink is called `spans`.
    #[cfg(feature = "otel")]
    pub fn spans(mut self, spans: crate::history::Spans) -> Self {
        self.is_traced = true;
        self.sink("spans", Arc::new(spans))
    }

    /// Where events wait while their sink cannot keep them, for this process or the next. Several processes may share the folder. Without, they
    /// wait in memory, and are lost when the process ends.
    pub fn spill(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spill = Some(folder.into());
        self
    }

    /// How many bytes may wait in the folder for each sink; 256 MiB unless told otherwise.
    pub fn spill_limit(mut self, bytes: u64) -> Self {
        self.spill_limit = bytes;
        self
    }

    /// How many events may wait in memory for each sink, and how many bytes they may take; 20,000 and 32 MiB unless told otherwise. What comes
    /// when there is no room makes [what is worth less](super::Worth) go.
    pub fn queue(mut self, events: usize, bytes: usize) -> Self {
        self.room = Room { events: events.max(1), bytes: bytes.max(64 * 1024) };
        self
    }

    /// How many events are kept at once, and how long one waits for others to be kept with; 500 and half a second unless told otherwise. It is fewer
    /// where they are large: about 2 MiB are kept at once.
    pub fn batch(mut self, events: usize, linger: Duration) -> Self {
        self.pace.batch.events = events.max(1);
        self.pace.linger = linger;
        self
    }

    /// How many bytes of what an attempt of a shard prints are kept: half of them from the beginning, half from the end; 256 KiB unless told
    /// otherwise.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// How many bytes of what an attempt of a shard prints are kept.
    pub fn max_output(&self) -> usize {
        self.output_limit
    }

    /// Whether attempts say which trace they are in.
    pub fn is_traced(&self) -> bool {
        self.is_traced
    }

    /// Starts a writer for each sink, among `tasks`. A node does this by itself.
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
