//! A watch as its holder sees it: a queue of what happened, fed by the task in the order of the socket.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, mpsc};

use super::task::Command;
use crate::wire::{AddWatchMode, EventKind};

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something happened to a node.
    Changed {
        /// To which.
        path: String,
        /// What happened; never [`EventKind::None`].
        kind: EventKind,
    },
    /// The connection is gone: from here on nothing is told until a [`WatchEvent::Gap`].
    Suspended,
    /// Changes may have been missed. Everything from here on will be told, so whoever now reads again misses nothing.
    Gap(GapCause),
}

/// Why changes may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapCause {
    /// The connection was lost and is back, in the same session.
    Reconnected,
    /// The session was lost; the watch is set on the new one.
    NewSession,
    /// More events were waiting than the configuration allows, so they were thrown away.
    Overflow,
}

/// Sees what happens to a node, or to a node and everything below it, until dropped.
///
/// Several watches on one path share one on the server; the last one dropped removes it there.
pub struct Watch {
    path: String,
    mode: AddWatchMode,
    id: u64,
    queue: Arc<Queue>,
    // Weak, so that a forgotten watch does not keep the session open after the last client handle went.
    commands: mpsc::WeakUnboundedSender<Command>,
}

impl Watch {
    pub(super) fn new(
        path: String,
        mode: AddWatchMode,
        id: u64,
        queue: Arc<Queue>,
        commands: mpsc::WeakUnboundedSender<Command>,
    ) -> Self {
        Self { path, mode, id, queue, commands }
    }

    /// The node it was set on.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How it was set.
    pub fn mode(&self) -> AddWatchMode {
        self.mode
    }

    /// Waits for the next event; `None` once the client is closed and everything was told. Cancel safe.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            {
                let mut waiting = self.queue.lock();
                if let Some(event) = waiting.events.pop_front() {
                    return Some(event);
                }
                if waiting.closed {
                    return None;
                }
            }
            // A push between the look and the wait leaves a permit, so nothing is slept through.
            self.queue.pushed.notified().await;
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<WatchEvent> {
        self.queue.lock().events.pop_front()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(commands) = self.commands.upgrade() {
            // Nobody there: then the watch on the server is gone as well.
            let _ = commands
                .send(Command::Unwatch { path: std::mem::take(&mut self.path), id: self.id });
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({}, {:?})", self.path, self.mode)
    }
}

/// Where a watch's events wait for it. Bounded by replacing everything with a gap, because what nobody reads must not grow
/// and what was dropped must not go unnoticed.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    pushed: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<WatchEvent>,
    closed: bool,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: Mutex::default(), pushed: Notify::new(), limit: limit.max(1) }
    }

    pub(super) fn push(&self, event: WatchEvent) {
        {
            let mut waiting = self.lock();
            if waiting.events.len() < self.limit {
                waiting.events.push_back(event);
            } else {
                waiting.events.clear();
                waiting.events.push_back(WatchEvent::Gap(GapCause::Overflow));
                // A change is covered by the gap; that we are blind from here on is not.
                if event == WatchEvent::Suspended {
                    waiting.events.push_back(event);
                }
            }
        }
        self.pushed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.pushed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing under this lock can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
