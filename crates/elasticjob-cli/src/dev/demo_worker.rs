//! The process of one demo worker.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    execution::{Output, Stream, Supervisor},
    history::Recorder,
    job::Shard,
    node::Node,
};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{demo_jobs, print::print_event};
use crate::error::{Code, Error};

/// Shorter than usual, so that a demo stops quickly.
const DRAIN: Duration = Duration::from_secs(2);

pub(crate) struct DemoWorker {
    pub(crate) registry: String,
    /// Name in the commentary.
    pub(crate) name: String,
    /// URL of the job `ping`; without it the worker does not join that job.
    pub(crate) endpoint: Option<String>,
    /// Die with the parent process.
    pub(crate) is_child: bool,
    pub(crate) supervisor: Supervisor,
    pub(crate) history: Option<Recorder>,
}

impl DemoWorker {
    /// Runs the demo jobs until SIGINT or SIGTERM.
    pub(crate) async fn run(self) -> Result<(), Error> {
        if self.is_child {
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
                Error::new(Code::Internal, format!("cannot set the parent death signal: {error}"))
            })?;
        }
        let mut node = Node::join(&self.registry)
            .labels(format!("name={}", self.name))
            .drain(DRAIN)
            .supervisor(self.supervisor)
            .output(Arc::new(ScriptOutput(self.name.clone())));
        if let Some(history) = self.history {
            node = node.history(history);
        }
        for job in demo_jobs::all(&self.name, self.endpoint.as_deref())? {
            node = node.with(job);
        }
        Ok(node.run().await?)
    }
}

/// Prints the output of scripts; holds the worker's name.
struct ScriptOutput(String);

impl Output for ScriptOutput {
    fn line(&self, shard: &Shard, _: Stream, line: &str) {
        print_event(&format!("{}: {}  {} prints {line:?}", shard.job, shard.item, self.0));
    }
}
