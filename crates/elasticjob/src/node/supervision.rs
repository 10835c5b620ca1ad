//! Supervision of this node's scripts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    execution::{IntoWork, ScriptWork, Supervisor, Work},
    job::Handler,
};

/// Runs this node's scripts under its supervisor; without one, warns once.
pub(super) struct Supervision {
    supervisor: Option<Supervisor>,
    has_warned: AtomicBool,
}

impl Supervision {
    pub(super) fn new(supervisor: Option<Supervisor>) -> Self {
        Self { supervisor, has_warned: AtomicBool::new(false) }
    }

    /// Returns the work to run: under the supervisor, if it is a script.
    pub(super) fn supervise(&self, handler: &Handler, work: Arc<dyn Work>) -> Arc<dyn Work> {
        if *handler != Handler::Script {
            return work;
        }
        if let Some(supervisor) = &self.supervisor {
            return ScriptWork::supervised(supervisor.clone()).into_work();
        }
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                hint = "begin main with `let supervisor = elasticjob::execution::supervise_if_requested();` and give it to Node::supervisor",
                "scripts run without a supervisor: they continue when this process is killed or frozen, while others take over their shards"
            );
        }
        work
    }
}
