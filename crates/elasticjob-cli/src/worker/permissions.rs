//! Which commands, requests and alerts from the registry this worker may run and send.
//!
//! Stored configuration overrides the files, so anyone who can write to the registry can change the command line, the request or the alert of a job, or
//! define new jobs. What is in the local files is trusted, each request and each alert as a whole. Everything else runs only if the operator allowed
//! it: programs in the folders of `--scripts-from`, requests and alerts to the hosts of `--http-allow`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use elasticjob::{
    execution::{Failure, Http, Outbound, Outgoing, Script},
    job::{Alert, Dingtalk, Job, JobName, Webhook, keys, mask_text},
};

use super::outgoing_properties::changed_key;
use crate::error::Error;
use elasticjob::problem::Problem;
use elasticjob_jobfile::{Entry, Kind};

const ALLOW_HINT: &str = "--http-allow HOST allows requests and alerts to a host";

const URI: &str = "http.uri";

/// What may run and be sent besides what is in the files. Clones share the file jobs.
#[derive(Debug, Clone)]
pub(crate) struct Permissions {
    /// Canonical paths of the folders whose programs may run.
    folders: Vec<PathBuf>,
    hosts: Outbound,
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
        let hosts = Outbound::only(hosts).with_hint(ALLOW_HINT);
        Ok(Self { folders, hosts, file_jobs: Arc::default() })
    }

    /// Whether anything of this kind may run that is not in the files.
    pub(super) fn allows_any(&self, kind: &Kind) -> bool {
        match kind {
            Kind::Script => !self.folders.is_empty(),
            Kind::Http => !self.hosts.is_none(),
            Kind::Java(_) => false,
        }
    }

    /// Whether jobs that are only in the registry may run.
    pub(super) fn allows_registry_jobs(&self) -> bool {
        self.allows_any(&Kind::Script) || self.allows_any(&Kind::Http)
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
        let request = Http::of(stored)?;
        if request.is_allowed(&self.hosts) {
            return Ok(());
        }
        let problem = match file.map(|file| changed_request_key(file, stored)) {
            Some(None) => return Ok(()),
            // Without the value, which may be a secret.
            Some(Some(key)) if key != URI => {
                format!(
                    "{}: the registry sets another value than the job files",
                    key.escape_debug()
                )
            }
            _ => {
                let host = request.host();
                format!("{URI}: the registry sets the host {host:?}, which is not in the job files")
            }
        };
        Err(Failure::new(Problem::new(problem).with_hint(ALLOW_HINT)))
    }

    /// Which hosts a job may reach with its stored configuration: any with a request or an alert of the files, else those that the operator allowed.
    pub(super) fn outbound(&self, stored: &Job, outgoing: Outgoing) -> Outbound {
        let file_jobs = self.file_jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_the_files = file_jobs.get(&stored.name).is_some_and(|file| match outgoing {
            Outgoing::Request => changed_request_key(file, stored).is_none(),
            Outgoing::Alert => is_same_alert(file, stored),
        });
        if is_of_the_files { Outbound::any() } else { self.hosts.clone() }
    }
}

/// Allows only what is in the files.
impl Default for Permissions {
    fn default() -> Self {
        let hosts = Outbound::only([""; 0]).with_hint(ALLOW_HINT);
        Self { folders: Vec::new(), hosts, file_jobs: Arc::default() }
    }
}

/// A property in which the requests of two HTTP jobs differ; the URL first.
fn changed_request_key<'a>(file: &'a Job, stored: &'a Job) -> Option<&'a str> {
    if file.props.get(URI) != stored.props.get(URI) {
        return Some(URI);
    }
    changed_key(Outgoing::Request, file, stored)
}

/// Whether both jobs report failures to the same target, with the same account, recipients and keys. Timeouts may differ.
fn is_same_alert(file: &Job, stored: &Job) -> bool {
    match (Alert::of(file), Alert::of(stored)) {
        (Ok(file), Ok(stored)) => without_timeouts(file) == without_timeouts(stored),
        _ => false,
    }
}

fn without_timeouts(alert: Alert) -> Alert {
    let webhook = |Webhook { url, .. }| Webhook {
        url,
        connect_timeout: Duration::ZERO,
        read_timeout: Duration::ZERO,
    };
    match alert {
        Alert::Wechat(target) => Alert::Wechat(webhook(target)),
        Alert::Webhook(target) => Alert::Webhook(webhook(target)),
        Alert::Dingtalk(robot) => {
            Alert::Dingtalk(Dingtalk { webhook: webhook(robot.webhook), ..robot })
        }
        alert => alert,
    }
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

    #[test]
    fn request_of_the_file_is_allowed_as_a_whole() {
        let permissions = Permissions::default();
        let file = request("http://shop/settle").prop("http.data", "all").unwrap();
        set_file_job(&permissions, &file, &Kind::Http);
        let with = |key: &str, value: &str| file.clone().prop(key, value).unwrap();

        for (key, value) in [
            ("http.uri", "http://shop/delete"),
            ("http.method", "POST"),
            ("http.data", "none"),
            ("http.content.type", "text/plain"),
            ("http.header", "of a later version"),
        ] {
            let changed = with(key, value);
            let refused = permissions.check(&Kind::Http, &changed).unwrap_err().to_string();
            assert!(refused.contains(key) && refused.contains("--http-allow"), "{refused}");
            assert!(!permissions.outbound(&changed, Outgoing::Request).allows("shop", 80), "{key}");
        }
        let slower = with("http.read.timeout.milliseconds", "9000");
        assert_eq!(permissions.check(&Kind::Http, &slower), Ok(()));
        assert!(permissions.outbound(&slower, Outgoing::Request).allows("elsewhere", 80));
    }

    #[test]
    fn alert_of_the_file_is_allowed_as_a_whole() {
        let permissions = Permissions::default();
        let email = [
            ("email.host", "mail"),
            ("email.port", "465"),
            ("email.username", "u"),
            ("email.password", "p"),
            ("email.from", "a@x"),
            ("email.to", "b@x"),
        ];
        let mail = email.iter().fold(script("echo").alert("EMAIL"), |job, (key, value)| {
            job.prop(*key, *value).unwrap()
        });
        let robot = script("echo").alert("DINGTALK").prop("dingtalk.webhook", "http://robot/x");
        let robot = robot.unwrap();

        for (file, changed, is_allowed) in [
            (&mail, mail.clone(), true),
            (&mail, mail.clone().prop("email.to", "c@x").unwrap(), false),
            (&mail, mail.clone().prop("email.bcc", "c@x").unwrap(), false),
            (&mail, mail.clone().prop("email.host", "evil").unwrap(), false),
            (&mail, robot.clone(), false),
            (&robot, robot.clone().prop("dingtalk.readTimeoutMilliseconds", "9").unwrap(), true),
            (&robot, robot.clone().prop("dingtalk.webhook", "http://robot/y").unwrap(), false),
            (&robot, robot.clone().prop("dingtalk.keyword", "k").unwrap(), false),
        ] {
            set_file_job(&permissions, file, &Kind::Script);
            let outbound = permissions.outbound(&changed, Outgoing::Alert);
            assert_eq!(outbound.allows("evil", 465), is_allowed, "{:?}", changed.props);
        }
        let mut unknown = mail;
        unknown.name = "other".parse().unwrap();
        assert!(!permissions.outbound(&unknown, Outgoing::Alert).allows("mail", 465));
    }
}
