//! What of the files can run here.

use std::path::PathBuf;

use elasticjob::problem::Problem;
use elasticjob_jobfile::{Entry, Jobs, Kind};

use crate::error::{Code, Error};

/// What can run here. What is a Java class is a mistake, or left out, with a note, if that was asked for.
pub(crate) fn runnable(
    jobs: Jobs,
    files: &[PathBuf],
    skip_java: bool,
    note: impl Fn(&str),
) -> Result<Vec<Entry>, Error> {
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    for entry in jobs.entries {
        let Kind::Java(class) = &entry.kind else {
            entries.push(entry);
            continue;
        };
        let Entry { job, place, .. } = &entry;
        let message =
            format!("{place}: job {} is the Java class {class}, which cannot run here", job.name);
        if skip_java {
            note(&format!("{message}: it is left out"));
            continue;
        }
        let hint = "write it as a Rust handler, or leave it to the Java process and run the others with --skip-java";
        problems.push(Problem { message, hint: Some(hint.to_owned()) });
    }
    if !problems.is_empty() {
        return Err(Error { code: Code::BadInput, problems });
    }
    if entries.is_empty() {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        return Err(Error::bad_input(format!(
            "there is no job to run in {}; hint: jobs stand below elasticjob.jobs, each with its name",
            files.join(", ")
        )));
    }
    Ok(entries)
}
