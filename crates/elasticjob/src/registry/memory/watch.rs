//! A watch's queue, filled under the server's lock and emptied by whoever watches.

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
    /// Whether what was given out is not a whole picture.
    gap: bool,
    frozen: bool,
    closed: bool,
}

impl Feed {
    pub(super) fn new(prefix: Path) -> Self {
        let queue = Queue { gap: true, ..Queue::default() };
        Self { prefix, queue: Arc::new(Mutex::new(queue)), pushed: Arc::new(Notify::new()) }
    }

    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// What was not given out yet is void: a snapshot follows.
    pub(super) fn restart(&self, found: Vec<Event>) {
        let mut queue = self.lock();
        queue.gap = true;
        queue.events = std::iter::once(Event::Init).chain(found).chain([Event::InitDone]).collect();
        self.pushed.notify_one();
    }

    pub(super) fn push(&self, event: Event) {
        self.lock().events.push_back(event);
        self.pushed.notify_one();
    }

    pub(super) fn blind(&self) {
        let mut queue = self.lock();
        queue.gap = true;
        queue.events.clear();
    }

    pub(super) fn freeze(&self) {
        self.lock().frozen = true;
    }

    pub(super) fn thaw(&self) {
        self.lock().frozen = false;
        self.pushed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.pushed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing under this lock panics half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watch's own end.
pub(super) struct Source {
    pub(super) server: MemoryServer,
    pub(super) watcher: WatcherId,
    pub(super) feed: Feed,
}

#[async_trait]
impl WatchSource for Source {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            if self.feed.lock().closed {
                return None;
            }
            // A push between the look and the wait leaves a permit, so nothing is slept through.
            self.feed.pushed.notified().await;
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        let mut queue = self.feed.lock();
        if queue.frozen {
            return None;
        }
        let event = queue.events.pop_front()?;
        if event == Event::InitDone {
            queue.gap = false;
        }
        Some(event)
    }

    fn is_current(&self) -> bool {
        !self.feed.lock().gap
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.server.lock().unwatch(self.watcher);
    }
}
