//! From one queue to one sink.

use std::{fmt, io, panic::AssertUnwindSafe, path::PathBuf, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::sync::watch;

use super::{
    counts::Counters,
    queue::{Queue, Worth},
    spill::{Oldest, Spill, SpillError},
    weight::Room,
};
use crate::{
    history::{Event, Sink, SinkError},
    runtime::{Clock, Monotonic, Randomness},
};

/// How long to wait before a sink is asked again: at first, and at most.
const LATER: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// The same if it refused: somebody has to do something first.
const REFUSED: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(10));

/// How long to wait before a folder that was of no use is looked for again.
const REOPEN: Duration = Duration::from_mins(1);

/// How events are put together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) batch: Room,
    /// How long an event waits for others.
    pub(super) linger: Duration,
    /// How long a sink may take for a batch.
    pub(super) answer: Duration,
}

/// What a sink is called, and where its events wait.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) folder: Option<PathBuf>,
    pub(super) limit: u64,
}

pub(super) struct Writer {
    site: Site,
    sink: Arc<dyn Sink>,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    pace: Pace,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    closing: watch::Receiver<Option<Monotonic>>,
    spill: Option<Spill>,
    /// Taken from the queue and not kept yet. Comes after what is in the file.
    hand: Vec<Event>,
    trouble: Option<Trouble>,
    /// When to look for the folder again, if there is none.
    reopen: Monotonic,
    /// Whether it was said that there is none.
    is_folder_trouble_told: bool,
    /// Why the file took nothing, if that was said.
    is_spill_trouble_told: bool,
}

/// The sink does not keep what it is given.
struct Trouble {
    error: SinkError,
    pause: Duration,
    again: Monotonic,
}

/// What a sink is given.
enum Batch {
    FromFile(Oldest),
    InHand,
}

impl Writer {
    pub(super) fn new(
        site: Site,
        sink: Arc<dyn Sink>,
        (queue, counters): (Arc<Queue>, Arc<Counters>),
        pace: Pace,
        (clock, randomness): (Arc<dyn Clock>, Arc<dyn Randomness>),
        closing: watch::Receiver<Option<Monotonic>>,
    ) -> Self {
        Self {
            site,
            sink,
            queue,
            counters,
            pace,
            clock,
            randomness,
            closing,
            spill: None,
            hand: Vec::new(),
            trouble: None,
            reopen: Monotonic::from_start(Duration::ZERO),
            is_folder_trouble_told: false,
            is_spill_trouble_told: false,
        }
    }

    /// Until the recorder is closed, or dropped.
    pub(super) async fn run(mut self) {
        self.open().await;
        while self.ready().await {
            if self.lacks_folder() && self.clock.monotonic() >= self.reopen {
                self.open().await;
            }
            let batch = match self.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) => continue,
                Err(error) => {
                    // What cannot be read now is not lost: it may be read later, by this process or the next.
                    self.without_folder(&error);
                    continue;
                }
            };
            let events = match &batch {
                Batch::FromFile(oldest) => &oldest.events,
                Batch::InHand => &self.hand,
            };
            match self.keep_what_can_be(events).await {
                Ok(unfit) => {
                    self.counters.recorded(events.len() - unfit.len());
                    for (place, why) in unfit {
                        self.set_aside(&events[place], &why);
                    }
                    self.kept(batch).await;
                }
                Err(error) => self.failed(error).await,
            }
            if self.gives_up() {
                break;
            }
        }
        self.end().await;
    }

    async fn open(&mut self) {
        let Some(folder) = self.site.folder.clone() else { return };
        self.reopen = self.clock.monotonic() + REOPEN;
        let limit = self.site.limit;
        let opened = tokio::task::spawn_blocking(move || Spill::open(&folder, limit)).await;
        match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(spill) => {
                self.is_folder_trouble_told &= !spill.is_empty();
                if !spill.is_empty() {
                    tracing::info!(
                        sink = self.site.name,
                        bytes = spill.bytes(),
                        "history of an earlier process waits to be kept"
                    );
                }
                self.counters.spill_bytes(spill.bytes());
                self.spill = Some(spill);
            }
            Err(error) => self.without_folder(&error),
        }
    }

    /// Whether there should be a folder, and is none.
    fn lacks_folder(&self) -> bool {
        self.spill.is_none() && self.site.folder.is_some()
    }

    /// The folder, or what is in it, is of no use now. It is looked for again after a while.
    fn without_folder(&mut self, error: &io::Error) {
        self.spill = None;
        self.reopen = self.clock.monotonic() + REOPEN;
        if !std::mem::replace(&mut self.is_folder_trouble_told, true) {
            let folder = self.site.folder.as_deref().map(|folder| folder.display().to_string());
            tracing::error!(sink = self.site.name, folder, %error, "history cannot wait in this folder while its database is away, only in memory, and what waits there is left; hint: may this process read and write there?");
        }
    }

    /// Waits until there is something to do for the sink and it may be asked. `false` if it is time to end.
    async fn ready(&mut self) -> bool {
        loop {
            // What was in trouble may have gone with its folder: then there is nothing to ask for.
            let has_work = self.has_backlog() || self.queue.len() > 0;
            let again = self.trouble.as_ref().map(|trouble| trouble.again);
            if let Some(again) = again.filter(|_| has_work) {
                if !self.wait_for_better(again).await {
                    return true;
                }
                self.put_away().await;
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

    /// Waits until the sink may be asked again: then `false`. `true` if something came meanwhile that can wait in the file.
    async fn wait_for_better(&mut self, again: Monotonic) -> bool {
        if self.is_closing() && self.clock.monotonic() >= again.min(self.deadline()) {
            return false;
        }
        let can_wait_in_file = self.spill.is_some() && self.hand.is_empty();
        let (queue, linger) = (Arc::clone(&self.queue), self.pace.linger);
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
            () = self.clock.sleep_until(again.min(self.deadline())) => false,
            // At the end it is asked once more, at once.
            _ = closing.changed(), if !was_closing => false,
            () = something, if can_wait_in_file => true,
        }
    }

    async fn wait_for_batch(&mut self) {
        let mut closing = self.closing.clone();
        let queue = &self.queue;
        let enough = async {
            while queue.len() == 0 {
                queue.changed.notified().await;
            }
            let linger = self.clock.sleep_until(self.clock.monotonic() + self.pace.linger);
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

    /// The oldest there is.
    async fn next(&mut self) -> io::Result<Option<Batch>> {
        if self.spill.as_ref().is_some_and(|spill| !spill.is_empty()) {
            let room = self.pace.batch;
            let oldest = self.on_file(move |spill| spill.oldest(room)).await?;
            return Ok(Some(Batch::FromFile(oldest)));
        }
        if self.hand.is_empty() {
            self.hand = self.queue.take();
        }
        Ok((!self.hand.is_empty()).then_some(Batch::InHand))
    }

    /// Gives these to the sink. What is unfit, whatever it comes with, is found by halving; where that is among them, and why, is the answer.
    ///
    /// Whatever goes wrong otherwise goes wrong with all of them: some are given twice then, which a sink can take.
    async fn keep_what_can_be(&self, events: &[Event]) -> Result<Vec<(usize, String)>, SinkError> {
        let mut unfit = Vec::new();
        let mut left = vec![(0, events.len())];
        while let Some((from, to)) = left.pop() {
            match self.keep(&events[from..to]).await {
                Ok(()) => {}
                Err(SinkError::Unfit(why)) if to - from == 1 => unfit.push((from, why)),
                Err(SinkError::Unfit(_)) => {
                    let middle = from.midpoint(to);
                    left.extend([(middle, to), (from, middle)]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(unfit)
    }

    /// This one will never be kept, and nobody is to wait for it.
    fn set_aside(&self, event: &Event, why: &str) {
        let worth = Worth::of(event);
        self.counters.dropped(worth);
        tracing::error!(sink = self.site.name, about = event.about(), worth = worth.as_str(), %why, "one event of history cannot be kept, and is dropped; all others are kept");
    }

    async fn keep(&self, events: &[Event]) -> Result<(), SinkError> {
        if events.is_empty() {
            return Ok(());
        }
        let kept = AssertUnwindSafe(self.sink.keep(events)).catch_unwind();
        let until = (self.clock.monotonic() + self.pace.answer).min(self.deadline());
        let mut closing = self.closing.clone();
        // A deadline may come while it is being waited for.
        let too_late = async {
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
                Err(SinkError::Later(format!("it panicked: {}", panic_text(&*payload))))
            }),
            () = too_late => Err(SinkError::Later("it does not answer".to_owned())),
        }
    }

    async fn kept(&mut self, batch: Batch) {
        if let Batch::FromFile(oldest) = batch {
            if oldest.unreadable > 0 {
                self.counters.unreadable(oldest.unreadable);
                tracing::warn!(
                    sink = self.site.name,
                    lines = oldest.unreadable,
                    "parts of the history that waited in a file were torn or damaged, and are left out"
                );
            }
            if let Err(error) = self.on_file(move |spill| spill.forget(&oldest)).await {
                tracing::warn!(sink = self.site.name, %error, "a file of history that is kept elsewhere cannot be deleted");
            }
        } else {
            self.hand.clear();
        }
        if self.trouble.take().is_some() {
            tracing::info!(sink = self.site.name, "history is kept again");
        }
        self.is_spill_trouble_told = false;
    }

    async fn failed(&mut self, error: SinkError) {
        self.counters.failed();
        let (first, most) = match error {
            SinkError::Refused(_) => REFUSED,
            _ => LATER,
        };
        let before = self.trouble.take();
        let is_same_kind = before.as_ref().is_some_and(|trouble| {
            std::mem::discriminant(&trouble.error) == std::mem::discriminant(&error)
        });
        if !is_same_kind {
            self.tell(&error);
        }
        let pause =
            before.filter(|_| is_same_kind).map_or(first, |trouble| (trouble.pause * 2).min(most));
        let lots = 0.5 + 0.5 * self.randomness.fraction();
        let again = self.clock.monotonic() + pause.mul_f64(lots);
        self.trouble = Some(Trouble { error, pause, again });
        self.put_away().await;
    }

    fn tell(&self, error: &SinkError) {
        let place = self.spill.as_ref().and(self.site.folder.as_deref());
        let waits =
            place.map_or_else(|| "memory".to_owned(), |folder| folder.display().to_string());
        match error {
            SinkError::Refused(_) => {
                tracing::error!(sink = self.site.name, %error, waits, "history is refused; jobs go on, and it waits until that is mended");
            }
            SinkError::Later(_) | SinkError::Unfit(_) => {
                tracing::warn!(sink = self.site.name, %error, waits, "history cannot be kept now; jobs go on, and it waits");
            }
        }
    }

    /// Puts what is in hand and in the queue into the file, as far as that takes it.
    async fn put_away(&mut self) {
        while self.spill.is_some() {
            if self.hand.is_empty() {
                self.hand = self.queue.take();
            }
            if self.hand.is_empty() {
                return;
            }
            let events = std::mem::take(&mut self.hand);
            let (events, put) = self.append(events).await;
            match put {
                Ok(left_out) => {
                    self.counters.spilled(events.len() - left_out.len());
                    for worth in &left_out {
                        self.counters.dropped(*worth);
                    }
                    if !left_out.is_empty()
                        && !std::mem::replace(&mut self.is_spill_trouble_told, true)
                    {
                        self.tell_of_the_file(&"only the room for the ends of runs is left");
                    }
                }
                Err(error) => {
                    self.hand = events;
                    if !std::mem::replace(&mut self.is_spill_trouble_told, true) {
                        self.tell_of_the_file(&error);
                    }
                    return;
                }
            }
        }
    }

    fn tell_of_the_file(&self, problem: &dyn fmt::Display) {
        let folder = self.site.folder.as_deref().map(|folder| folder.display().to_string());
        tracing::error!(sink = self.site.name, folder, %problem, "not all of history can wait in its file: what is worth least is dropped, or waits in memory; hint: make room on that disk, or mend what keeps the database from taking it");
    }

    async fn append(&mut self, events: Vec<Event>) -> (Vec<Event>, Result<Vec<Worth>, SpillError>) {
        let events = Arc::new(events);
        let shared = Arc::clone(&events);
        let put = self.on_file(move |spill| spill.append(&shared)).await;
        (Arc::unwrap_or_clone(events), put)
    }

    /// Does something with the file, where it may block.
    async fn on_file<T, E>(
        &mut self,
        action: impl FnOnce(&mut Spill) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<io::Error> + Send + 'static,
    {
        let Some(mut spill) = self.spill.take() else {
            return Err(io::Error::other("there is no file").into());
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

    /// Whether to stop trying: at the end nobody waits for a sink that fails while there is a file, nor after the deadline.
    fn gives_up(&self) -> bool {
        self.is_closing()
            && self.trouble.is_some()
            && (self.spill.is_some() || self.clock.monotonic() >= self.deadline())
    }

    async fn end(mut self) {
        self.put_away().await;
        let mut lost = std::mem::take(&mut self.hand);
        loop {
            let more = self.queue.take();
            if more.is_empty() {
                break;
            }
            lost.extend(more);
        }
        for event in &lost {
            self.counters.dropped(Worth::of(event));
        }
        if !lost.is_empty() {
            let hint = match &self.site.folder {
                Some(folder) => format!("{} took no more of it", folder.display()),
                None => "a folder for it to wait in would have kept it".to_owned(),
            };
            tracing::error!(
                sink = self.site.name,
                events = lost.len(),
                hint,
                "history could not be kept before the end, and is lost"
            );
        }
    }

    fn has_backlog(&self) -> bool {
        !self.hand.is_empty() || self.spill.as_ref().is_some_and(|spill| !spill.is_empty())
    }

    fn is_closing(&self) -> bool {
        self.closing.borrow().is_some() || self.closing.has_changed().is_err()
    }

    fn deadline(&self) -> Monotonic {
        match *self.closing.borrow() {
            Some(deadline) => deadline,
            // Nobody will ever close it: whoever could is gone.
            None if self.closing.has_changed().is_err() => Monotonic::from_start(Duration::ZERO),
            None => Monotonic::from_start(Duration::MAX),
        }
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}
