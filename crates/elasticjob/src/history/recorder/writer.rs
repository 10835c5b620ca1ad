//! The writer task of a sink: takes batches from its queue and stores them.

use std::{fmt, io, panic::AssertUnwindSafe, path::PathBuf, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::sync::watch;

use super::{
    counts::Counters,
    queue::{Importance, Queue},
    spill::{Spill, SpillError, SpilledBatch},
    weight::Capacity,
};
use crate::{
    history::{Event, Sink, SinkError},
    runtime::{Clock, Monotonic, Randomness},
};

/// First and longest delay before a failed batch is retried.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// The same if the sink refused the batch, which an operator has to fix first.
const REFUSED_RETRY_DELAYS: (Duration, Duration) =
    (Duration::from_mins(1), Duration::from_mins(10));

/// Delay before an unusable spill folder is tried again.
const REOPEN_DELAY: Duration = Duration::from_mins(1);

/// How events are batched.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchSettings {
    pub(super) batch: Capacity,
    /// How long an event waits for others.
    pub(super) linger: Duration,
    /// Limit for storing a batch.
    pub(super) timeout: Duration,
}

/// The name and spill folder of a sink.
#[derive(Debug)]
pub(super) struct SinkLocation {
    pub(super) name: String,
    pub(super) folder: Option<PathBuf>,
    pub(super) limit: u64,
}

pub(super) struct Writer {
    location: SinkLocation,
    sink: Arc<dyn Sink>,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    batching: BatchSettings,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    closing: watch::Receiver<Option<Monotonic>>,
    spill: Option<Spill>,
    /// Events taken from the queue and not stored yet. They come after all spilled events.
    pending: Vec<Event>,
    failure: Option<SinkFailure>,
    /// When to try the spill folder again, if it is unusable.
    reopen: Monotonic,
    /// Whether it was logged that the folder is unusable.
    is_folder_problem_logged: bool,
    /// Whether it was logged that events cannot be spilled.
    is_spill_problem_logged: bool,
}

/// The sink fails to store batches.
struct SinkFailure {
    error: SinkError,
    delay: Duration,
    retry_at: Monotonic,
}

/// Where a batch comes from.
enum BatchSource {
    Spilled(SpilledBatch),
    Pending,
}

impl Writer {
    pub(super) fn new(
        location: SinkLocation,
        sink: Arc<dyn Sink>,
        (queue, counters): (Arc<Queue>, Arc<Counters>),
        batching: BatchSettings,
        (clock, randomness): (Arc<dyn Clock>, Arc<dyn Randomness>),
        closing: watch::Receiver<Option<Monotonic>>,
    ) -> Self {
        Self {
            location,
            sink,
            queue,
            counters,
            batching,
            clock,
            randomness,
            closing,
            spill: None,
            pending: Vec::new(),
            failure: None,
            reopen: Monotonic::from_start(Duration::ZERO),
            is_folder_problem_logged: false,
            is_spill_problem_logged: false,
        }
    }

    /// Runs until the recorder is closed or dropped.
    pub(super) async fn run(mut self) {
        self.open().await;
        while self.ready().await {
            if self.lacks_folder() && self.clock.monotonic() >= self.reopen {
                self.open().await;
            }
            if self.queue.is_half_full() && self.has_space_for_a_queue() {
                self.spill_pending().await;
            }
            let batch = match self.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) => continue,
                Err(error) => {
                    // Events that cannot be read now are not lost: this process or the next may read them later.
                    self.mark_folder_unusable(&error);
                    continue;
                }
            };
            let events = match &batch {
                BatchSource::Spilled(spilled) => &spilled.events,
                BatchSource::Pending => &self.pending,
            };
            match self.keep_valid(events).await {
                Ok(unfit) => {
                    self.counters.recorded(events.len() - unfit.len());
                    for (index, why) in unfit {
                        self.drop_unfit(&events[index], &why);
                    }
                    self.on_kept(batch).await;
                }
                Err(error) => self.on_failed(error).await,
            }
            if self.gives_up() {
                break;
            }
        }
        self.end().await;
    }

    async fn open(&mut self) {
        let Some(folder) = self.location.folder.clone() else { return };
        self.reopen = self.clock.monotonic() + REOPEN_DELAY;
        let limit = self.location.limit;
        let opened = tokio::task::spawn_blocking(move || Spill::open(&folder, limit)).await;
        match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(spill) => {
                self.is_folder_problem_logged &= !spill.is_empty();
                if !spill.is_empty() {
                    tracing::info!(
                        sink = self.location.name,
                        bytes = spill.bytes(),
                        "history of an earlier process found"
                    );
                }
                self.counters.spill_bytes(spill.bytes());
                self.spill = Some(spill);
            }
            Err(error) => self.mark_folder_unusable(&error),
        }
    }

    /// Whether a slow sink may get what waits in the queue from the files. Otherwise a full queue would drop events although there is space for them.
    fn has_space_for_a_queue(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.bytes() < self.location.limit / 2)
    }

    /// Whether a spill folder is configured but unusable.
    fn lacks_folder(&self) -> bool {
        self.spill.is_none() && self.location.folder.is_some()
    }

    /// Marks the folder as unusable. It is tried again after a while.
    fn mark_folder_unusable(&mut self, error: &io::Error) {
        self.spill = None;
        self.reopen = self.clock.monotonic() + REOPEN_DELAY;
        if !std::mem::replace(&mut self.is_folder_problem_logged, true) {
            let folder = self.location.folder.as_deref().map(|folder| folder.display().to_string());
            tracing::error!(sink = self.location.name, folder, %error, hint = "can this process read and write the folder?", "history spill folder is unusable, events wait in memory only");
        }
    }

    /// Waits until there is a batch to store and the sink may be tried. Returns `false` when it is time to end.
    async fn ready(&mut self) -> bool {
        loop {
            // The batch that failed may be gone with its folder; then there is nothing to retry.
            let has_work = self.has_backlog() || self.queue.len() > 0;
            let retry_at = self.failure.as_ref().map(|failure| failure.retry_at);
            if let Some(retry_at) = retry_at.filter(|_| has_work) {
                if !self.wait_for_retry(retry_at).await {
                    return true;
                }
                self.spill_pending().await;
            } else if self.has_backlog() || self.queue.has_batch() {
                return true;
            } else if self.is_closing() {
                return self.queue.len() > 0;
            } else {
                self.wait_for_batch().await;
                return true;
            }
        }
    }

    /// Waits until the sink may be tried again and returns `false`, or until new events can be spilled and returns `true`.
    async fn wait_for_retry(&mut self, retry_at: Monotonic) -> bool {
        if self.is_closing() && self.clock.monotonic() >= retry_at.min(self.deadline()) {
            return false;
        }
        let can_spill = self.spill.is_some() && self.pending.is_empty();
        let (queue, linger) = (Arc::clone(&self.queue), self.batching.linger);
        let something = async {
            while queue.len() == 0 {
                queue.changed.notified().await;
            }
            self.clock.sleep_until(self.clock.monotonic() + linger).await;
        };
        let was_closing = self.is_closing();
        let mut closing = self.closing.clone();
        tokio::select! {
            biased;
            () = self.clock.sleep_until(retry_at.min(self.deadline())) => false,
            // When the recorder closes, the sink is tried once more at once.
            _ = closing.changed(), if !was_closing => false,
            () = something, if can_spill => true,
        }
    }

    async fn wait_for_batch(&mut self) {
        let mut closing = self.closing.clone();
        let queue = &self.queue;
        let enough = async {
            while queue.len() == 0 {
                queue.changed.notified().await;
            }
            let linger = self.clock.sleep_until(self.clock.monotonic() + self.batching.linger);
            let full = async {
                while !queue.has_batch() {
                    queue.changed.notified().await;
                }
            };
            tokio::select! {
                () = linger => {}
                () = full => {}
            }
        };
        tokio::select! {
            biased;
            () = enough => {}
            _ = closing.changed() => {}
            () = self.clock.sleep_until(self.reopen), if self.lacks_folder() => {}
        }
    }

    /// The oldest batch.
    async fn next(&mut self) -> io::Result<Option<BatchSource>> {
        if self.spill.as_ref().is_some_and(|spill| !spill.is_empty()) {
            let capacity = self.batching.batch;
            let spilled = self.with_spill(move |spill| spill.read_oldest(capacity)).await?;
            return Ok(Some(BatchSource::Spilled(spilled)));
        }
        if self.pending.is_empty() {
            self.pending = self.queue.take();
        }
        Ok((!self.pending.is_empty()).then_some(BatchSource::Pending))
    }

    /// Stores these events. Events that the sink cannot store are found by halving the batch; returns their indexes and why.
    ///
    /// Any other error fails the whole batch: some events are sent twice then, which a sink can handle.
    async fn keep_valid(&self, events: &[Event]) -> Result<Vec<(usize, String)>, SinkError> {
        let mut unfit = Vec::new();
        let mut left = vec![(0, events.len())];
        while let Some((from, to)) = left.pop() {
            match self.keep(&events[from..to]).await {
                Ok(()) => {}
                Err(SinkError::InvalidEvent(why)) if to - from == 1 => unfit.push((from, why)),
                Err(SinkError::InvalidEvent(_)) => {
                    let middle = from.midpoint(to);
                    left.extend([(middle, to), (from, middle)]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(unfit)
    }

    /// Drops an event that can never be stored, so that no other waits for it.
    fn drop_unfit(&self, event: &Event, why: &str) {
        let worth = Importance::of(event);
        self.counters.dropped(worth);
        tracing::error!(
            sink = self.location.name,
            about = event.about(),
            worth = worth.as_str(),
            error = why,
            "history event dropped, it cannot be stored"
        );
    }

    async fn keep(&self, events: &[Event]) -> Result<(), SinkError> {
        if events.is_empty() {
            return Ok(());
        }
        let kept = AssertUnwindSafe(self.sink.store(events)).catch_unwind();
        let until = (self.clock.monotonic() + self.batching.timeout).min(self.deadline());
        let mut closing = self.closing.clone();
        // The recorder may be closed while the sink is being waited for.
        let deadline_reached = async {
            let sleep = self.clock.sleep_until(until);
            tokio::select! {
                () = sleep => {}
                () = async {
                    let deadline = closing.wait_for(Option::is_some).await.ok().and_then(|closing| *closing);
                    match deadline {
                        Some(deadline) => self.clock.sleep_until(deadline).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        };
        tokio::select! {
            biased;
            kept = kept => kept.unwrap_or_else(|payload| {
                Err(SinkError::Unavailable(format!("the sink panicked: {}", panic_text(&*payload))))
            }),
            () = deadline_reached => Err(SinkError::Unavailable("the sink does not answer".to_owned())),
        }
    }

    async fn on_kept(&mut self, batch: BatchSource) {
        if let BatchSource::Spilled(spilled) = batch {
            if spilled.unreadable > 0 {
                self.counters.unreadable(spilled.unreadable);
                tracing::warn!(
                    sink = self.location.name,
                    lines = spilled.unreadable,
                    "damaged lines of a history spill file skipped"
                );
            }
            if let Err(error) = self.with_spill(move |spill| spill.remove(&spilled)).await {
                tracing::warn!(sink = self.location.name, %error, "history spill file not deleted");
            }
        } else {
            self.pending.clear();
        }
        if self.failure.take().is_some() {
            tracing::info!(sink = self.location.name, "history is stored again");
        }
        self.is_spill_problem_logged = false;
    }

    async fn on_failed(&mut self, error: SinkError) {
        self.counters.failed();
        let (first, most) = match error {
            SinkError::Refused(_) => REFUSED_RETRY_DELAYS,
            _ => RETRY_DELAYS,
        };
        let previous = self.failure.take();
        let is_same_kind = previous.as_ref().is_some_and(|failure| {
            std::mem::discriminant(&failure.error) == std::mem::discriminant(&error)
        });
        if !is_same_kind {
            self.log_failure(&error);
        }
        let delay = previous
            .filter(|_| is_same_kind)
            .map_or(first, |failure| (failure.delay * 2).min(most));
        let jitter = 0.5 + 0.5 * self.randomness.fraction();
        let retry_at = self.clock.monotonic() + delay.mul_f64(jitter);
        self.failure = Some(SinkFailure { error, delay, retry_at });
        self.spill_pending().await;
    }

    fn log_failure(&self, error: &SinkError) {
        let spill_folder = self.spill.as_ref().and(self.location.folder.as_deref());
        let waiting_in =
            spill_folder.map_or_else(|| "memory".to_owned(), |folder| folder.display().to_string());
        match error {
            SinkError::Refused(_) => {
                tracing::error!(sink = self.location.name, %error, waiting_in, "history refused, jobs continue and events wait until that is fixed");
            }
            SinkError::Unavailable(_) | SinkError::InvalidEvent(_) => {
                tracing::warn!(sink = self.location.name, %error, waiting_in, "history not stored, jobs continue and events wait");
            }
        }
    }

    /// Spills pending and queued events, as far as there is room.
    async fn spill_pending(&mut self) {
        while self.spill.is_some() {
            if self.pending.is_empty() {
                self.pending = self.queue.take();
            }
            if self.pending.is_empty() {
                return;
            }
            let events = std::mem::take(&mut self.pending);
            let (events, put) = self.append(events).await;
            match put {
                Ok(rejected) => {
                    self.counters.spilled(events.len() - rejected.len());
                    for worth in &rejected {
                        self.counters.dropped(*worth);
                    }
                    if !rejected.is_empty()
                        && !std::mem::replace(&mut self.is_spill_problem_logged, true)
                    {
                        self.log_spill_problem(&"only space reserved for the ends of runs is left");
                    }
                }
                Err(error) => {
                    self.pending = events;
                    if !std::mem::replace(&mut self.is_spill_problem_logged, true) {
                        self.log_spill_problem(&error);
                    }
                    return;
                }
            }
        }
    }

    fn log_spill_problem(&self, problem: &dyn fmt::Display) {
        let folder = self.location.folder.as_deref().map(|folder| folder.display().to_string());
        tracing::error!(sink = self.location.name, folder, error = %problem, hint = "free disk space, or fix the database", "history cannot be spilled completely, the least important events are dropped or wait in memory");
    }

    async fn append(
        &mut self,
        events: Vec<Event>,
    ) -> (Vec<Event>, Result<Vec<Importance>, SpillError>) {
        let events = Arc::new(events);
        let shared = Arc::clone(&events);
        let put = self.with_spill(move |spill| spill.append(&shared)).await;
        (Arc::unwrap_or_clone(events), put)
    }

    /// Runs an action on the spill files on a blocking thread.
    async fn with_spill<T, E>(
        &mut self,
        action: impl FnOnce(&mut Spill) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<io::Error> + Send + 'static,
    {
        let Some(mut spill) = self.spill.take() else {
            return Err(io::Error::other("there is no spill folder").into());
        };
        let done = tokio::task::spawn_blocking(move || {
            let done = action(&mut spill);
            (spill, done)
        });
        match done.await {
            Ok((spill, done)) => {
                self.counters.spill_bytes(spill.bytes());
                self.spill = Some(spill);
                done
            }
            Err(error) => Err(io::Error::other(error).into()),
        }
    }

    /// Whether to stop retrying: when closing, a failing sink is not waited for if there is a spill folder, nor after the deadline.
    fn gives_up(&self) -> bool {
        self.is_closing()
            && self.failure.is_some()
            && (self.spill.is_some() || self.clock.monotonic() >= self.deadline())
    }

    async fn end(mut self) {
        self.spill_pending().await;
        let mut lost = std::mem::take(&mut self.pending);
        loop {
            let more = self.queue.take();
            if more.is_empty() {
                break;
            }
            lost.extend(more);
        }
        for event in &lost {
            self.counters.dropped(Importance::of(event));
        }
        if !lost.is_empty() {
            let hint = match &self.location.folder {
                Some(folder) => format!("{} has no room left", folder.display()),
                None => "configure a spill folder".to_owned(),
            };
            tracing::error!(
                sink = self.location.name,
                events = lost.len(),
                hint,
                "history lost, it could not be stored before shutdown"
            );
        }
    }

    fn has_backlog(&self) -> bool {
        !self.pending.is_empty() || self.spill.as_ref().is_some_and(|spill| !spill.is_empty())
    }

    fn is_closing(&self) -> bool {
        self.closing.borrow().is_some() || self.closing.has_changed().is_err()
    }

    fn deadline(&self) -> Monotonic {
        match *self.closing.borrow() {
            Some(deadline) => deadline,
            // The recorder was dropped without being closed.
            None if self.closing.has_changed().is_err() => Monotonic::from_start(Duration::ZERO),
            None => Monotonic::from_start(Duration::MAX),
        }
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
