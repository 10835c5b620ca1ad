//! Enables and disables jobs, servers and shards.
//!
//! Java ElasticJob disables a job only by disabling each of its servers, and a server that starts later is enabled. So a job is disabled in two
//! places: on every server, where running Java instances see it, and in the configuration, which instances that start later read and Rust instances
//! obey at once.

use serde::Serialize;

use super::{error::AdminError, handle::Admin, model::ServerStatus};
use crate::problem::Problem;
use crate::{
    coordination::{
        floor::Floor,
        ledger::{LedgerPage, LedgerState},
        server_status::stored_data,
        tree::ShardNode,
    },
    job::JobName,
    registry::{Create, Error, ExpectedVersion, Op},
};

/// Maximum number of attempts if the job changes meanwhile.
const MAX_ATTEMPTS: usize = 8;

/// Result of enabling or disabling a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwitchResult {
    /// Addresses of the servers whose status changed.
    pub servers: Vec<String>,
    pub config: ConfigUpdate,
}

/// How the stored configuration was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum ConfigUpdate {
    /// The configuration was changed.
    Written,
    /// The configuration had the wanted value already.
    Unchanged,
    /// The configuration cannot be read and was not changed.
    Unreadable { problem: String },
}

impl Admin {
    /// Enables a job on all its servers and in its configuration.
    pub async fn enable(&self, job: &JobName) -> Result<SwitchResult, AdminError> {
        self.switch(job, ServerStatus::Enabled).await
    }

    /// Disables a job on all its servers and in its configuration, so that servers that join later do not run it either. Shards that are running
    /// finish.
    pub async fn disable(&self, job: &JobName) -> Result<SwitchResult, AdminError> {
        self.switch(job, ServerStatus::Disabled).await
    }

    /// Enables a server, in one job or in all. Returns the names of the jobs in which its status changed.
    pub async fn enable_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        self.switch_server(address, job, ServerStatus::Enabled).await
    }

    /// Disables a server, in one job or in all. Returns the names of the jobs in which its status changed.
    pub async fn disable_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        self.switch_server(address, job, ServerStatus::Disabled).await
    }

    /// Enables a shard. Returns whether it was disabled before.
    pub async fn enable_shard(&self, job: &JobName, shard: u32) -> Result<bool, AdminError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.existing_shard(job, shard).await?;
            let disabled = snapshot.tree.shard(shard, ShardNode::Disabled);
            if !snapshot.has(&disabled) {
                return Ok(false);
            }
            let delete = Op::Delete { path: disabled, expected: ExpectedVersion::Any };
            let floor = snapshot.store_floor(&Floor::of_shard(shard, self.clock.now()));
            let ops = floor.into_iter().chain([delete]).collect();
            if was_committed(self.registry.multi(ops).await)? {
                return Ok(true);
            }
        }
        Err(too_many_conflicts(job))
    }

    /// Disables a shard; if it is running, it finishes. Returns whether it was enabled before.
    pub async fn disable_shard(&self, job: &JobName, shard: u32) -> Result<bool, AdminError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.existing_shard(job, shard).await?;
            let tree = &snapshot.tree;
            let disabled = tree.shard(shard, ShardNode::Disabled);
            if snapshot.has(&disabled) {
                return Ok(false);
            }
            let paths = [tree.sharding(), tree.shard(shard, ShardNode::Root), disabled];
            let mut ops = vec![Op::Check { path: tree.config(), expected: ExpectedVersion::Any }];
            let missing = paths.iter().filter(|path| !snapshot.has(path));
            ops.extend(missing.map(|path| Op::Create(Create::persistent(path, ""))));
            if was_committed(self.registry.multi(ops).await)? {
                return Ok(true);
            }
        }
        Err(too_many_conflicts(job))
    }

    /// Replaces the ledger page of a shard if it cannot be read, so that the shard runs at its next fire: every fire up to now counts as started.
    /// Refused while a live instance runs the shard. Returns whether the page was replaced; one that can be read never is.
    pub async fn reset_shard(&self, job: &JobName, shard: u32) -> Result<bool, AdminError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.existing_shard(job, shard).await?;
            let tree = &snapshot.tree;
            let (Some((Err(_), _)), Some(version)) =
                (snapshot.page(shard), snapshot.page_version(shard))
            else {
                return Ok(false);
            };
            let holder = snapshot.holder(shard).map(|running| running.instance);
            if let Some(holder) = holder.filter(|holder| snapshot.is_alive(holder)) {
                return Err(AdminError::refused(
                    format!("shard {shard} of job {job} is running on {holder}"),
                    "wait until the run has ended, or shut that instance down",
                ));
            }
            let page = LedgerPage {
                due_at: Some(self.clock.now()),
                state: LedgerState::Done,
                ..LedgerPage::default()
            };
            let ops = vec![
                Op::Check { path: tree.config(), expected: ExpectedVersion::Any },
                // By version and not by deletion: claims rely on a version that only grows.
                Op::Set {
                    path: tree.ledger_page(shard),
                    data: page.to_bytes().into(),
                    expected: ExpectedVersion::Version(version),
                },
            ];
            if was_committed(self.registry.multi(ops).await)? {
                return Ok(true);
            }
        }
        Err(too_many_conflicts(job))
    }

    async fn existing_shard(
        &self,
        job: &JobName,
        shard: u32,
    ) -> Result<super::snapshot::JobSnapshot, AdminError> {
        let snapshot = self.existing_job(job).await?;
        let items = snapshot.items();
        if items.contains(shard) {
            return Ok(snapshot);
        }
        Err(AdminError::invalid(
            format!("job {job} has no shard {shard}"),
            format!("its shards are 0 to {}", items.len().saturating_sub(1)),
        ))
    }

    async fn switch(&self, job: &JobName, to: ServerStatus) -> Result<SwitchResult, AdminError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.existing_job(job).await?;
            let tree = &snapshot.tree;
            let mut ops = Vec::new();
            let version = snapshot.config_node().map(|node| node.stat.version).unwrap_or_default();
            let is_disabled = to == ServerStatus::Disabled;
            let update = match snapshot.config() {
                Some(Ok(mut config)) if config.disabled != is_disabled => {
                    config.disabled = is_disabled;
                    let expected = ExpectedVersion::Version(version);
                    ops.push(Op::Set {
                        path: tree.config(),
                        data: config.to_yaml().into(),
                        expected,
                    });
                    ConfigUpdate::Written
                }
                Some(Err(error)) => {
                    ConfigUpdate::Unreadable { problem: Problem::of(&error).to_string() }
                }
                _ => ConfigUpdate::Unchanged,
            };
            let servers = snapshot.servers().into_iter().filter(|server| server.status != to);
            let servers: Vec<String> = servers.map(|server| server.address).collect();
            ops.extend(servers.iter().map(|address| Op::Set {
                path: tree.server(address),
                data: stored_data(to == ServerStatus::Enabled).into(),
                expected: ExpectedVersion::Any,
            }));
            if !is_disabled && snapshot.is_disabled() {
                ops.extend(snapshot.store_floor(&Floor::of_job(self.clock.now())));
            }
            if ops.is_empty() || was_committed(self.registry.multi(ops).await)? {
                return Ok(SwitchResult { servers, config: update });
            }
        }
        Err(too_many_conflicts(job))
    }

    async fn switch_server(
        &self,
        address: &str,
        job: Option<&JobName>,
        to: ServerStatus,
    ) -> Result<Vec<String>, AdminError> {
        let mut switched = Vec::new();
        for (job, server_job) in self.server_jobs(address, job).await? {
            if server_job.status.is_none_or(|status| status == to) {
                continue;
            }
            if self.switch_server_of(address, &job, to).await? {
                switched.push(job.to_string());
            }
        }
        Ok(switched)
    }

    /// Whether the status was written; not if the job or the server has been removed meanwhile.
    async fn switch_server_of(
        &self,
        address: &str,
        job: &JobName,
        to: ServerStatus,
    ) -> Result<bool, AdminError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.snapshot(job).await?;
            let tree = &snapshot.tree;
            if !snapshot.has(&tree.config()) || !snapshot.has(&tree.server(address)) {
                return Ok(false);
            }
            let set = Op::Set {
                path: tree.server(address),
                data: stored_data(to == ServerStatus::Enabled).into(),
                expected: ExpectedVersion::Any,
            };
            let mut ops =
                vec![Op::Check { path: tree.config(), expected: ExpectedVersion::Any }, set];
            if to == ServerStatus::Enabled {
                let enabled = Floor::of_job(self.clock.now());
                ops.extend(snapshot.store_floor(&enabled).filter(|_| snapshot.is_disabled()));
            }
            // Refused if another console or an instance has stored the floor meanwhile.
            if was_committed(self.registry.multi(ops).await)? {
                return Ok(true);
            }
        }
        Err(too_many_conflicts(job))
    }
}

/// Whether a transaction was committed; false if a precondition no longer held.
pub(super) fn was_committed<T>(result: Result<T, Error>) -> Result<bool, AdminError> {
    match result {
        Ok(_) => Ok(true),
        Err(Error::Operation { cause, .. })
            if matches!(
                *cause,
                Error::Exists { .. }
                    | Error::Conflict { .. }
                    | Error::NotFound { .. }
                    | Error::NotEmpty { .. }
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn too_many_conflicts(job: &JobName) -> AdminError {
    AdminError::conflict(
        format!("job {job} changes faster than it can be read"),
        "do instances with different configurations overwrite each other? try again",
    )
}
