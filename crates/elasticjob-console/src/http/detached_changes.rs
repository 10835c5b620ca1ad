//! Changes run as tasks of their own, so that they finish even if the client disconnects.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Tasks;
use tokio::sync::{Semaphore, oneshot};

/// Further changes wait until one of these has finished.
const MAX_CONCURRENT: usize = 1_024;

/// Runs changes to completion, independent of the client that requested them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DetachedChanges {
    tasks: Arc<Mutex<Tasks>>,
    permits: Arc<Semaphore>,
}

impl Default for DetachedChanges {
    fn default() -> Self {
        Self { tasks: Arc::default(), permits: Arc::new(Semaphore::new(MAX_CONCURRENT)) }
    }
}

impl DetachedChanges {
    /// Runs `work` to completion, even if the caller stops waiting. `None` if it panicked or was aborted.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let (sender, result) = oneshot::channel();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            // The caller may have stopped waiting.
            let _ = sender.send(work.await);
            drop(permit);
        });
        result.await.ok()
    }

    /// Waits for running changes; aborts those that still run after `timeout`.
    pub async fn finish(&self, timeout: Duration) {
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if !tasks.finish(timeout).await {
            tracing::warn!("running changes aborted at shutdown");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn started_change_finishes_after_its_caller_is_gone() {
        let (detached_changes, resume) = (DetachedChanges::default(), Arc::new(Notify::new()));
        let (sender, mut result) = oneshot::channel();
        let (started, waits_for_resume) = (Arc::new(Notify::new()), Arc::clone(&resume));
        let signals_start = Arc::clone(&started);
        let work = async move {
            signals_start.notify_one();
            waits_for_resume.notified().await;
            sender.send("done").unwrap();
        };

        tokio::select! {
            _ = detached_changes.run(work) => panic!("the change finished before it was resumed"),
            () = started.notified() => {}
        }
        assert!(result.try_recv().is_err());
        resume.notify_one();
        detached_changes.finish(Duration::from_secs(10)).await;

        assert_eq!(result.try_recv(), Ok("done"));
    }
}
