//! Who watches over the scripts of this node.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    execution::{IntoWork, ScriptWork, Supervisor, Work},
    job::Handler,
};

/// Who watches over the scripts of this node; if nobody, that is said once.
pub(super) struct Supervision {
    supervisor: Option<Supervisor>,
    is_told: AtomicBool,
}

impl Supervision {
    pub(super) fn new(supervisor: Option<Supervisor>) -> Self {
        Self { supervisor, is_told: AtomicBool::new(false) }
    }

    /// The work, under supervision if it is a script.
    pub(super) fn over(&self, handler: &Handler, work: Arc<dyn Work>) -> Arc<dyn Work> {
        if *handler != Handler::Script {
            return work;
        }
        if let Some(supervisor) = &self.supervisor {
            return ScriptWork::supervised(supervisor.clone()).into_work();
        }
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "scripts run without a supervisor: they go on when this process is killed or frozen, while others take over their shards; \
                 hint: begin main with `let supervisor = elasticjob::execution::supervise_if_asked();` and give it to Node::supervisor"
            );
        }
        work
    }
}
