//! The event queue of a watch, filled under the server's lock and drained by the watch's consumer.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tinykeeper::tree::WatcherId;
use tokio::sync::Notify;

use super::server::MemoryServer;
use crate::registry::{
    path::Path,
    watch::{Event, WatchSource},
};

/// The queue between the server and one watch.
#[derive(Clone)]
pub(super) struct Feed {
    prefix: Path,
    queue: Arc<Mutex<Queue>>,
    pushed: Arc<Notify>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// The delivered events do not form a complete snapshot plus changes.
    has_gap: bool,
    is_frozen: bool,
    is_closed: bool,
}

impl Feed {
    pub(super) fn new(prefix: Path) -> Self {
        let queue = Queue { has_gap: true, ..Queue::default() };
        Self { prefix, queue: Arc::new(Mutex::new(queue)), pushed: Arc::new(Notify::new()) }
    }

    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Replaces the undelivered events with a new snapshot.
    pub(super) fn restart(&self, found: Vec<Event>) {
        let mut queue = self.lock();
        queue.has_gap = true;
        queue.events = std::iter::once(Event::Init).chain(found).chain([Event::InitDone]).collect();
        self.pushed.notify_one();
    }

    pub(super) fn push(&self, event: Event) {
        self.lock().events.push_back(event);
        self.pushed.notify_one();
    }

    /// Discards undelivered events; the next snapshot closes the gap.
    pub(super) fn mark_gap(&self) {
        let mut queue = self.lock();
        queue.has_gap = true;
        queue.events.clear();
    }

    pub(super) fn freeze(&self) {
        self.lock().is_frozen = true;
    }

    pub(super) fn thaw(&self) {
        self.lock().is_frozen = false;
        self.pushed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.pushed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code under this lock can panic with the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The consumer's end of a [`Feed`].
pub(super) struct FeedSource {
    pub(super) server: MemoryServer,
    pub(super) watcher: WatcherId,
    pub(super) feed: Feed,
}

#[async_trait]
impl WatchSource for FeedSource {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.feed.lock().is_closed {
                return None;
            }
            // `notify_one` stores a permit, so a push between the check and the wait is not missed.
            self.feed.pushed.notified().await;
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        let mut queue = self.feed.lock();
        if queue.is_frozen {
            return None;
        }
        let event = queue.events.pop_front()?;
        if event == Event::InitDone {
            queue.has_gap = false;
        }
        Some(event)
    }

    fn is_current(&self) -> bool {
        !self.feed.lock().has_gap
    }
}

impl Drop for FeedSource {
    fn drop(&mut self) {
        self.server.lock().unwatch(self.watcher);
    }
}
