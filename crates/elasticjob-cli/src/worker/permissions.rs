//! Which commands and requests from the registry this worker may run.
//!
//! Stored configuration overrides the files, so anyone who can write to the registry can change the command line or URL of a job, or define new jobs.
//! Commands and URLs of the local files are trusted and always run. Everything else runs only if the operator allowed it: programs in the
//! folders of `--scripts-from`, requests to the hosts of `--http-allow`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use elasticjob::{
    execution::{Failure, Http, Script},
    job::{Job, JobName, keys, mask_text},
};

use crate::error::Error;
use elasticjob::problem::Problem;
use elasticjob_jobfile::{Entry, Kind};

/// What may run besides the commands and URLs of the files. Clones share the file jobs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permissions {
    /// Canonical paths of the folders whose programs may run.
    folders: Vec<PathBuf>,
    /// Hosts, with or without port.
    hosts: Vec<String>,
    /// The jobs of the files as last read.
    file_jobs: Arc<Mutex<BTreeMap<JobName, Job>>>,
}

impl Permissions {
    /// Allows programs in these folders and requests to these hosts.
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
        Ok(Self { folders, hosts: hosts.to_vec(), file_jobs: Arc::default() })
    }

    /// Whether anything of this kind may run that is not in the files.
    pub(super) fn allows_any(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Script => !self.folders.is_empty(),
            Kind::Http => !self.hosts.is_empty(),
            Kind::Java(_) => false,
        }
    }

    /// Replaces the jobs of the files.
    pub(super) fn set_file_jobs<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) {
        let jobs = entries.into_iter().map(|entry| (entry.job.name.clone(), entry.job.clone()));
        *self.file_jobs.lock().unwrap_or_else(PoisonError::into_inner) = jobs.collect();
    }

    /// The job of the files with this name.
    pub(super) fn file_job(&self, name: &JobName) -> Option<Job> {
        self.file_jobs.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A check to be made before every run of a job of this kind.
    pub(super) fn guard(
        &self,
        kind: &Kind,
    ) -> impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static {
        let (permissions, kind) = (self.clone(), kind.clone());
        move |stored| permissions.check(&kind, stored)
    }

    /// Whether a job may run with its stored configuration.
    pub(super) fn check(&self, kind: &Kind, stored: &Job) -> Result<(), Failure> {
        let file_jobs = self.file_jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file_jobs.get(&stored.name);
        match kind {
            Kind::Script => self.check_script(file, stored),
            Kind::Http => self.check_request(file, stored),
            Kind::Java(_) => Ok(()),
        }
    }

    fn check_script(&self, file: Option<&Job>, stored: &Job) -> Result<(), Failure> {
        const LINE: &str = "script.command.line";
        let command = |job: &Job| {
            let shell = job.props.policies().script_shell;
            (job.props.get(LINE).map(ToOwned::to_owned), shell)
        };
        let script = Script::of(stored)?;
        if file.is_some_and(|file| command(file) == command(stored))
            || self.folders.iter().any(|dir| contains(dir, script.program()))
        {
            return Ok(());
        }
        let line = mask_text(stored.props.get(LINE).unwrap_or_default());
        let shell = if stored.props.policies().script_shell { keys::SCRIPT_SHELL } else { LINE };
        let problem = format!("{shell}: the registry sets {line:?}, which is not in the job files");
        let hint = "--scripts-from DIR allows programs in a folder, by their full path";
        Err(Failure::new(Problem::new(problem).with_hint(hint)))
    }

    fn check_request(&self, file: Option<&Job>, stored: &Job) -> Result<(), Failure> {
        const URI: &str = "http.uri";
        let host = Http::of(stored)?.host();
        let without_port = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let is_allowed = |allowed: &String| {
            allowed.eq_ignore_ascii_case(&host) || allowed.eq_ignore_ascii_case(without_port)
        };
        if file.is_some_and(|file| {
            file.props.get(URI) == stored.props.get(URI) && has_same_headers(file, stored)
        }) || self.hosts.iter().any(is_allowed)
        {
            return Ok(());
        }
        let problem =
            format!("{URI}: the registry sets the host {host:?}, which is not in the job files");
        let hint = "--http-allow HOST allows requests to a host";
        Err(Failure::new(Problem::new(problem).with_hint(hint)))
    }
}

/// Whether the requests of two jobs have the same headers: those of the registry must not be sent to a host that only the file may call.
fn has_same_headers(file: &Job, stored: &Job) -> bool {
    let keys = file.props.iter().chain(stored.props.iter()).map(|(key, _)| key);
    let mut headers = keys.filter(|key| key.starts_with(keys::HTTP_HEADER));
    headers.all(|key| file.props.get(key) == stored.props.get(key))
}

/// Whether a program is in a folder, after links and `..` are resolved. A program that is found through `PATH` is not.
fn contains(folder: &Path, program: &Path) -> bool {
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

    fn set_file_job(permissions: &Permissions, job: &Job, kind: &Kind) {
        let location = elasticjob_jobfile::Location { file: "jobs.yml".into(), line: 1 };
        permissions.set_file_jobs([&Entry { job: job.clone(), kind: kind.clone(), location }]);
    }

    #[test]
    fn only_the_command_line_of_the_file_may_run() {
        let permissions = Permissions::default();
        set_file_job(&permissions, &script("echo a"), &Kind::Script);
        let check = permissions.guard(&Kind::Script);

        assert_eq!(check(&script("echo a")), Ok(()));
        let refused = check(&script("rm -r /")).unwrap_err().to_string();
        assert!(refused.contains("--scripts-from"), "{refused}");
        let shell = script("echo a").prop(keys::SCRIPT_SHELL, "true").unwrap();
        assert!(check(&shell).is_err());
        set_file_job(&permissions, &script("echo b"), &Kind::Script);
        assert!(check(&script("echo a")).is_err(), "the earlier file no longer counts");
        assert_eq!(check(&script("echo b")), Ok(()));
    }

    #[test]
    fn only_programs_really_inside_an_allowed_folder_may_run() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("jobs"), folder.path().join("other"));
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("a.sh"), "").unwrap();
        fs::write(&outside, "").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let permissions = Permissions::new(std::slice::from_ref(&inside), &[]).unwrap();
        let check = permissions.guard(&Kind::Script);
        let run = |program: &str| check(&script(&format!("{}/{program} x", inside.display())));

        assert_eq!(run("a.sh"), Ok(()));
        assert!(run("../other").is_err());
        assert!(run("link").is_err());
        assert!(run("absent").is_err());
        assert!(check(&script("a.sh")).is_err());
    }

    #[test]
    fn request_to_another_host_must_be_allowed() {
        let file = request("http://shop/settle");
        let permissions =
            Permissions::new(&[], &["metrics".to_owned(), "shop:8080".to_owned()]).unwrap();
        set_file_job(&permissions, &file, &Kind::Http);
        let check = permissions.guard(&Kind::Http);

        assert_eq!(check(&file), Ok(()));
        assert_eq!(check(&request("http://METRICS:9000/")), Ok(()));
        assert_eq!(check(&request("http://shop:8080/")), Ok(()));
        let header = file.clone().prop("elasticjob.http.header.X-Role", "admin").unwrap();
        assert!(check(&header).is_err(), "a header of the registry with the URL of the file");
        assert!(check(&request("http://shop:8081/")).is_err());
        assert!(check(&request("http://169.254.169.254/latest")).is_err());
    }
}
