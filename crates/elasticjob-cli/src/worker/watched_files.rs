//! Watches job files for changes.
//!
//! The files are read again about once a second, by path: editors replace a file by a new one, and Kubernetes redirects a link. A change is applied
//! once two consecutive reads agree, so that a half-written file is never used.

use std::{env, mem, path::PathBuf};

use elasticjob_jobfile::{self as jobfile, Entry, JobFileError, Jobs, Sources};

use super::runnable::runnable;
use crate::error::Error;

pub(crate) struct WatchedFiles {
    paths: Vec<PathBuf>,
    skip_java: bool,
    /// Registry URL of the files at the start.
    registry: Option<String>,
    last_read: Result<Sources, JobFileError>,
    /// Content that was last returned by [`WatchedFiles::poll`].
    last_applied: Result<Sources, JobFileError>,
}

impl WatchedFiles {
    /// Reads the files for the first time; returns the watcher and their jobs.
    pub(crate) fn read(paths: &[PathBuf], skip_java: bool) -> Result<(Self, Jobs), Error> {
        let sources = jobfile::load(paths)?;
        let jobs = parse(&sources)?;
        let files = Self {
            paths: paths.to_vec(),
            skip_java,
            registry: jobs.registry.as_ref().map(|(_, url)| url.clone()),
            last_read: Ok(sources.clone()),
            last_applied: Ok(sources),
        };
        Ok((files, jobs))
    }

    /// Reads the files once. Returns their jobs, or why they cannot be used, if their content has changed and settled.
    pub(super) async fn poll(&mut self) -> Option<Result<Vec<Entry>, Error>> {
        let paths = self.paths.clone();
        // The folder may be on a slow network file system.
        let now = tokio::task::spawn_blocking(move || jobfile::load(&paths)).await.ok()?;
        let before = mem::replace(&mut self.last_read, now.clone());
        if now != before || now == self.last_applied {
            return None;
        }
        self.last_applied.clone_from(&now);
        Some(now.map_err(Error::from).and_then(|sources| self.entries(&sources)))
    }

    fn entries(&self, sources: &Sources) -> Result<Vec<Entry>, Error> {
        let jobs = parse(sources)?;
        let registry = jobs.registry.as_ref().map(|(_, url)| url.clone());
        if registry != self.registry {
            let hint = "restart the worker to use it";
            tracing::warn!(hint, "job files name a different registry");
        }
        let note = |note: &str| tracing::warn!(note, "job files partly ignored");
        jobs.notes.iter().for_each(|text| note(text));
        runnable(jobs, &self.paths, self.skip_java, note)
    }
}

fn parse(sources: &Sources) -> Result<Jobs, Error> {
    Ok(jobfile::parse(sources, &|name| env::var(name).ok())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const JOBS: &str = "elasticjob: {jobs: {hello: {props: {script.command.line: echo}}}}";

    async fn names(files: &mut WatchedFiles) -> Option<Result<Vec<String>, String>> {
        let polled = files.poll().await?.map_err(|error| error.line());
        Some(polled.map(|entries| entries.iter().map(|entry| entry.job.name.to_string()).collect()))
    }

    #[tokio::test]
    async fn change_is_applied_once_settled_and_errors_are_returned_once() {
        let folder = tempfile::tempdir().unwrap();
        let (real, path) = (folder.path().join("one.yml"), folder.path().join("jobs.yml"));
        fs::write(&real, JOBS).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        let (mut files, _) = WatchedFiles::read(std::slice::from_ref(&path), false).unwrap();

        assert_eq!(names(&mut files).await, None);
        // As Kubernetes does it: write a new file, then replace the link.
        let other = folder.path().join("two.yml");
        fs::write(&other, JOBS.replace("hello", "howdy")).unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("link")).unwrap();
        fs::rename(folder.path().join("link"), &path).unwrap();
        assert_eq!(names(&mut files).await, None, "it may still be changing");
        assert_eq!(names(&mut files).await, Some(Ok(vec!["howdy".to_owned()])));
        assert_eq!(names(&mut files).await, None, "returned once");

        fs::remove_file(&path).unwrap();
        assert_eq!(names(&mut files).await, None);
        let gone = names(&mut files).await.unwrap().unwrap_err();
        assert!(gone.starts_with("cannot read "), "{gone}");
        assert_eq!(names(&mut files).await, None, "returned once");
        fs::write(&path, "").unwrap();
        assert_eq!(names(&mut files).await, None);
        let empty = names(&mut files).await.unwrap().unwrap_err();
        assert!(empty.starts_with("no job found in "), "{empty}");
    }
}
