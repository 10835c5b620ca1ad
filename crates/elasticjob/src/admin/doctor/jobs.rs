//! Checks whether a job can run.

use std::collections::BTreeMap;

use crate::{
    admin::{Admin, AdminError, JobSummary, Severity, Topic},
    job::JobName,
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
