//! Everything anybody said, in the order it was heard, and what that tells of runs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::watch;

/// How long anything may take that a test waits for: JVMs are slow on a machine that has a lot else to do, and a Java leader that overlooks
/// who joins while it deals is only reminded by the second look of those it left out.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Something somebody said.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    /// Who, as the test calls it.
    pub(crate) peer: String,
    pub(crate) words: Value,
}

/// One execution of one shard.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) peer: String,
    pub(crate) item: u32,
    /// The id the task names.
    pub(crate) instance: String,
    /// Why; only Rust says.
    pub(crate) reason: Option<String>,
    pub(crate) began: i64,
    /// How and when; nothing if nobody said so, or not yet.
    pub(crate) ended: Option<(String, i64)>,
}

impl Run {
    pub(crate) fn is_done(&self) -> bool {
        self.ended.as_ref().is_some_and(|(how, _)| how == "ended")
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }
}

/// Everything anybody said. Clones are the same record.
#[derive(Clone)]
pub(crate) struct Record {
    said: Arc<Mutex<Vec<Said>>>,
    count: watch::Sender<usize>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self { said: Arc::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn push(&self, said: Said) {
        self.lock().push(said);
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn all(&self) -> Vec<Said> {
        self.lock().clone()
    }

    /// All executions of a job, in the order they began.
    pub(crate) fn runs(&self, job: &str) -> Vec<Run> {
        runs(&self.lock(), job)
    }

    /// Looks at the executions of a job, after each line, until there is something to see.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        job: &str,
        mut look: impl FnMut(&[Run]) -> Option<T>,
    ) -> T {
        let mut count = self.count.subscribe();
        let seeing = async {
            loop {
                count.borrow_and_update();
                if let Some(seen) = look(&self.runs(job)) {
                    return seen;
                }
                // The sender is ours: it does not go away.
                let _ = count.changed().await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, seeing).await;
        seen.unwrap_or_else(|_| {
            let all = self.all();
            let last: Vec<String> = all[all.len().saturating_sub(30)..]
                .iter()
                .map(|said| format!("{}: {}", said.peer, said.words))
                .collect();
            panic!("{what}: not seen in {PATIENCE:?}; last heard:\n{}", last.join("\n"))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn runs(all: &[Said], job: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Said { peer, words } in all.iter().filter(|said| said.words["job"] == job) {
        let (Some(what), Some(item)) = (words["said"].as_str(), words["item"].as_u64()) else {
            continue;
        };
        let (item, at) = (item as u32, words["at"].as_i64().unwrap());
        if what == "began" {
            let task = words["task"].as_str().unwrap();
            let parts: Vec<&str> = task.splitn(4, "@-@").collect();
            let (instance, reason) = (parts[3].to_owned(), words["reason"].as_str());
            let (peer, reason) = (peer.clone(), reason.map(ToOwned::to_owned));
            runs.push(Run { peer, item, instance, reason, began: at, ended: None });
        } else {
            let open = runs.iter_mut().rev().find(|run| run.peer == *peer && run.item == item);
            open.unwrap().ended = Some((what.to_owned(), at));
        }
    }
    runs
}
