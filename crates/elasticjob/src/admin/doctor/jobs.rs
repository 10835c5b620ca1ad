//! Checks whether a job can run.

use std::collections::BTreeMap;

use crate::{
    admin::{Admin, AdminError, JobDetails, JobSummary, Language, Severity, Topic},
    job::{JobName, SecretRef},
};

use super::{Check, Finding};
use crate::problem::Hint;

pub(super) async fn check(admin: &Admin, job: &JobSummary) -> Result<Vec<Finding>, AdminError> {
    let about = Some(job.name.as_str());
    if let Some(problem) = &job.problem {
        let hint = job.hint.as_deref().unwrap_or(
            "correct the stored configuration, or remove the job; instances continue with the last configuration they could read",
        );
        return Ok(vec![Finding::problem(Check::Job, about, problem, hint)]);
    }
    let Ok(name) = job.name.parse::<JobName>() else { return Ok(Vec::new()) };
    let explanation = match admin.explain(&name, None, None).await {
        Ok(explanation) => explanation,
        Err(error @ AdminError::NotAuthorised { .. }) => {
            let hint = error.hint().unwrap_or_default().into_owned();
            return Ok(vec![Finding::problem(Check::Job, about, "access is denied", hint)]);
        }
        Err(error) => return Err(error),
    };
    let mut findings = Vec::new();
    let mut shards: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    let blocking =
        explanation.findings.into_iter().filter(|one| one.severity == Severity::Blocking);
    for one in blocking {
        if matches!(one.topic, Topic::Disabled | Topic::ShardDisabled | Topic::ServerDisabled) {
            // Disabling is deliberate, so it is no problem. Other problems of a disabled job do not matter until it is enabled.
            let message = one
                .shard
                .map_or(one.message.clone(), |shard| format!("shard {shard}: {}", one.message));
            if one.topic == Topic::Disabled {
                return Ok(vec![Finding::fact(Check::Job, about, message)]);
            }
            findings.push(Finding::fact(Check::Job, about, message));
            continue;
        }
        match one.shard {
            None => findings.push(Finding::problem(
                Check::Job,
                about,
                one.message,
                one.hint.unwrap_or_default(),
            )),
            Some(shard) => {
                shards.entry((one.message, one.hint)).or_default().push(shard.to_string());
            }
        }
    }
    // A problem of the whole job also blocks its shards, so those are not reported then.
    if !findings.iter().any(|finding| finding.is_problem) {
        for ((message, hint), shards) in shards {
            let message = format!("shard {}: {message}", shards.join(", "));
            findings.push(Finding::problem(Check::Job, about, message, hint.unwrap_or_default()));
        }
    }
    match admin.job(&name).await {
        Ok(details) => findings.extend(literal_secrets(&details)),
        // Removed meanwhile.
        Err(AdminError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    if job.cron.is_some() && job.next_fire.is_none() {
        let message = "its schedule is over: it has no next fire";
        findings.push(Finding::problem(
            Check::Job,
            about,
            message,
            "set another cron expression, or remove the job",
        ));
    }
    Ok(findings)
}

/// Java knows no references to secrets: an instance of it would send the text `secret:NAME` itself.
fn literal_secrets(details: &JobDetails) -> Option<Finding> {
    let job = details.configuration.job.as_ref()?;
    let instances = &details.instances;
    let is_java = instances.iter().any(|instance| instance.language == Language::Java);
    let keys = job.props.iter().filter(|(_, value)| SecretRef::find_all(value).next().is_some());
    let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
    if keys.is_empty() || !is_java {
        return None;
    }
    let message = format!(
        "it has Java instances, which do not resolve references to secrets but use the text itself: {}",
        keys.join(", ")
    );
    let hint = "let only Rust instances run the job, or store the value instead of the reference";
    Some(Finding::problem(Check::Job, Some(job.name.as_str()), message, hint))
}
