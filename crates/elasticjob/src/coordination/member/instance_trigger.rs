//! Understands the trigger of ElasticJob 2.x: the data of our instance node is replaced with `TRIGGER`, which its documents describe as the way to
//! trigger by hand.
//!
//! It means the same as the doorbell of Java ElasticJob 3.x. So one transaction restores the document and rings that doorbell, and
//! [`triggers`](super::triggers) answers it. A doorbell that rings already may be for something else: then the node keeps its data until that one
//! is answered.

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::view::CachedNode,
    job::is_instance_trigger,
    registry::{Create, Error, ExpectedVersion, Op, Version},
};

#[derive(Debug, Default)]
pub(super) struct InstanceTrigger {
    /// Our node as we could not change it: another attempt would be refused, too.
    refused: Option<Version>,
}

impl InstanceTrigger {
    /// The version of our instance node, if it holds a trigger that can be turned into a doorbell. Pure.
    pub(super) fn pending(&self, assignment: &Assignment<'_>) -> Option<Version> {
        let Assignment { view, own_id, .. } = assignment;
        let document = view.instances.get(own_id.as_str()).and_then(CachedNode::document)?;
        let is_pending = is_instance_trigger(&document.data)
            && !view.triggers.contains(own_id.as_str())
            && self.refused != Some(document.version);
        is_pending.then_some(document.version)
    }

    pub(super) async fn ring(
        &mut self,
        mirror: &mut Mirror,
        version: Version,
    ) -> Result<(), Error> {
        let (tree, own_id) = (mirror.tree(), mirror.own_id());
        let ops = vec![
            Op::Set {
                path: tree.instance(own_id),
                data: mirror.context().own_document.clone(),
                expected: ExpectedVersion::Version(version),
            },
            Op::Create(Create::persistent(&tree.trigger(own_id), "")),
        ];
        match mirror.write(ops).await {
            Ok(_) => {
                tracing::info!(job = %mirror.job().name, "triggered through the instance node, as by ElasticJob 2.x");
            }
            Err(Error::Operation { index: 1, cause })
                if matches!(*cause, Error::NotFound { .. }) =>
            {
                create_parent(mirror, version).await?;
            }
            // It was changed meanwhile, or the doorbell began to ring.
            Err(Error::Operation { cause, .. }) if is_race(&cause) => mirror.sync().await?,
            Err(error) if error.is_refusal() && !error.is_temporary() => {
                tracing::error!(job = %mirror.job().name, %error, "trigger in the instance node ignored");
                self.refused = Some(version);
            }
            Err(error) => return Err(error),
        }
        mirror.refresh().await
    }
}

/// Creates the parent of doorbells, unless the job is being removed: then our node is gone.
async fn create_parent(mirror: &Mirror, version: Version) -> Result<(), Error> {
    let (tree, expected) = (mirror.tree(), ExpectedVersion::Version(version));
    let ops = vec![
        Op::Check { path: tree.instance(mirror.own_id()), expected },
        Op::Create(Create::persistent(&tree.triggers(), "")),
    ];
    match mirror.write(ops).await {
        Ok(_) => Ok(()),
        Err(Error::Operation { cause, .. }) if is_race(&cause) => mirror.sync().await,
        Err(error) => Err(error),
    }
}

fn is_race(error: &Error) -> bool {
    matches!(error, Error::Exists { .. } | Error::NotFound { .. } | Error::Conflict { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::member::test_view::{OTHER, TestView, US};

    #[test]
    fn only_our_own_node_is_a_trigger_for_us() {
        let test = || TestView::new(1, &[US, OTHER]);
        let trigger = InstanceTrigger::default();

        assert_eq!(trigger.pending(&test().assignment()), None);
        let other = test().with(|tree| tree.instance(OTHER), "TRIGGER");
        assert_eq!(trigger.pending(&other.assignment()), None);
        let ours = test().with(|tree| tree.instance(US), "TRIGGER");
        assert_eq!(trigger.pending(&ours.assignment()), Some(Version(0)));
        let ringing = ours.with(|tree| tree.trigger(US), "");
        assert_eq!(trigger.pending(&ringing.assignment()), None, "that one is answered first");
    }

    #[test]
    fn refused_change_of_our_node_is_not_repeated() {
        let test = TestView::new(1, &[US]).with(|tree| tree.instance(US), "TRIGGER");

        let trigger = InstanceTrigger { refused: Some(Version(0)) };

        assert_eq!(trigger.pending(&test.assignment()), None);
    }
}
