//! What happens in the registry, said aloud.

use std::{collections::BTreeSet, sync::Arc};

use elasticjob::{
    admin::{Admin, AdminError},
    job::JobName,
    registry::{Event, Path, Registry, Watch},
    runtime::Tasks,
};

use super::{story::Story, voice::tell};
use crate::error::Error;

/// Watches all jobs of a namespace. A watch only says where something changed; what it means is read anew, job by job.
pub(super) struct Commentary {
    registry: Arc<dyn Registry>,
    admin: Admin,
    story: Story,
}

impl Commentary {
    pub(super) fn new(registry: Arc<dyn Registry>) -> Self {
        let admin = Admin::on(Arc::clone(&registry));
        Self { registry, admin, story: Story::default() }
    }

    /// Tells from now on, until `tasks` end.
    pub(super) async fn start(self, tasks: &mut Tasks) -> Result<(), Error> {
        let namespace = self.registry.namespace();
        let ledger =
            namespace.sibling("ledger").map_err(|error| Error::bad_input(error.to_string()))?;
        let places = [namespace.path().clone(), ledger.path().clone()];
        let watches =
            [self.registry.watch(&places[0]).await?, self.registry.watch(&places[1]).await?];
        tasks.spawn(self.run(places, watches));
        Ok(())
    }

    async fn run(mut self, places: [Path; 2], watches: [Watch; 2]) {
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
                .filter_map(|event| job_of(&event, &places))
                .collect();
            for job in changed {
                // One that cannot be looked at was removed, or its next change shows it.
                if let Ok(lines) = self.look(&job).await {
                    for line in &lines {
                        tell(line);
                    }
                }
            }
        }
    }

    async fn look(&mut self, job: &JobName) -> Result<Vec<String>, AdminError> {
        let details = self.admin.job(job).await?;
        let shards = self.admin.shards(job).await?;
        Ok(self.story.go_on(job, &details, &shards))
    }
}

fn job_of(event: &Event, places: &[Path]) -> Option<JobName> {
    let (Event::InitApply { path, .. } | Event::Apply { path } | Event::Delete { path }) = event
    else {
        return None;
    };
    let below = places.iter().find_map(|place| path.below(place))?;
    below.split('/').next()?.parse().ok()
}
