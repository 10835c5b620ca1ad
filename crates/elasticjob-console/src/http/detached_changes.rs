//! Changes that are under way, whoever still waits for them.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Tasks;
use tokio::sync::{Semaphore, oneshot};

/// How many changes may be under way; others wait to be begun.
const MOST_AT_ONCE: usize = 1_024;

/// Changes that are under way, whoever still waits for them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Errands {
    tasks: Arc<Mutex<Tasks>>,
    turns: Arc<Semaphore>,
}

impl Default for Errands {
    fn default() -> Self {
        Self { tasks: Arc::default(), turns: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }
}

impl Errands {
    /// Does it to its end, even if nobody waits for that any more. Nothing if it broke off.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        let (tell, told) = oneshot::channel();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            // Perhaps nobody waits for it any more.
            let _ = tell.send(work.await);
            drop(turn);
        });
        told.await.ok()
    }

    /// Waits for those that are under way; after `patience` the rest are ended.
    pub async fn finish(&self, patience: Duration) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if !tasks.finish(patience).await {
            tracing::warn!("changes were under way that did not come to their end");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_comes_to_its_end_though_nobody_waits_for_it() {
        let (errands, go_on) = (Errands::default(), Arc::new(Notify::new()));
        let (tell, mut told) = oneshot::channel();
        let (begun, waits) = (Arc::new(Notify::new()), Arc::clone(&go_on));
        let begins = Arc::clone(&begun);
        let work = async move {
            begins.notify_one();
            waits.notified().await;
            tell.send("done").unwrap();
        };

        tokio::select! {
            _ = errands.run(work) => panic!("it cannot be done yet"),
            () = begun.notified() => {}
        }
        assert!(told.try_recv().is_err());
        go_on.notify_one();
        errands.finish(Duration::from_secs(10)).await;

        assert_eq!(told.try_recv(), Ok("done"));
    }
}
