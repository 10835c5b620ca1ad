//! Configurations of 2.1.5, to be carried over.

use std::sync::Arc;

use elasticjob::job::{JobName, Legacy, LegacyKind};
use serde_json::Value;

use super::{Entry, Jobs, Kind, Place};
use elasticjob::problem::Problem;

/// Whether a JSON file is what 2.1.5 stored for a job.
pub(super) fn is_legacy(text: &str) -> bool {
    let document: Option<Value> = serde_json::from_str(text).ok();
    document.is_some_and(|document| {
        document.get("jobName").is_some() && document.get("jobType").is_some()
    })
}

/// Reads what 2.1.5 stored for a job.
pub(super) fn read_json(file: &Arc<str>, text: &str, jobs: &mut Jobs, problems: &mut Vec<Problem>) {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let name = document.get("jobName").and_then(Value::as_str).unwrap_or_default();
    let place = Place { file: Arc::clone(file), line: 1 };
    add(name, text, place, jobs, problems);
}

/// Adds the job of this document.
pub(super) fn add(
    name: &str,
    document: &str,
    place: Place,
    jobs: &mut Jobs,
    problems: &mut Vec<Problem>,
) {
    let mut wrong = |problem: String| problems.push(Problem::new(format!("{place}: {problem}")));
    let name: JobName = match name.parse() {
        Ok(name) => name,
        Err(error) => return wrong(error.to_string()),
    };
    let legacy = match Legacy::read(&name, document.as_bytes()) {
        Ok(legacy) => legacy,
        Err(error) => {
            let key = error.key.map(|key| format!("{key}: ")).unwrap_or_default();
            return wrong(format!("job {name}: {key}{}", error.problem));
        }
    };
    let kind = match (legacy.kind, legacy.class) {
        (LegacyKind::Script, _) => Kind::Script,
        (LegacyKind::Simple | LegacyKind::Dataflow, Some(class)) => Kind::Java(class),
        (LegacyKind::Simple | LegacyKind::Dataflow, None) => {
            return wrong(format!("job {name}: nothing says which class runs it"));
        }
    };
    for dropped in legacy.dropped {
        jobs.notes.push(format!("{place}: job {name}: {dropped}"));
    }
    jobs.entries.push(Entry { job: legacy.job, kind, place });
}
