//! When the files say something else.
//!
//! They are read again about once a second, by their paths: editors put a new file in the place of the old one, and Kubernetes points a link
//! somewhere else. What has changed counts when it has stood still from one look to the next, so that nobody acts on half a file.

use std::{env, mem, path::PathBuf};

use elasticjob_jobfile::{self as jobfile, Entry, JobFileError, Jobs, Texts};

use super::runnable::runnable;
use crate::error::Error;

/// Files that are looked at again and again.
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    skip_java: bool,
    /// Where they said that the registry is.
    registry: Option<String>,
    /// What was seen last.
    seen: Result<Texts, JobFileError>,
    /// What was seen when they last counted.
    heeded: Result<Texts, JobFileError>,
}

impl Files {
    /// Reads them for the first time: what watches them from now on, and what they say.
    pub(crate) fn read(paths: &[PathBuf], skip_java: bool) -> Result<(Self, Jobs), Error> {
        let texts = jobfile::load(paths)?;
        let jobs = understand(&texts)?;
        let files = Self {
            paths: paths.to_vec(),
            skip_java,
            registry: jobs.registry.as_ref().map(|(_, url)| url.clone()),
            seen: Ok(texts.clone()),
            heeded: Ok(texts),
        };
        Ok((files, jobs))
    }

    /// Looks at them once. What they say now, or why that is not known, if it is not what it was.
    pub(super) async fn look(&mut self) -> Option<Result<Vec<Entry>, Error>> {
        let paths = self.paths.clone();
        // A folder may be far away, and slow.
        let now = tokio::task::spawn_blocking(move || jobfile::load(&paths)).await.ok()?;
        let before = mem::replace(&mut self.seen, now.clone());
        if now != before || now == self.heeded {
            return None;
        }
        self.heeded.clone_from(&now);
        Some(now.map_err(Error::from).and_then(|texts| self.entries(&texts)))
    }

    fn entries(&self, texts: &Texts) -> Result<Vec<Entry>, Error> {
        let jobs = understand(texts)?;
        let registry = jobs.registry.as_ref().map(|(_, url)| url.clone());
        if registry != self.registry {
            tracing::warn!(
                "the files name another registry than at the start; hint: a node stays where it is until it is started again"
            );
        }
        let note =
            |note: &str| tracing::warn!(note, "not everything in the files has an effect here");
        jobs.notes.iter().for_each(|text| note(text));
        runnable(jobs, &self.paths, self.skip_java, note)
    }
}

fn understand(texts: &Texts) -> Result<Jobs, Error> {
    Ok(jobfile::understand(texts, &|name| env::var(name).ok())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const JOBS: &str = "elasticjob: {jobs: {hello: {props: {script.command.line: echo}}}}";

    async fn names(files: &mut Files) -> Option<Result<Vec<String>, String>> {
        let said = files.look().await?.map_err(|error| error.line());
        Some(said.map(|entries| entries.iter().map(|entry| entry.job.name.to_string()).collect()))
    }

    #[tokio::test]
    async fn a_change_counts_when_it_has_stood_still_and_a_wrong_one_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let (real, path) = (folder.path().join("one.yml"), folder.path().join("jobs.yml"));
        fs::write(&real, JOBS).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        let (mut files, _) = Files::read(std::slice::from_ref(&path), false).unwrap();

        assert_eq!(names(&mut files).await, None);
        // As Kubernetes does it: another file, then the link.
        let other = folder.path().join("two.yml");
        fs::write(&other, JOBS.replace("hello", "howdy")).unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("link")).unwrap();
        fs::rename(folder.path().join("link"), &path).unwrap();
        assert_eq!(names(&mut files).await, None, "it may still be changing");
        assert_eq!(names(&mut files).await, Some(Ok(vec!["howdy".to_owned()])));
        assert_eq!(names(&mut files).await, None, "it is told once");

        fs::remove_file(&path).unwrap();
        assert_eq!(names(&mut files).await, None);
        let gone = names(&mut files).await.unwrap().unwrap_err();
        assert!(gone.starts_with("cannot read "), "{gone}");
        assert_eq!(names(&mut files).await, None, "it is told once");
        fs::write(&path, "").unwrap();
        assert_eq!(names(&mut files).await, None);
        let empty = names(&mut files).await.unwrap().unwrap_err();
        assert!(empty.starts_with("there is no job to run in "), "{empty}");
    }
}
