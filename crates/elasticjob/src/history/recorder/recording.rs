//! A running recorder.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    counts::{Counters, Counts},
    queue::{Importance, Queue},
    settings::{Recorder, SinkSettings},
    writer::{SinkLocation, Writer},
};
use crate::{
    history::Event,
    runtime::{Clock, Monotonic, Randomness, Tasks},
};

/// A running recorder. Clones share it.
#[derive(Clone)]
pub struct Recording(Arc<Inner>);

struct Inner {
    pipelines: Vec<SinkPipeline>,
    clock: Arc<dyn Clock>,
    /// The deadline of the writers, once the recorder is closing.
    closing: watch::Sender<Option<Monotonic>>,
}

/// The queue and counters of one sink.
struct SinkPipeline {
    name: String,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
}

impl Recording {
    pub(super) fn start(
        settings: Recorder,
        clock: &Arc<dyn Clock>,
        randomness: &Arc<dyn Randomness>,
        tasks: &mut Tasks,
    ) -> Self {
        let closing = watch::Sender::new(None);
        #[cfg(feature = "_history-store")]
        for (database, retention) in settings.databases {
            let maintenance =
                database.maintain(retention, Arc::clone(clock), Arc::clone(randomness));
            let mut closing = closing.subscribe();
            tasks.spawn(async move {
                tokio::select! {
                    () = maintenance => {}
                    _ = closing.changed() => {}
                }
            });
        }
        let mut pipelines = Vec::new();
        for SinkSettings { name, folder, sink } in settings.sinks {
            let queue = Arc::new(Queue::new(settings.capacity, settings.batching.batch));
            let counters = Arc::new(Counters::default());
            let folder = settings.spill.as_ref().map(|spill| spill.join(folder));
            let writer = Writer::new(
                SinkLocation { name: name.clone(), folder, limit: settings.spill_limit },
                sink,
                (Arc::clone(&queue), Arc::clone(&counters)),
                settings.batching,
                (Arc::clone(clock), Arc::clone(randomness)),
                closing.subscribe(),
            );
            tasks.spawn(writer.run());
            pipelines.push(SinkPipeline { name, queue, counters });
        }
        Self(Arc::new(Inner { pipelines, clock: Arc::clone(clock), closing }))
    }

    /// Records an event. Returns at once, whether or not the event will be stored.
    pub fn record(&self, event: Event) {
        let Some((last, others)) = self.0.pipelines.split_last() else { return };
        let is_closed = self.0.closing.is_closed();
        let put = |pipeline: &SinkPipeline, event: Event| {
            if is_closed {
                pipeline.counters.dropped(Importance::of(&event));
            } else {
                pipeline.queue.push(event, &pipeline.counters);
            }
        };
        for pipeline in others {
            put(pipeline, event.clone());
        }
        put(last, event);
    }

    /// Counts of events for each sink, by its name.
    pub fn counts(&self) -> Vec<(&str, Counts)> {
        let pipelines = self.0.pipelines.iter();
        pipelines
            .map(|pipeline| (pipeline.name.as_str(), pipeline.counters.read(pipeline.queue.len())))
            .collect()
    }

    /// Closes the recorder: the writers have this long to empty their queues, and then put what is left into the spill files. The owner of the tasks
    /// waits for them.
    pub fn close(&self, within: Duration) {
        self.0.closing.send_replace(Some(self.0.clock.monotonic() + within));
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counts()).finish()
    }
}
