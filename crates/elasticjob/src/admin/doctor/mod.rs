//! Finds problems of a registry and its jobs, each with a hint.
//!
//! The checks run in the order in which they depend on each other: servers, access, clock, sessions, stale nodes, jobs. Nothing is repaired. One
//! node is written, in one job: the one by which Java ElasticJob measures the difference of clocks.

mod access;
mod clock;
mod jobs;
mod servers;
mod sessions;
mod stale;

use std::sync::Arc;

use crate::{
    admin::{Admin, AdminError},
    job::ShardLimit,
    registry::{Registry, ZooKeeperSettings, zookeeper::ZooKeeper},
};
use serde::Serialize;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DoctorFinding))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub check: Check,
    /// Whether the operator has to do something about it.
    pub is_problem: bool,
    /// The address of a server, the id of an instance, or the name of a job.
    pub about: Option<String>,
    pub message: String,
    /// What the operator can do about it.
    pub hint: Option<String>,
}

/// The subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DoctorCheck))]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// Whether the registry's servers answer, and their versions.
    Server,
    /// Whether all nodes have the same access list.
    Access,
    /// The difference between this machine's clock and the registry's.
    Clock,
    /// How much ZooKeeper has to write when a session ends.
    Session,
    /// Nodes that are no longer needed.
    Stale,
    /// Whether a job can run.
    Job,
}

impl Finding {
    /// A finding that needs no action.
    fn fact(check: Check, about: Option<&str>, message: impl Into<String>) -> Self {
        let about = about.map(ToOwned::to_owned);
        Self { check, is_problem: false, about, message: message.into(), hint: None }
    }

    /// A finding that needs action.
    fn problem(
        check: Check,
        about: Option<&str>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let hint = Some(hint.into());
        Self { is_problem: true, hint, ..Self::fact(check, about, message) }
    }
}

/// Runs all checks; a job may have up to `limit` shards.
pub async fn examine(
    settings: &ZooKeeperSettings,
    limit: ShardLimit,
) -> Result<Vec<Finding>, AdminError> {
    let registry = Arc::new(ZooKeeper::connect_read_only(settings).await?);
    let admin = Admin::new(Arc::clone(&registry) as Arc<dyn Registry>).max_shards(limit);
    let jobs = admin.jobs().await?;
    let mut findings = servers::check(settings).await;
    let namespace = registry.namespace();
    if registry.exists(namespace.path()).await?.is_none() {
        let message = format!("there is no namespace {namespace}");
        let hint = "is it spelled correctly? the first instance creates it";
        findings.push(Finding::problem(Check::Job, None, message, hint));
        registry.close().await;
        return Ok(findings);
    }
    findings.extend(access::check(&registry, &jobs).await?);
    findings.extend(clock::check(&*registry, &jobs).await);
    findings.extend(sessions::check(&*registry).await?);
    findings.extend(stale::check(&*registry, &admin, &jobs).await?);
    if jobs.is_empty() {
        let message = format!("there is no job in {namespace}");
        findings.push(Finding::fact(Check::Job, None, message));
    }
    for job in &jobs {
        findings.extend(jobs::check(&admin, job).await?);
    }
    registry.close().await;
    Ok(findings)
}
