//! A recorder that runs.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    counts::{Counters, Counts},
    queue::{Queue, Worth},
    settings::{Outlet, Recorder},
    writer::{Site, Writer},
};
use crate::{
    history::Event,
    runtime::{Clock, Monotonic, Randomness, Tasks},
};

/// A recorder that runs. Clones are the same one.
#[derive(Clone)]
pub struct Recording(Arc<Inner>);

struct Inner {
    lines: Vec<Line>,
    clock: Arc<dyn Clock>,
    /// Until when writers may try, once they are to end.
    closing: watch::Sender<Option<Monotonic>>,
}

/// What leads to one sink.
struct Line {
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
        for (archive, retention) in settings.archives {
            let tidy = archive.tidy(retention, Arc::clone(clock), Arc::clone(randomness));
            let mut closing = closing.subscribe();
            tasks.spawn(async move {
                tokio::select! {
                    () = tidy => {}
                    _ = closing.changed() => {}
                }
            });
        }
        let mut lines = Vec::new();
        for Outlet { name, folder, sink } in settings.sinks {
            let queue = Arc::new(Queue::new(settings.room, settings.pace.batch));
            let counters = Arc::new(Counters::default());
            let folder = settings.spill.as_ref().map(|spill| spill.join(folder));
            let writer = Writer::new(
                Site { name: name.clone(), folder, limit: settings.spill_limit },
                sink,
                (Arc::clone(&queue), Arc::clone(&counters)),
                settings.pace,
                (Arc::clone(clock), Arc::clone(randomness)),
                closing.subscribe(),
            );
            tasks.spawn(writer.run());
            lines.push(Line { name, queue, counters });
        }
        Self(Arc::new(Inner { lines, clock: Arc::clone(clock), closing }))
    }

    /// Something happened. Returns at once, whatever becomes of it.
    pub fn record(&self, event: Event) {
        let Some((last, others)) = self.0.lines.split_last() else { return };
        let is_over = self.0.closing.is_closed();
        let put = |line: &Line, event: Event| {
            if is_over {
                line.counters.dropped(Worth::of(&event));
            } else {
                line.queue.push(event, &line.counters);
            }
        };
        for line in others {
            put(line, event.clone());
        }
        put(last, event);
    }

    /// What became of events, for each sink by its name.
    pub fn counts(&self) -> Vec<(&str, Counts)> {
        let lines = self.0.lines.iter();
        lines.map(|line| (line.name.as_str(), line.counters.read(line.queue.len()))).collect()
    }

    /// Tells the writers to end: they have this long to empty their queues, and then put what is left into the file. Whoever owns the tasks waits
    /// for them.
    pub fn close(&self, within: Duration) {
        self.0.closing.send_replace(Some(self.0.clock.monotonic() + within));
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counts()).finish()
    }
}
