//! Jobs that are a script (`SCRIPT`).
//!
//! * **Its command line** is the property `script.command.line`, [taken apart](command_line) as the ancestor does, without a shell. With
//!   `elasticjob.script.shell` set to `true` it is given to `sh -c` as it is.
//! * **What it is told**: the sharding context as JSON, as its last argument (with a shell, `$1`); the same and more in its
//!   [environment].
//! * **When it is over**: when it has ended and nobody holds its output any more, as with the ancestor. What it left in the
//!   background with its output elsewhere is a daemon and none of our business. An exit code other than zero, and a signal, fail the shard.
//! * **How it is ended**: [its whole group](group) is asked to (`SIGTERM`), and killed when it has not ended after a while, together with
//!   what had left the group. Dropping the run kills at once.
//!
//! * **Who watches**: this process can end a script only while it lives and is not frozen. So scripts run under a [`supervisor`], a process that
//!   outlives us; without one they run as [our own children](process), and outlive us.

mod command_line;
mod environment;
#[cfg(test)]
mod golden;
mod group;
mod lines;
mod process;
mod stragglers;
mod supervisor;
mod tail;

use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::process::{ChildStderr, ChildStdout, Command};

pub use self::supervisor::{Supervisor, supervise_if_asked};
use self::{
    command_line::CommandLine, lines::read_lines, process::Process, supervisor::Supervised,
    tail::Tail,
};
use super::{
    failure::Failure,
    handler::Handler,
    lease::Lease,
    output::{Output, Stream},
    work::{Setting, Work},
};
use crate::{
    job::{Job, Shard},
    runtime::CancelReason,
};

/// The ancestor's key.
const COMMAND_LINE: &str = "script.command.line";

/// How long a script that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// The same if the lease is running out: less than the least time between being told and the end of the lease.
const GRACE_OF_A_LEASE: Duration = Duration::from_millis(300);

/// A script, as one job's configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    program: String,
    arguments: Vec<String>,
}

impl Script {
    /// The script of this job.
    pub fn of(job: &Job) -> Result<Self, Failure> {
        let line = job.props.get(COMMAND_LINE).filter(|line| !line.trim().is_empty());
        let line = line.ok_or_else(|| {
            let hint = "hint: set it to what to run, for example `sh backup.sh`";
            Failure::new(format_args!("the property {COMMAND_LINE} is missing\n{hint}")).lasting()
        })?;
        if job.props.policies().script_shell {
            // What follows the command are the shell's own name and its first parameter.
            let arguments = ["-c", line, "sh"].map(ToOwned::to_owned).to_vec();
            return Ok(Self { program: "sh".to_owned(), arguments });
        }
        let CommandLine { program, arguments } = CommandLine::parse(line).map_err(|problem| {
            Failure::new(format_args!("{COMMAND_LINE} {line:?}: {problem}")).lasting()
        })?;
        Ok(Self { program, arguments })
    }

    /// The program it starts, for whoever decides whether it may.
    pub fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    /// Everything but the program: for the script itself, or for the supervisor that starts it and passes all of it on.
    fn complete(&self, command: &mut Command, shard: &Shard) {
        command.args(&self.arguments).arg(shard.context().to_json());
        for (name, value) in environment::variables(shard) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
}

/// Scripts, registered for jobs of the type `SCRIPT`.
#[derive(Debug, Clone, Default)]
pub struct ScriptWork {
    supervisor: Option<Supervisor>,
}

impl ScriptWork {
    /// Scripts that end when this process dies or is frozen for longer than its lease. Without a supervisor (`default`) they go on.
    pub fn supervised(supervisor: Supervisor) -> Self {
        Self { supervisor: Some(supervisor) }
    }
}

impl Work for ScriptWork {
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        Ok(Arc::new(ScriptHandler {
            script: Script::of(setting.job)?,
            supervisor: self.supervisor.clone(),
            lease: setting.lease.clone(),
            output: Arc::clone(&setting.output),
        }))
    }
}

struct ScriptHandler {
    script: Script,
    supervisor: Option<Supervisor>,
    lease: Lease,
    output: Arc<dyn Output>,
}

#[async_trait]
impl Handler for ScriptHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        let program = &self.script.program;
        let mut running = self.start(&shard)?;
        let mut tail = Tail::default();
        let (stdout, stderr) = running.output();
        let status = {
            let printed = async {
                let stdout = async {
                    if let Some(stdout) = stdout {
                        read_lines(stdout, |line| self.tell(&shard, Stream::Stdout, line)).await;
                    }
                };
                let stderr = async {
                    if let Some(stderr) = stderr {
                        let tell = |line: &str| {
                            tail.push(line);
                            self.tell(&shard, Stream::Stderr, line);
                        };
                        read_lines(stderr, tell).await;
                    }
                };
                tokio::join!(stdout, stderr);
            };
            // Whoever ends a script waits for its output as well, which may have ended long ago.
            let printed = printed.shared();
            tokio::select! {
                status = running.finished(printed.clone()) => status,
                reason = shard.cancel().cancelled() => {
                    let lost = reason == CancelReason::LeaseLost;
                    running.end(if lost { GRACE_OF_A_LEASE } else { GRACE }, printed).await;
                    return Err(ended(program, reason));
                }
            }
        };
        judge(program, status, &tail)
    }
}

impl ScriptHandler {
    fn start(&self, shard: &Shard) -> Result<Running, Failure> {
        let (program, marks) = (&self.script.program, environment::marks(shard));
        let Some(supervisor) = &self.supervisor else {
            let mut command = Command::new(program);
            self.script.complete(&mut command, shard);
            let process = Process::start(command, marks);
            return process.map(Running::Alone).map_err(|error| unstarted(program, &error));
        };
        let script = |command: &mut Command| {
            command.arg(program);
            self.script.complete(command, shard);
        };
        let supervised = Supervised::start(supervisor, script, self.lease.clone(), marks);
        supervised.map(Running::Supervised).map_err(|error| {
            Failure::new(format_args!("cannot start the supervisor of {program}: {error}"))
        })
    }

    fn tell(&self, shard: &Shard, stream: Stream, line: &str) {
        tracing::info!(job = %shard.job, shard = shard.item, stream = stream.as_str(), line, "script printed");
        self.output.line(shard, stream, line);
    }
}

/// A script that runs. It is killed when this is dropped.
enum Running {
    Alone(Process),
    Supervised(Supervised),
}

/// Why nobody knows a script's exit status.
enum NoStatus {
    Unstarted(io::Error),
    LeaseLost,
    Lost(io::Error),
}

impl Running {
    fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        match self {
            Self::Alone(process) => process.output(),
            Self::Supervised(supervised) => supervised.output(),
        }
    }

    async fn finished(
        &mut self,
        printed: impl Future<Output = ()> + Clone,
    ) -> Result<ExitStatus, NoStatus> {
        match self {
            Self::Alone(process) => process.finished(printed).await.map_err(NoStatus::Lost),
            Self::Supervised(supervised) => supervised.finished(printed).await,
        }
    }

    async fn end(&mut self, grace: Duration, printed: impl Future<Output = ()> + Clone) {
        match self {
            Self::Alone(process) => process.end(grace, printed).await,
            Self::Supervised(supervised) => supervised.end(grace, printed).await,
        }
    }
}

fn judge(program: &str, status: Result<ExitStatus, NoStatus>, tail: &Tail) -> Result<(), Failure> {
    let status = status.map_err(|none| match none {
        NoStatus::Unstarted(error) => unstarted(program, &error),
        NoStatus::LeaseLost => ended(program, CancelReason::LeaseLost),
        NoStatus::Lost(error) => Failure::new(format_args!("{program} was lost: {error}")),
    })?;
    let end = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    Err(Failure::new(format_args!("{program} {end}{}", tail.after_colon())))
}

fn unstarted(program: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "; hint: the search path does not have it, or the full path is another one"
        }
        io::ErrorKind::PermissionDenied => "; hint: chmod +x makes it a program",
        _ => "",
    };
    Failure::new(format_args!("cannot start {program}: {error}{hint}"))
}

fn ended(program: &str, reason: CancelReason) -> Failure {
    Failure::new(format_args!("{program} was ended: {reason}"))
}
