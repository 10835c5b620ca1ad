//! One worker of the demonstration, from inside.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    execution::{Output, Stream, Supervisor},
    history::Recorder,
    job::Shard,
    node::Node,
};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{jobs, voice::tell};
use crate::error::{Code, Error};

/// Nobody wants to wait for a demonstration.
const DRAIN: Duration = Duration::from_secs(2);

/// One worker of the demonstration.
pub(crate) struct Member {
    pub(crate) registry: String,
    /// What it is called in the commentary.
    pub(crate) name: String,
    /// What the HTTP job asks; without, there is none.
    pub(crate) endpoint: Option<String>,
    /// Ends with the process that started it.
    pub(crate) is_child: bool,
    pub(crate) supervisor: Supervisor,
    pub(crate) history: Option<Recorder>,
}

impl Member {
    /// Runs every job of the demonstration until the process is asked to stop.
    pub(crate) async fn run(self) -> Result<(), Error> {
        if self.is_child {
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
                Error::new(Code::Internal, format!("cannot bind its life to its parent's: {error}"))
            })?;
        }
        let mut node = Node::join(&self.registry)
            .labels(format!("name={}", self.name))
            .drain(DRAIN)
            .supervisor(self.supervisor)
            .output(Arc::new(Said(self.name.clone())));
        if let Some(history) = self.history {
            node = node.history(history);
        }
        for job in jobs::all(&self.name, self.endpoint.as_deref())? {
            node = node.with(job);
        }
        Ok(node.run().await?)
    }
}

/// Says what scripts print.
struct Said(String);

impl Output for Said {
    fn line(&self, shard: &Shard, _: Stream, line: &str) {
        tell(&format!("{}: {}  {} prints {line:?}", shard.job, shard.item, self.0));
    }
}
