//! The node of this worker, shared with the health and dump endpoints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elasticjob::{history::Recording, job::JobName, node::RunningNode};

/// The node while it runs; empty before and after. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct SharedNode(Arc<Mutex<Option<Arc<RunningNode>>>>);

impl SharedNode {
    pub(super) fn set(&self, running: &Arc<RunningNode>) {
        *self.lock() = Some(Arc::clone(running));
    }

    /// Drops the reference, so that the worker can stop the node.
    pub(super) fn clear(&self) {
        self.lock().take();
    }

    /// Jobs of the node; none unless it runs.
    pub(super) fn jobs(&self) -> Vec<JobName> {
        self.lock().as_ref().map(|running| running.jobs()).unwrap_or_default()
    }

    /// The node runs, and every job can run its fires.
    pub(super) fn is_ready(&self) -> bool {
        self.lock().as_ref().is_some_and(|running| running.is_ready())
    }

    /// Calls `read` with the history recording of the node, if it has one.
    ///
    /// The reference does not leave the lock: [`SharedNode::clear`] would otherwise not drop the last one.
    pub(super) fn with_recording<T>(&self, read: impl FnOnce(Option<&Recording>) -> T) -> T {
        read(self.lock().as_ref().and_then(|running| running.recording()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<RunningNode>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
