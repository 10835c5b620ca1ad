//! Whether a job can run.

use std::collections::BTreeMap;

use crate::{
    admin::{Admin, AdminError, JobSummary, Topic, Weight},
    job::JobName,
};

use super::{Check, Finding};

pub(super) async fn look(admin: &Admin, job: &JobSummary) -> Result<Vec<Finding>, AdminError> {
    let about = Some(job.name.as_str());
    if let Some(problem) = &job.problem {
        let (says, hint) = problem.split_once("; hint: ").unwrap_or((
            problem,
            "correct what is stored, or remove the job; whoever runs it goes on with what they read last",
        ));
        return Ok(vec![Finding::problem(Check::Job, about, says, hint)]);
    }
    let Ok(name) = job.name.parse::<JobName>() else { return Ok(Vec::new()) };
    let explanation = match admin.explain(&name, None, None).await {
        Ok(explanation) => explanation,
        Err(error @ AdminError::NotAuthorised { .. }) => {
            let hint = error.hint().to_owned();
            return Ok(vec![Finding::problem(Check::Job, about, "it may not be looked at", hint)]);
        }
        Err(error) => return Err(error),
    };
    let mut findings = Vec::new();
    let mut shards: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    let blocks = explanation.findings.into_iter().filter(|one| one.weight == Weight::Blocks);
    for one in blocks {
        if matches!(one.topic, Topic::Disabled | Topic::ShardDisabled | Topic::ServerDisabled) {
            // Somebody wanted it so. What else is wrong with a disabled job does not matter until it is enabled.
            let says =
                one.shard.map_or(one.says.clone(), |shard| format!("shard {shard}: {}", one.says));
            if one.topic == Topic::Disabled {
                return Ok(vec![Finding::fact(Check::Job, about, says)]);
            }
            findings.push(Finding::fact(Check::Job, about, says));
            continue;
        }
        match one.shard {
            None => findings.push(Finding::problem(
                Check::Job,
                about,
                one.says,
                one.hint.unwrap_or_default(),
            )),
            Some(shard) => {
                shards.entry((one.says, one.hint)).or_default().push(shard.to_string());
            }
        }
    }
    // What blocks the whole job blocks its shards.
    if !findings.iter().any(|finding| finding.is_problem) {
        for ((says, hint), shards) in shards {
            let says = format!("shard {}: {says}", shards.join(", "));
            findings.push(Finding::problem(Check::Job, about, says, hint.unwrap_or_default()));
        }
    }
    if job.cron.is_some() && job.next_fire.is_none() {
        let says = "its schedule is over: it is never due again";
        findings.push(Finding::problem(
            Check::Job,
            about,
            says,
            "give it another cron, or remove it",
        ));
    }
    Ok(findings)
}
