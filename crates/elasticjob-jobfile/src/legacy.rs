//! Configurations of Java ElasticJob 2.1.5, for migration.

use std::sync::Arc;

use elasticjob::job::{JobName, LegacyJob, LegacyKind};
use serde_json::Value;

use super::{Entry, Jobs, Kind, Location};
use elasticjob::problem::Problem;

/// Whether a JSON file is a job configuration as stored by 2.1.5.
pub(super) fn is_legacy(text: &str) -> bool {
    let document: Option<Value> = serde_json::from_str(text).ok();
    document.is_some_and(|document| {
        document.get("jobName").is_some() && document.get("jobType").is_some()
    })
}

/// Reads a job configuration as stored by 2.1.5.
pub(super) fn read_json(file: &Arc<str>, text: &str, jobs: &mut Jobs, problems: &mut Vec<Problem>) {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let name = document.get("jobName").and_then(Value::as_str).unwrap_or_default();
    let location = Location { file: Arc::clone(file), line: 1 };
    add(name, text, location, jobs, problems);
}

/// Adds the job that this 2.1.5 configuration describes.
pub(super) fn add(
    name: &str,
    document: &str,
    location: Location,
    jobs: &mut Jobs,
    problems: &mut Vec<Problem>,
) {
    let mut report = |problem: Problem| problems.push(problem.at(&location));
    let name: JobName = match name.parse() {
        Ok(name) => name,
        Err(error) => return report(Problem::of(&error)),
    };
    let legacy = match LegacyJob::read(&name, document.as_bytes()) {
        Ok(legacy) => legacy,
        Err(error) => {
            let key = error.key.map(|key| format!("{key}: ")).unwrap_or_default();
            let message = format!("job {name}: {key}{}", error.problem);
            return report(Problem { message, hint: error.hint.map(String::from) });
        }
    };
    let kind = match (legacy.kind, legacy.class) {
        (LegacyKind::Script, _) => Kind::Script,
        (LegacyKind::Simple | LegacyKind::Dataflow, Some(class)) => Kind::Java(class),
        (LegacyKind::Simple | LegacyKind::Dataflow, None) => {
            return report(Problem::new(format!("job {name}: jobClass is missing")));
        }
    };
    for dropped in legacy.dropped {
        jobs.notes.push(format!("{location}: job {name}: {dropped}"));
    }
    jobs.entries.push(Entry { job: legacy.job, kind, location });
}
