//! What was left behind: servers without instances, triggers nobody takes, pages of the ledger without a job.

use crate::{
    admin::{Admin, AdminError, JobSummary},
    job::JobName,
    registry::Registry,
};

use super::{Check, Finding};

/// How many of them are named.
const NAMED: usize = 5;

pub(super) async fn look(
    registry: &dyn Registry,
    admin: &Admin,
    jobs: &[JobSummary],
) -> Result<Vec<Finding>, AdminError> {
    let mut findings = Vec::new();
    let servers = admin.servers().await?.into_iter().filter(|server| server.instances.is_empty());
    let servers: Vec<String> = servers.map(|server| server.address).collect();
    if !servers.is_empty() {
        let says = format!("servers without an instance: {}", some_of(&servers));
        let hint = "if they are not coming back: elasticjob server remove ADDRESS";
        findings.push(Finding::problem(Check::Stale, None, says, hint));
    }
    for job in jobs {
        findings.extend(triggers(admin, &job.name).await?);
    }
    if let Ok(ledger) = registry.namespace().sibling("ledger") {
        let mut pages = registry.children(ledger.path()).await?.unwrap_or_default();
        pages.retain(|page| !jobs.iter().any(|job| job.name == *page));
        pages.sort_unstable();
        if !pages.is_empty() {
            let says = format!("the ledger has pages of jobs that are gone: {}", some_of(&pages));
            let hint = "elasticjob job remove JOB clears them away";
            findings.push(Finding::problem(Check::Stale, None, says, hint));
        }
    }
    Ok(findings)
}

/// Somebody was asked to run who is no member any more.
async fn triggers(admin: &Admin, job: &str) -> Result<Option<Finding>, AdminError> {
    let Ok(name) = job.parse::<JobName>() else { return Ok(None) };
    let mut details = match admin.job(&name).await {
        Ok(details) => details,
        // What cannot be looked at is told with the jobs.
        Err(AdminError::NotFound { .. } | AdminError::NotAuthorised { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    details.triggers.retain(|id| !details.instances.iter().any(|instance| instance.id == *id));
    if details.triggers.is_empty() {
        return Ok(None);
    }
    let says = format!("asked to run, and gone: {}", some_of(&details.triggers));
    let hint =
        format!("nobody takes these any more: delete them below {job}/trigger, or remove the job");
    Ok(Some(Finding::problem(Check::Stale, Some(job), says, hint)))
}

fn some_of(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
