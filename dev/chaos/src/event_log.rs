//! The events of all workers, in the order in which they were received.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::event::Event;

/// How long a test waits for anything.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The events of all workers. Clones share one log.
#[derive(Clone)]
pub struct EventLog {
    events: Arc<Mutex<Vec<Event>>>,
    count: watch::Sender<usize>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { events: Arc::default(), count: watch::Sender::new(0) }
    }
}

impl EventLog {
    /// All events so far.
    pub fn all(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Waits until `find`, which is called with all events after each new one, returns something. Panics when the wait times out.
    pub async fn until<T>(&self, expectation: &str, find: impl FnMut(&[Event]) -> Option<T>) -> T {
        self.wait_for(find).await.unwrap_or_else(|| {
            let all = self.all();
            let last = &all[all.len().saturating_sub(20)..];
            panic!("{expectation}: not seen in {TIMEOUT:?}; last events: {last:#?}")
        })
    }

    /// Like [`Self::until`], but returns `None` when the wait times out.
    pub async fn wait_for<T>(&self, mut find: impl FnMut(&[Event]) -> Option<T>) -> Option<T> {
        let mut count = self.count.subscribe();
        let search = async {
            loop {
                count.borrow_and_update();
                let found = find(&self.lock());
                if let Some(found) = found {
                    return found;
                }
                // `self` holds the sender, so the channel stays open.
                let _ = count.changed().await;
            }
        };
        tokio::time::timeout(TIMEOUT, search).await.ok()
    }

    pub(crate) fn push(&self, event: Event) {
        self.lock().push(event);
        self.count.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
