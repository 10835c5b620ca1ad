//! What is wrong in a registry, and what to do about it.
//!
//! A look from outside, in the order in which things depend on each other: the servers, who may enter, the clock, what was left behind, and the
//! jobs. Nothing is repaired. One thing is written: the node by which the ancestor measures clocks, in one job.

mod access;
mod clock;
mod jobs;
mod servers;
mod stale;

use std::sync::Arc;

use crate::{
    admin::{Admin, AdminError},
    registry::{Registry, ZooKeeperSettings, zookeeper::ZooKeeper},
};
use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DoctorFinding))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What was looked at.
    pub check: Check,
    /// Whether something has to be done about it.
    pub is_problem: bool,
    /// A server, a job.
    pub about: Option<String>,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DoctorCheck))]
#[serde(rename_all = "camelCase")]
pub enum Check {
    /// The registry's servers, their versions.
    Server,
    /// Who may do what.
    Access,
    /// This machine's clock and the registry's.
    Clock,
    /// What was left behind.
    Stale,
    /// Whether it can run.
    Job,
}

impl Finding {
    /// It is so, and that is fine.
    fn fact(check: Check, about: Option<&str>, message: impl Into<String>) -> Self {
        let about = about.map(ToOwned::to_owned);
        Self { check, is_problem: false, about, message: message.into(), hint: None }
    }

    /// Something has to be done.
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

/// Looks at everything.
pub async fn examine(settings: &ZooKeeperSettings) -> Result<Vec<Finding>, AdminError> {
    let registry = Arc::new(ZooKeeper::visit(settings).await?);
    let admin = Admin::on(Arc::clone(&registry) as Arc<dyn Registry>);
    let jobs = admin.jobs().await?;
    let mut findings = servers::look(settings).await;
    let namespace = registry.namespace();
    if registry.exists(namespace.path()).await?.is_none() {
        let says = format!("there is no namespace {namespace}");
        let hint = "is it another one? the first instance creates it";
        findings.push(Finding::problem(Check::Job, None, says, hint));
        registry.close().await;
        return Ok(findings);
    }
    findings.extend(access::look(&registry, &jobs).await?);
    findings.extend(clock::look(&*registry, &jobs).await);
    findings.extend(stale::look(&*registry, &admin, &jobs).await?);
    if jobs.is_empty() {
        let says = format!("there is none in {namespace}");
        findings.push(Finding::fact(Check::Job, None, says));
    }
    for job in &jobs {
        findings.extend(jobs::look(&admin, job).await?);
    }
    registry.close().await;
    Ok(findings)
}
