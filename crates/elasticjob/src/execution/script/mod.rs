//! Script jobs (type `SCRIPT`): each shard runs a command line.
//!
//! * **Command line**: the property `script.command.line`, [parsed](command_line) as Java ElasticJob does, without a shell. With
//!   `elasticjob.script.shell` set to `true` it is passed to `sh -c` unchanged.
//! * **Input**: the sharding context as JSON, as the last argument (with a shell, `$1`); the same and more in the [environment]. Variables of the worker
//!   that may hold a password are withheld.
//! * **End**: the script has exited and no process holds its output open any more, as in Java ElasticJob. A background process whose output is
//!   redirected elsewhere is a daemon and is ignored. A signal or an exit code other than zero fails the shard.
//! * **Stop**: [the whole process group](group) gets `SIGTERM`, and after a grace period `SIGKILL`, together with processes that left the
//!   group. Dropping the run kills at once.
//! * **Supervision**: this process can stop a script only while it is alive and not frozen. So scripts run under a [`supervisor`], a process
//!   that outlives this one; without one they run as [children of this process](process), and outlive it.

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

pub use self::supervisor::{Supervisor, supervise_if_requested};
use self::{
    command_line::CommandLine, lines::read_lines, process::Process, supervisor::Supervised,
    tail::Tail,
};
use super::{
    failure::Failure,
    handler::Handler,
    lease::Lease,
    output::{Output, Stream},
    work::{RunSettings, Work},
};
use crate::problem::Problem;
use crate::{
    job::{Job, Shard, mask_text},
    runtime::CancelReason,
};

/// Java ElasticJob's property.
const COMMAND_LINE: &str = "script.command.line";

/// How long a script may take to exit after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(5);

/// The same when the lease is running out: less than the shortest time between the cancellation and the end of the lease.
const LEASE_LOSS_GRACE: Duration = Duration::from_millis(300);

/// The command of a script job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    program: String,
    arguments: Vec<String>,
}

impl Script {
    /// Reads the command from the job's properties.
    pub fn of(job: &Job) -> Result<Self, Failure> {
        let line = job.props.get(COMMAND_LINE).filter(|line| !line.trim().is_empty());
        let line = line.ok_or_else(|| {
            let hint = "hint: set it to what to run, for example `sh backup.sh`";
            Failure::new(format_args!("the property {COMMAND_LINE} is missing\n{hint}")).permanent()
        })?;
        if job.props.policies().script_shell {
            // After the command come `$0`, the shell's own name, and `$1`, which is added later.
            let arguments = ["-c", line, "sh"].map(ToOwned::to_owned).to_vec();
            return Ok(Self { program: "sh".to_owned(), arguments });
        }
        let CommandLine { program, arguments } = CommandLine::parse(line).map_err(|problem| {
            Failure::new(format_args!("{COMMAND_LINE} {:?}: {problem}", mask_text(line)))
                .permanent()
        })?;
        Ok(Self { program, arguments })
    }

    /// The program that the script starts, for access checks.
    pub fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    /// Adds everything but the program: to the script's own command, or to that of its supervisor, which passes all of it on.
    fn add_arguments(&self, command: &mut Command, shard: &Shard, inherits_environment: bool) {
        command.args(&self.arguments).arg(shard.context().to_json());
        if !inherits_environment {
            for name in environment::withheld() {
                command.env_remove(name);
            }
        }
        for (name, value) in environment::variables(shard) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
}

/// Runs jobs of the type `SCRIPT`.
#[derive(Debug, Clone, Default)]
pub struct ScriptWork {
    supervisor: Option<Supervisor>,
}

impl ScriptWork {
    /// Runs scripts under a supervisor, which stops them when this process dies or is frozen for longer than its lease. Without one (`default`)
    /// they keep running.
    pub fn supervised(supervisor: Supervisor) -> Self {
        Self { supervisor: Some(supervisor) }
    }
}

impl Work for ScriptWork {
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
        Ok(Arc::new(ScriptHandler {
            script: Script::of(setting.job)?,
            supervisor: self.supervisor.clone(),
            lease: setting.lease.clone(),
            output: Arc::clone(&setting.output),
            inherits_environment: setting.inherits_environment,
        }))
    }
}

struct ScriptHandler {
    script: Script,
    supervisor: Option<Supervisor>,
    lease: Lease,
    output: Arc<dyn Output>,
    inherits_environment: bool,
}

#[async_trait]
impl Handler for ScriptHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        let program = &self.script.program;
        let mut running = self.start(&shard)?;
        let mut tail = Tail::default();
        let (stdout, stderr) = running.output();
        let status = {
            let output_closed = async {
                let stdout = async {
                    if let Some(stdout) = stdout {
                        read_lines(stdout, |line| self.record_line(&shard, Stream::Stdout, line))
                            .await;
                    }
                };
                let stderr = async {
                    if let Some(stderr) = stderr {
                        let record_line = |line: &str| {
                            tail.push(line);
                            self.record_line(&shard, Stream::Stderr, line);
                        };
                        read_lines(stderr, record_line).await;
                    }
                };
                tokio::join!(stdout, stderr);
            };
            // Stopping a script waits for the end of its output as well, which may have come long before.
            let output_closed = output_closed.shared();
            tokio::select! {
                status = running.wait(output_closed.clone()) => status,
                reason = shard.cancel().cancelled() => {
                    let lost = reason == CancelReason::LeaseLost;
                    running.stop(if lost { LEASE_LOSS_GRACE } else { GRACE }, output_closed).await;
                    return Err(stopped(program, reason));
                }
            }
        };
        check_status(program, status, &tail)
    }
}

impl ScriptHandler {
    fn start(&self, shard: &Shard) -> Result<RunningScript, Failure> {
        let (program, marks) = (&self.script.program, environment::marks(shard));
        let Some(supervisor) = &self.supervisor else {
            let mut command = Command::new(program);
            self.script.add_arguments(&mut command, shard, self.inherits_environment);
            let process = Process::start(command, marks);
            return process
                .map(RunningScript::Direct)
                .map_err(|error| start_failure(program, &error));
        };
        let script = |command: &mut Command| {
            command.arg(program);
            self.script.add_arguments(command, shard, self.inherits_environment);
        };
        let supervised = Supervised::start(supervisor, script, self.lease.clone(), marks);
        supervised.map(RunningScript::Supervised).map_err(|error| {
            Failure::new(format_args!("cannot start the supervisor of {program}: {error}"))
        })
    }

    fn record_line(&self, shard: &Shard, stream: Stream, line: &str) {
        tracing::info!(job = %shard.job, shard = shard.item, stream = stream.as_str(), line, "script output");
        self.output.line(shard, stream, line);
    }
}

/// A running script. Dropping it kills the script.
enum RunningScript {
    Direct(Process),
    Supervised(Supervised),
}

/// Why there is no exit status.
enum NoExitStatus {
    StartFailed(io::Error),
    LeaseLost,
    Lost(io::Error),
}

impl RunningScript {
    fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        match self {
            Self::Direct(process) => process.output(),
            Self::Supervised(supervised) => supervised.output(),
        }
    }

    async fn wait(
        &mut self,
        output_closed: impl Future<Output = ()> + Clone,
    ) -> Result<ExitStatus, NoExitStatus> {
        match self {
            Self::Direct(process) => process.wait(output_closed).await.map_err(NoExitStatus::Lost),
            Self::Supervised(supervised) => supervised.wait(output_closed).await,
        }
    }

    async fn stop(&mut self, grace: Duration, output_closed: impl Future<Output = ()> + Clone) {
        match self {
            Self::Direct(process) => process.stop(grace, output_closed).await,
            Self::Supervised(supervised) => supervised.stop(grace, output_closed).await,
        }
    }
}

fn check_status(
    program: &str,
    status: Result<ExitStatus, NoExitStatus>,
    tail: &Tail,
) -> Result<(), Failure> {
    let status = status.map_err(|missing| match missing {
        NoExitStatus::StartFailed(error) => start_failure(program, &error),
        NoExitStatus::LeaseLost => stopped(program, CancelReason::LeaseLost),
        NoExitStatus::Lost(error) => Failure::new(format_args!("{program} was lost: {error}")),
    })?;
    let end = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended without exit code or signal".to_owned(),
    };
    Err(Failure::new(format_args!("{program} {end}{}", tail.after_colon())))
}

fn start_failure(program: &str, error: &io::Error) -> Failure {
    let problem = Problem::new(format!("cannot start {program}: {error}"));
    Failure::new(match error.kind() {
        io::ErrorKind::NotFound => {
            problem.with_hint("not found in the search path, or not at this path")
        }
        io::ErrorKind::PermissionDenied => problem.with_hint("make it executable with chmod +x"),
        _ => problem,
    })
}

fn stopped(program: &str, reason: CancelReason) -> Failure {
    Failure::new(format_args!("{program} was stopped: {reason}"))
}
