//! Prints what happens in the registry.

use std::{collections::BTreeSet, sync::Arc};

use elasticjob::{
    admin::{Admin, AdminError},
    job::{JobName, ShardLimit},
    registry::{Event, Path, Registry, Watch},
    runtime::Tasks,
};

use super::{print::print_event, state_tracker::StateTracker};
use crate::error::Error;

/// Watches all jobs of a namespace. A watch event only names the changed path; the state of that job is then read again.
pub(super) struct Commentary {
    registry: Arc<dyn Registry>,
    admin: Admin,
    tracker: StateTracker,
}

impl Commentary {
    pub(super) fn new(registry: Arc<dyn Registry>, max_shards: ShardLimit) -> Self {
        let admin = Admin::new(Arc::clone(&registry)).max_shards(max_shards);
        Self { registry, admin, tracker: StateTracker::default() }
    }

    /// Runs until `tasks` end.
    pub(super) async fn start(self, tasks: &mut Tasks) -> Result<(), Error> {
        let namespace = self.registry.namespace();
        let ledger =
            namespace.sibling("ledger").map_err(|error| Error::bad_input(error.to_string()))?;
        let roots = [namespace.path().clone(), ledger.path().clone()];
        let watches =
            [self.registry.watch(&roots[0]).await?, self.registry.watch(&roots[1]).await?];
        tasks.spawn(self.run(roots, watches));
        Ok(())
    }

    async fn run(mut self, roots: [Path; 2], watches: [Watch; 2]) {
        let [mut jobs, mut ledger] = watches;
        loop {
            let event = tokio::select! {
                event = jobs.next() => event,
                event = ledger.next() => event,
            };
            let Some(event) = event else { return };
            let more = std::iter::from_fn(|| jobs.try_next().or_else(|| ledger.try_next()));
            let changed: BTreeSet<JobName> = std::iter::once(event)
                .chain(more)
                .filter_map(|event| job_of(&event, &roots))
                .collect();
            for job in changed {
                // A job that cannot be read was removed, or is read again at its next change.
                if let Ok(lines) = self.refresh(&job).await {
                    for line in &lines {
                        print_event(line);
                    }
                }
            }
        }
    }

    async fn refresh(&mut self, job: &JobName) -> Result<Vec<String>, AdminError> {
        let details = self.admin.job(job).await?;
        let shards = self.admin.shards(job).await?;
        Ok(self.tracker.update(job, &details, &shards))
    }
}

fn job_of(event: &Event, roots: &[Path]) -> Option<JobName> {
    let (Event::InitApply { path, .. } | Event::Apply { path } | Event::Delete { path }) = event
    else {
        return None;
    };
    let below = roots.iter().find_map(|root| path.relative_to(root))?;
    below.split('/').next()?.parse().ok()
}
