//! Everything any worker said, in the order it was heard.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::said::Said;

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_mins(1);

/// Everything any worker said. Clones are the same record.
#[derive(Clone)]
pub struct Heard {
    said: Arc<Mutex<Vec<Said>>>,
    count: watch::Sender<usize>,
}

impl Default for Heard {
    fn default() -> Self {
        Self { said: Arc::default(), count: watch::Sender::new(0) }
    }
}

impl Heard {
    /// All of it so far.
    pub fn all(&self) -> Vec<Said> {
        self.lock().clone()
    }

    /// Looks at all that was said, after each line, until there is something to see; a test fails if there never is.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&[Said]) -> Option<T>) -> T {
        self.wait(look).await.unwrap_or_else(|| {
            let all = self.all();
            let last = &all[all.len().saturating_sub(20)..];
            panic!("{what}: not seen in {PATIENCE:?}; last heard: {last:#?}")
        })
    }

    /// As [`Self::until`]; nothing if there never is.
    pub async fn wait<T>(&self, mut look: impl FnMut(&[Said]) -> Option<T>) -> Option<T> {
        let mut count = self.count.subscribe();
        let seeing = async {
            loop {
                count.borrow_and_update();
                let seen = look(&self.lock());
                if let Some(seen) = seen {
                    return seen;
                }
                // The sender is ours: it does not go away.
                let _ = count.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, seeing).await.ok()
    }

    pub(crate) fn push(&self, said: Said) {
        self.lock().push(said);
        self.count.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
