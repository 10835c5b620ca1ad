//! Replaces an empty server status, which ElasticJob 2.x writes for enabled: no instance runs on such a server.
//!
//! Each instance replaces that of its own server. The leader does it for every instance, because a Java instance replaces its own only when it
//! starts or reconnects.

use std::collections::BTreeMap;

use super::{assignment::Assignment, mirror::Mirror};
use crate::{
    coordination::server_status::{StoredStatus, stored_data},
    job::server_of,
    registry::{Error, ExpectedVersion, Op, Version},
};

#[derive(Debug, Default)]
pub(super) struct ServerRepair {
    /// Versions of server nodes that we could not replace: another attempt would be refused, too.
    refused: BTreeMap<String, Version>,
}

impl ServerRepair {
    /// Servers whose status we have to replace, with the version of their node. Pure.
    pub(super) fn empty_servers(&self, assignment: &Assignment<'_>) -> Vec<(String, Version)> {
        let Assignment { view, own_id, .. } = assignment;
        let leads = assignment.is_leader() == Some(true);
        let is_ours = |address: &str| {
            address == own_id.server()
                || (leads && view.instances.keys().any(|id| server_of(id) == address))
        };
        let empty = view.servers.iter().filter(|(address, status)| {
            StoredStatus::of(status) == Some(StoredStatus::Empty) && is_ours(address)
        });
        empty
            .filter_map(|(address, status)| Some((address.clone(), status.document()?.version)))
            .filter(|(address, version)| self.refused.get(address) != Some(version))
            .collect()
    }

    pub(super) async fn replace(
        &mut self,
        mirror: &mut Mirror,
        servers: Vec<(String, Version)>,
    ) -> Result<(), Error> {
        let job = &mirror.job().name;
        let data = stored_data(!mirror.job().disabled);
        for (address, version) in servers {
            let path = mirror.tree().server(&address);
            let expected = ExpectedVersion::Version(version);
            match mirror.write(vec![Op::Set { path, data: data.into(), expected }]).await {
                Ok(_) => {
                    tracing::warn!(%job, address, status = data, "empty server status replaced");
                    self.refused.remove(&address);
                }
                // Another program was faster, or we may not write here. In the first case the next version is tried, if that is empty, too.
                Err(Error::Operation { cause, .. }) => {
                    tracing::warn!(%job, address, error = %cause, "empty server status not replaced");
                    self.refused.insert(address, version);
                }
                Err(error) => return Err(error),
            }
        }
        mirror.refresh().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{JAVA, OTHER, TestView, US},
        tree::JobTree,
    };

    fn addresses(repair: &ServerRepair, test: &TestView) -> Vec<String> {
        let servers = repair.empty_servers(&test.assignment());
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
        let (address, version) = repair.empty_servers(&test.assignment()).remove(0);
        repair.refused.insert(address, version);

        assert!(addresses(&repair, &test).is_empty());
    }
}
