//! Notices that jobs are added to the namespace or removed from it, without polling the registry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use elasticjob::{registry::Registry, runtime::Tasks};

/// Pause before a watch that could not be set is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Remembers that the namespace has to be listed again. However often it changed since, one listing answers all of that.
pub(super) struct NamespaceChanges {
    is_changed: Arc<AtomicBool>,
    // Dropping it ends the watch.
    _watch: Tasks,
}

impl NamespaceChanges {
    /// Begins to watch. The namespace counts as changed until it is listed for the first time.
    pub(super) fn watch(registry: Arc<dyn Registry>) -> Self {
        let is_changed = Arc::new(AtomicBool::new(true));
        let mut watch = Tasks::new();
        watch.spawn(follow(registry, Arc::clone(&is_changed)));
        Self { is_changed, _watch: watch }
    }

    /// Whether the namespace may have changed since this was asked last.
    pub(super) fn take(&self) -> bool {
        self.is_changed.swap(false, Ordering::Relaxed)
    }
}

async fn follow(registry: Arc<dyn Registry>, is_changed: Arc<AtomicBool>) {
    loop {
        match registry.watch_children(registry.namespace().path()).await {
            Ok(mut watch) => {
                // What happened before the watch was set is listed, too.
                is_changed.store(true, Ordering::Relaxed);
                while watch.changed().await.is_some() {
                    is_changed.store(true, Ordering::Relaxed);
                }
                return;
            }
            Err(error) => tracing::debug!(%error, "cannot watch the namespace, retrying"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}
