//! The events of all processes, in the order in which they were received, and the executions derived from them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::watch;

/// How long a test waits for anything: JVMs are slow on a busy machine, and when a Java leader overlooks an instance that joins while it assigns
/// shards, only the next check of that instance reminds it.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(3);

/// An event that a process printed.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The name that the test gave to the process.
    pub(crate) peer: String,
    pub(crate) fields: Value,
}

/// One execution of one shard.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) peer: String,
    pub(crate) item: u32,
    /// The instance id in the task id.
    pub(crate) instance: String,
    /// Only Rust reports it.
    pub(crate) reason: Option<String>,
    pub(crate) started_at: i64,
    /// The event that ended it, and when; `None` if there is none yet.
    pub(crate) end: Option<(String, i64)>,
}

impl Execution {
    pub(crate) fn has_succeeded(&self) -> bool {
        self.end.as_ref().is_some_and(|(event, _)| event == "ended")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }
}

/// The events of all processes. Clones share one log.
#[derive(Clone)]
pub(crate) struct EventLog {
    events: Arc<Mutex<Vec<Event>>>,
    count: watch::Sender<usize>,
}

impl EventLog {
    pub(crate) fn new() -> Self {
        Self { events: Arc::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn push(&self, event: Event) {
        self.lock().push(event);
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// All executions of a job, in the order in which they started.
    pub(crate) fn executions(&self, job: &str) -> Vec<Execution> {
        executions(&self.lock(), job)
    }

    /// Waits until `find`, which is called with all executions of the job after each new event, returns something. Panics when the wait times out.
    pub(crate) async fn until<T>(
        &self,
        expectation: &str,
        job: &str,
        mut find: impl FnMut(&[Execution]) -> Option<T>,
    ) -> T {
        let mut count = self.count.subscribe();
        let search = async {
            loop {
                count.borrow_and_update();
                if let Some(found) = find(&self.executions(job)) {
                    return found;
                }
                // `self` holds the sender, so the channel stays open.
                let _ = count.changed().await;
            }
        };
        let found = tokio::time::timeout(TIMEOUT, search).await;
        found.unwrap_or_else(|_| {
            let all = self.all();
            let last: Vec<String> = all[all.len().saturating_sub(30)..]
                .iter()
                .map(|event| format!("{}: {}", event.peer, event.fields))
                .collect();
            panic!("{expectation}: not seen in {TIMEOUT:?}; last events:\n{}", last.join("\n"))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn executions(all: &[Event], job: &str) -> Vec<Execution> {
    let mut executions: Vec<Execution> = Vec::new();
    for Event { peer, fields } in all.iter().filter(|event| event.fields["job"] == job) {
        let (Some(kind), Some(item)) = (fields["event"].as_str(), fields["item"].as_u64()) else {
            continue;
        };
        let (item, at) = (item as u32, fields["at"].as_i64().unwrap());
        if kind == "started" {
            let task = fields["task"].as_str().unwrap();
            let parts: Vec<&str> = task.splitn(4, "@-@").collect();
            let (instance, reason) = (parts[3].to_owned(), fields["reason"].as_str());
            let (peer, reason) = (peer.clone(), reason.map(ToOwned::to_owned));
            executions.push(Execution { peer, item, instance, reason, started_at: at, end: None });
        } else {
            let open = executions
                .iter_mut()
                .rev()
                .find(|execution| execution.peer == *peer && execution.item == item);
            open.unwrap().end = Some((kind.to_owned(), at));
        }
    }
    executions
}
