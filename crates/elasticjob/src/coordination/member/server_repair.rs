//! Repairs the nodes of servers: no instance runs on a server whose status is empty, as ElasticJob 2.x writes it for enabled, or whose node is missing.
//!
//! A node is missing if the janitor of another instance, or a console, removed it as abandoned while an instance joined. Each instance repairs its own
//! server. The leader does it for every instance, because a Java instance writes its own only when it starts or reconnects.

use std::collections::{BTreeMap, BTreeSet};

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::server_status::{StoredStatus, stored_data},
    job::{InstanceId, server_of},
    registry::{Create, Error, ExpectedVersion, Op, Version},
};

#[derive(Debug, Default)]
pub(super) struct ServerRepair {
    /// Servers that we could not repair, as they were: another attempt would be refused, too.
    refused: BTreeMap<String, Option<Version>>,
}

impl ServerRepair {
    /// Servers that we have to repair, each with the version of its node, if there is one. Pure.
    pub(super) fn broken_servers(
        &self,
        assignment: &Assignment<'_>,
    ) -> Vec<(String, Option<Version>)> {
        let Assignment { view, own_id, .. } = assignment;
        let mut ours = BTreeSet::from([own_id.server()]);
        if assignment.is_leader() == Some(true) {
            // A node that another program put there is no instance.
            let instances = view.instances.keys().filter(|id| id.parse::<InstanceId>().is_ok());
            ours.extend(instances.map(|id| server_of(id)));
        }
        let broken = ours.into_iter().filter_map(|address| match view.servers.get(address) {
            None => Some((address.to_owned(), None)),
            Some(status) if StoredStatus::of(status) == Some(StoredStatus::Empty) => {
                Some((address.to_owned(), Some(status.document()?.version)))
            }
            Some(_) => None,
        });
        broken.filter(|(address, version)| self.refused.get(address) != Some(version)).collect()
    }

    pub(super) async fn repair(
        &mut self,
        mirror: &mut Mirror,
        servers: Vec<(String, Option<Version>)>,
    ) -> Result<(), Error> {
        let job = &mirror.job().name;
        let data = stored_data(!mirror.job().disabled);
        for (address, version) in servers {
            let path = mirror.tree().server(&address);
            let write = match version {
                Some(version) => {
                    let expected = ExpectedVersion::Version(version);
                    Op::Set { path, data: data.into(), expected }
                }
                None => Op::Create(Create::persistent(&path, data)),
            };
            match mirror.write(vec![still_joined(mirror), write]).await {
                Ok(_) => {
                    tracing::warn!(%job, address, status = data, "server had no status, repaired");
                    self.refused.remove(&address);
                }
                Err(error) if error.is_temporary() => return Err(error),
                // Another instance was faster.
                Err(Error::Operation { cause, .. }) if matches!(*cause, Error::Exists { .. }) => {}
                // Another program was faster, or we may not write here, or the job is being removed. In the first case the server is tried again if
                // it has changed and has no status still.
                Err(Error::Operation { cause, .. }) => {
                    tracing::warn!(%job, address, error = %cause, "server without a status not repaired");
                    self.refused.insert(address, version);
                }
                Err(error) => return Err(error),
            }
        }
        mirror.refresh().await
    }
}

/// A job that is being removed must not be created again in part.
fn still_joined(mirror: &Mirror) -> Op {
    Op::Check { path: mirror.tree().instance(mirror.own_id()), expected: ExpectedVersion::Any }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{JAVA, OTHER, TestView, US},
        tree::JobTree,
    };

    fn addresses(repair: &ServerRepair, test: &TestView) -> Vec<String> {
        let servers = repair.broken_servers(&test.assignment());
        servers.into_iter().map(|(address, _)| address).collect()
    }

    #[test]
    fn instance_repairs_its_own_server_and_the_leader_all_that_are_in_use() {
        let test = TestView::new(1, &[US, OTHER, JAVA])
            .with(|tree| tree.server("10.0.0.1"), "")
            .with(|tree| tree.server("10.0.0.3"), "")
            .with(|tree| tree.server("10.0.0.9"), "");
        let repair = ServerRepair::default();
        assert_eq!(addresses(&repair, &test), ["10.0.0.1"]);

        let leading = test.with(JobTree::leader, US);
        assert_eq!(addresses(&repair, &leading), ["10.0.0.1", "10.0.0.3"]);
    }

    #[test]
    fn disabled_server_is_left_alone() {
        let test = TestView::new(1, &[US])
            .with(JobTree::leader, US)
            .with(|tree| tree.server("10.0.0.1"), "DISABLED");

        assert!(addresses(&ServerRepair::default(), &test).is_empty());
    }

    #[test]
    fn refused_repair_is_not_repeated() {
        let test = TestView::new(1, &[US]).with(|tree| tree.server("10.0.0.1"), "");
        let mut repair = ServerRepair::default();
        let (address, version) = repair.broken_servers(&test.assignment()).remove(0);
        repair.refused.insert(address, version);

        assert!(addresses(&repair, &test).is_empty());
    }

    #[test]
    fn missing_server_is_created_again_for_every_instance() {
        let test = || {
            let test = TestView::new(1, &[US, OTHER]);
            test.without(|tree| tree.server("10.0.0.1")).without(|tree| tree.server("10.0.0.2"))
        };
        let repair = ServerRepair::default();
        assert_eq!(addresses(&repair, &test()), ["10.0.0.1"]);

        let leading = test().with(JobTree::leader, US);
        assert_eq!(addresses(&repair, &leading), ["10.0.0.1", "10.0.0.2"]);
    }
}
