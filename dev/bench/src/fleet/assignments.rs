//! Counts assignments: each one creates the job's node `leader/sharding/processing` and deletes it with its last transaction.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::registry::{self, Event, Path, RegistryUrl, Watch};
use testbed::ZooKeeper;
use tokio::{task::JoinSet, time::timeout};

use crate::BoxError;

/// The fleet has settled when nothing changed in any job for this long.
pub(super) const QUIET: Duration = Duration::from_secs(1);

/// Number of assignments, by job.
type Counts = BTreeMap<String, u32>;

pub(super) struct AssignmentObserver {
    counts: Arc<Mutex<Counts>>,
    /// Tells that something changed.
    changed: Arc<tokio::sync::Notify>,
    _tasks: JoinSet<()>,
}

impl AssignmentObserver {
    pub(super) async fn start(server: &ZooKeeper, namespace: &str) -> Result<Self, BoxError> {
        let url: RegistryUrl = format!("zookeeper://{}/{namespace}", server.address()).parse()?;
        let registry = registry::connect(&url).await?;
        let root = registry.namespace().path().clone();
        let watch = registry.watch(&root).await?;
        let (counts, changed) = (Arc::<Mutex<Counts>>::default(), Arc::default());
        let mut tasks = JoinSet::new();
        let (noted, notify) = (Arc::clone(&counts), Arc::clone(&changed));
        tasks.spawn(async move {
            // Dropping it closes the session.
            let _registry = registry;
            observe(watch, &root, &noted, &notify).await;
        });
        Ok(Self { counts, changed, _tasks: tasks })
    }

    pub(super) async fn wait_until_settled(&self) {
        while timeout(QUIET, self.changed.notified()).await.is_ok() {}
    }

    /// The assignments since the last call.
    pub(super) fn take(&self) -> Counts {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn observe(
    mut watch: Watch,
    root: &Path,
    counts: &Mutex<Counts>,
    changed: &tokio::sync::Notify,
) {
    while let Some(event) = watch.next().await {
        let (Event::Apply { path } | Event::Delete { path }) = &event else { continue };
        let Some(relative) = path.relative_to(root) else { continue };
        let Some((job, node)) = relative.split_once('/') else { continue };
        if node.starts_with("sharding/") && node.ends_with("/running") {
            continue;
        }
        changed.notify_one();
        if node == "leader/sharding/processing" && matches!(event, Event::Delete { .. }) {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(job.to_owned()).or_default() += 1;
        }
    }
}
