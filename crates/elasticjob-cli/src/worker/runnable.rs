//! Selects the jobs of the files that a worker can run.

use std::path::PathBuf;

use elasticjob::problem::Problem;
use elasticjob_jobfile::{Entry, Jobs, Kind};

use crate::error::{Code, Error};

/// The jobs that can run here. A Java class is an error or, with `skip_java`, skipped with a note.
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
        let Entry { job, location, .. } = &entry;
        let message = format!(
            "{location}: job {} is the Java class {class}, which cannot run here",
            job.name
        );
        if skip_java {
            note(&format!("{message}: it is skipped"));
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
        return Err(Error::bad_input(format!("no job found in {}", files.join(", ")))
            .with_hint("define jobs below elasticjob.jobs, each under its name"));
    }
    Ok(entries)
}
