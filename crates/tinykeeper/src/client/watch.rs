//! The public handle of a watch: a queue of events, which the task fills in the order it receives them.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, mpsc};

use super::task::Command;
use crate::wire::{AddWatchMode, EventKind};

/// An event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// A node changed.
    Changed {
        path: String,
        /// The change; never [`EventKind::None`].
        kind: EventKind,
    },
    /// The connection is lost: no changes are reported until the next [`WatchEvent::Gap`].
    Suspended,
    /// Changes may have been missed. Later changes are reported, so a caller that reads again now misses nothing.
    Gap(GapCause),
}

/// Why changes may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapCause {
    /// The connection was lost and restored, in the same session.
    Reconnected,
    /// The session was lost; the watch was restored in the new one.
    NewSession,
    /// More events were queued than [`Config::watch_queue`](super::Config::watch_queue) allows, so they were discarded.
    Overflow,
}

/// Reports changes of a node, or of a node and all its descendants, until dropped.
///
/// Several watches on one path share one watch on the server, which is removed when the last of them is dropped.
pub struct Watch {
    path: String,
    mode: AddWatchMode,
    id: u64,
    queue: Arc<EventQueue>,
    // Weak, so that a watch does not keep the session open after the last client handle was dropped.
    commands: mpsc::WeakUnboundedSender<Command>,
}

impl Watch {
    pub(super) fn new(
        path: String,
        mode: AddWatchMode,
        id: u64,
        queue: Arc<EventQueue>,
        commands: mpsc::WeakUnboundedSender<Command>,
    ) -> Self {
        Self { path, mode, id, queue, commands }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn mode(&self) -> AddWatchMode {
        self.mode
    }

    /// Waits for the next event; `None` once the client is closed and the queue is empty. Cancel safe.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            {
                let mut state = self.queue.lock();
                if let Some(event) = state.events.pop_front() {
                    return Some(event);
                }
                if state.is_closed {
                    return None;
                }
            }
            // A push between the check and the wait leaves a permit, so it is not missed.
            self.queue.pushed.notified().await;
        }
    }

    /// The next event, if there is one in the queue.
    pub fn try_next(&mut self) -> Option<WatchEvent> {
        self.queue.lock().events.pop_front()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(commands) = self.commands.upgrade() {
            // If the task has ended, the watch on the server has ended too.
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

/// The queued events of a watch. If it overflows, a gap replaces all its events: the queue must not grow without bound, and
/// discarded events must not go unnoticed.
#[derive(Debug)]
pub(super) struct EventQueue {
    state: Mutex<QueueState>,
    pushed: Notify,
    limit: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<WatchEvent>,
    is_closed: bool,
}

impl EventQueue {
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), pushed: Notify::new(), limit: limit.max(1) }
    }

    pub(super) fn push(&self, event: WatchEvent) {
        {
            let mut state = self.lock();
            if state.events.len() < self.limit {
                state.events.push_back(event);
            } else {
                state.events.clear();
                state.events.push_back(WatchEvent::Gap(GapCause::Overflow));
                // The gap covers a change, but not the loss of the connection.
                if event == WatchEvent::Suspended {
                    state.events.push_back(event);
                }
            }
        }
        self.pushed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.pushed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Code under this lock cannot panic, so the data is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
