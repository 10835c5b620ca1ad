//! Triggers: requests to run now, or to cancel what runs, that were left for this instance.

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::trigger::InstanceRequest,
    registry::{Error, ExpectedVersion, Zxid},
};

#[derive(Debug, Default)]
pub(super) struct Triggers {
    /// A trigger whose deletion was not answered, with its creation id.
    unanswered: Option<(Zxid, InstanceRequest)>,
    /// Triggers that were taken and not yet handled.
    taken: Vec<InstanceRequest>,
}

impl Triggers {
    /// Whether there is a trigger to take. Pure.
    pub(super) fn is_due(&self, assignment: &Assignment<'_>) -> bool {
        let has_trigger = assignment.view.triggers.contains(assignment.own_id.as_str());
        has_trigger || self.unanswered.is_some()
    }

    /// Deletes our trigger; [`taken`](Self::taken) hands it out.
    pub(super) async fn take(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let path = mirror.tree().trigger(mirror.own_id());
        let node = match mirror.context().registry.get(&path).await {
            Err(error) if error.is_denial() => {
                tracing::error!(job = %mirror.job().name, %path, %error, "trigger of another user ignored");
                // Until it is written again.
                mirror.learn_absent(&path);
                return mirror.refresh().await;
            }
            node => node?,
        };
        let is_gone = |(created, _): &(Zxid, InstanceRequest)| {
            node.as_ref().is_none_or(|node| node.stat.created != *created)
        };
        // Its deletion was not answered, and it is gone: it was ours to delete, and so it is ours to handle.
        if let Some((_, trigger)) = self.unanswered.take_if(|before| is_gone(before)) {
            self.taken.push(trigger);
        }
        match node {
            Some(node) => {
                let trigger = InstanceRequest::read(&node.data);
                let expected = ExpectedVersion::Version(node.stat.version);
                match mirror.context().registry.delete(&path, expected).await {
                    Ok(_) => {
                        self.unanswered = None;
                        self.taken.push(trigger);
                    }
                    // It was deleted or changed by another program.
                    Err(Error::NotFound { .. } | Error::Conflict { .. }) => self.unanswered = None,
                    Err(error) => {
                        if error.is_outage() {
                            self.unanswered = Some((node.stat.created, trigger));
                        }
                        return Err(error);
                    }
                }
            }
            // Before the watch is drained: there may have been another trigger since.
            None => mirror.learn_absent(&path),
        }
        mirror.refresh().await
    }

    /// Triggers that were taken, also if taking another one failed.
    pub(super) fn taken(&mut self) -> Vec<InstanceRequest> {
        std::mem::take(&mut self.taken)
    }
}
