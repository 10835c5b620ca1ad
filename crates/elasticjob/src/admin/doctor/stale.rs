//! Finds stale nodes: servers without instances, triggers of instances that are gone, ledger pages without a job.

use crate::{
    admin::{Admin, AdminError, JobSummary},
    job::JobName,
    registry::Registry,
};

use super::{Check, Finding};

/// Maximum number of names in a message.
const MAX_NAMED: usize = 5;

pub(super) async fn check(
    registry: &dyn Registry,
    admin: &Admin,
    jobs: &[JobSummary],
) -> Result<Vec<Finding>, AdminError> {
    let mut findings = Vec::new();
    let servers = admin.servers().await?.into_iter().filter(|server| server.instances.is_empty());
    let servers: Vec<String> = servers.map(|server| server.address).collect();
    if !servers.is_empty() {
        let message = format!("servers without an instance: {}", first_names(&servers));
        let hint = "if they are not coming back: elasticjob server remove ADDRESS";
        findings.push(Finding::problem(Check::Stale, None, message, hint));
    }
    for job in jobs {
        findings.extend(stale_triggers(admin, &job.name).await?);
    }
    if let Ok(ledger) = registry.namespace().sibling("ledger") {
        let mut pages = registry.children(ledger.path()).await?.unwrap_or_default();
        pages.retain(|page| !jobs.iter().any(|job| job.name == *page));
        pages.sort_unstable();
        if !pages.is_empty() {
            let message =
                format!("the ledger has pages of jobs that are gone: {}", first_names(&pages));
            let hint = "elasticjob job remove JOB deletes them";
            findings.push(Finding::problem(Check::Stale, None, message, hint));
        }
    }
    Ok(findings)
}

/// Triggers of instances that are gone.
async fn stale_triggers(admin: &Admin, job: &str) -> Result<Option<Finding>, AdminError> {
    let Ok(name) = job.parse::<JobName>() else { return Ok(None) };
    let mut details = match admin.job(&name).await {
        Ok(details) => details,
        // The check of jobs reports a job that cannot be read.
        Err(AdminError::NotFound { .. } | AdminError::NotAuthorised { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    details.triggers.retain(|id| !details.instances.iter().any(|instance| instance.id == *id));
    if details.triggers.is_empty() {
        return Ok(None);
    }
    let message =
        format!("triggers of instances that are gone: {}", first_names(&details.triggers));
    let hint = format!(
        "no instance takes these any more: delete them below {job}/trigger, or remove the job"
    );
    Ok(Some(Finding::problem(Check::Stale, Some(job), message, hint)))
}

fn first_names(names: &[String]) -> String {
    let first = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
