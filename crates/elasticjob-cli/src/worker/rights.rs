//! What a registry may make this machine do.
//!
//! What is stored counts, so whoever can write to the registry can give a job another command line or another address, and define jobs of their
//! own. What the files say is the operator's own word and always runs. Everything else runs only where the operator said so: programs below
//! certain folders, requests to certain hosts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use elasticjob::{
    execution::{Failure, Http, Script},
    job::{Job, JobName, keys},
};

use crate::error::Error;
use elasticjob_jobfile::{Entry, Kind};

/// What a registry may make this machine do, besides what the files say. Clones are the same rights.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rights {
    /// Folders whose programs may run, as they really are.
    folders: Vec<PathBuf>,
    /// Hosts, with a port or without.
    hosts: Vec<String>,
    /// What the files say now.
    filed: Arc<Mutex<BTreeMap<JobName, Job>>>,
}

impl Rights {
    /// Programs in these folders, requests to these hosts.
    pub(crate) fn new(folders: &[PathBuf], hosts: &[String]) -> Result<Self, Error> {
        let folders = folders.iter().map(|folder| match folder.canonicalize() {
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => {
                Err(Error::bad_input(format!("--scripts-from {}: not a folder", folder.display())))
            }
            Err(error) => {
                Err(Error::bad_input(format!("--scripts-from {}: {error}", folder.display())))
            }
        });
        let folders = folders.collect::<Result<_, _>>()?;
        Ok(Self { folders, hosts: hosts.to_vec(), filed: Arc::default() })
    }

    /// Whether anything of this kind may run that no file says.
    pub(super) fn has(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Script => !self.folders.is_empty(),
            Kind::Http => !self.hosts.is_empty(),
            Kind::Java(_) => false,
        }
    }

    /// The files say this from now on.
    pub(super) fn files_say<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) {
        let jobs = entries.into_iter().map(|entry| (entry.job.name.clone(), entry.job.clone()));
        *self.filed.lock().unwrap_or_else(PoisonError::into_inner) = jobs.collect();
    }

    /// What is asked before every run of a job of this kind.
    pub(super) fn permit(
        &self,
        kind: &Kind,
    ) -> impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static {
        let (rights, kind) = (self.clone(), kind.clone());
        move |stored| rights.may(&kind, stored)
    }

    /// Whether a job may run as it is stored.
    pub(super) fn may(&self, kind: &Kind, stored: &Job) -> Result<(), Failure> {
        let filed = self.filed.lock().unwrap_or_else(PoisonError::into_inner);
        let file = filed.get(&stored.name);
        match kind {
            Kind::Script => self.script(file, stored),
            Kind::Http => self.request(file, stored),
            Kind::Java(_) => Ok(()),
        }
    }

    fn script(&self, file: Option<&Job>, stored: &Job) -> Result<(), Failure> {
        const LINE: &str = "script.command.line";
        let said = |job: &Job| {
            let shell = job.props.policies().script_shell;
            (job.props.get(LINE).map(ToOwned::to_owned), shell)
        };
        let script = Script::of(stored)?;
        if file.is_some_and(|file| said(file) == said(stored))
            || self.folders.iter().any(|dir| holds(dir, script.program()))
        {
            return Ok(());
        }
        let line = stored.props.get(LINE).unwrap_or_default();
        let shell = if stored.props.policies().script_shell { keys::SCRIPT_SHELL } else { LINE };
        Err(Failure::new(format_args!(
            "{shell}: the registry says {line:?}, which no file says; hint: --scripts-from DIR allows programs in a folder, by their full path"
        )))
    }

    fn request(&self, file: Option<&Job>, stored: &Job) -> Result<(), Failure> {
        const URI: &str = "http.uri";
        let host = Http::of(stored)?.host();
        let without_port = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let is_allowed = |allowed: &String| {
            allowed.eq_ignore_ascii_case(&host) || allowed.eq_ignore_ascii_case(without_port)
        };
        if file.is_some_and(|file| file.props.get(URI) == stored.props.get(URI))
            || self.hosts.iter().any(is_allowed)
        {
            return Ok(());
        }
        Err(Failure::new(format_args!(
            "{URI}: the registry names the host {host}, which no file does; hint: --http-allow HOST allows requests to a host"
        )))
    }
}

/// Whether a program is in a folder, links and `..` followed. One that the search path has to find is not.
fn holds(folder: &Path, program: &Path) -> bool {
    program.is_absolute() && program.canonicalize().is_ok_and(|real| real.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn script(line: &str) -> Job {
        Job::named("j").unwrap().prop("script.command.line", line).unwrap()
    }

    fn request(uri: &str) -> Job {
        let job = Job::named("j").unwrap().prop("http.uri", uri).unwrap();
        job.prop("http.method", "GET").unwrap()
    }

    /// With a file that says this.
    fn filed(rights: &Rights, job: &Job, kind: &Kind) {
        let place = elasticjob_jobfile::Place { file: "jobs.yml".into(), line: 1 };
        rights.files_say([&Entry { job: job.clone(), kind: kind.clone(), place }]);
    }

    #[test]
    fn what_the_file_says_may_run_and_another_command_line_may_not() {
        let rights = Rights::default();
        filed(&rights, &script("echo a"), &Kind::Script);
        let may = rights.permit(&Kind::Script);

        assert_eq!(may(&script("echo a")), Ok(()));
        let refused = may(&script("rm -r /")).unwrap_err().to_string();
        assert!(refused.contains("--scripts-from"), "{refused}");
        let shell = script("echo a").prop(keys::SCRIPT_SHELL, "true").unwrap();
        assert!(may(&shell).is_err());
        filed(&rights, &script("echo b"), &Kind::Script);
        assert!(may(&script("echo a")).is_err(), "what the file said before is nobody's word");
        assert_eq!(may(&script("echo b")), Ok(()));
    }

    #[test]
    fn a_program_in_an_allowed_folder_may_run_and_one_that_only_looks_so_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("jobs"), folder.path().join("other"));
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("a.sh"), "").unwrap();
        fs::write(&outside, "").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let rights = Rights::new(std::slice::from_ref(&inside), &[]).unwrap();
        let may = rights.permit(&Kind::Script);
        let run = |program: &str| may(&script(&format!("{}/{program} x", inside.display())));

        assert_eq!(run("a.sh"), Ok(()));
        assert!(run("../other").is_err());
        assert!(run("link").is_err());
        assert!(run("absent").is_err());
        assert!(may(&script("a.sh")).is_err());
    }

    #[test]
    fn a_request_to_another_host_needs_a_word() {
        let file = request("http://shop/settle");
        let rights = Rights::new(&[], &["metrics".to_owned(), "shop:8080".to_owned()]).unwrap();
        filed(&rights, &file, &Kind::Http);
        let may = rights.permit(&Kind::Http);

        assert_eq!(may(&file), Ok(()));
        assert_eq!(may(&request("http://METRICS:9000/")), Ok(()));
        assert_eq!(may(&request("http://shop:8080/")), Ok(()));
        assert!(may(&request("http://shop:8081/")).is_err());
        assert!(may(&request("http://169.254.169.254/latest")).is_err());
    }
}
