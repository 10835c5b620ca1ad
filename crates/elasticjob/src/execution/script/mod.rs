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
//! This process can end a script only while it lives and is not frozen; a supervisor that outlives us is not part of this room.

mod command_line;
mod environment;
mod group;
mod lines;
mod stragglers;
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
use tokio::process::{Child, Command};

use self::{command_line::CommandLine, group::Group, lines::read_lines, tail::Tail};
use super::{
    failure::Failure,
    handler::Handler,
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

/// How long the system may take to end what was killed.
const BURIAL: Duration = Duration::from_secs(2);

/// How often to look whether a script that was asked to end has done so.
const LOOK: Duration = Duration::from_millis(20);

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

    fn start(&self, shard: &Shard) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(shard.context().to_json());
        for (name, value) in environment::variables(shard) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }
}

/// Scripts, registered for jobs of the type `SCRIPT`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptWork;

impl Work for ScriptWork {
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        let script = Script::of(setting.job)?;
        Ok(Arc::new(ScriptHandler { script, output: Arc::clone(&setting.output) }))
    }
}

struct ScriptHandler {
    script: Script,
    output: Arc<dyn Output>,
}

#[async_trait]
impl Handler for ScriptHandler {
    async fn run(&self, shard: Shard) -> Result<(), Failure> {
        let program = &self.script.program;
        let mut child = self
            .script
            .start(&shard)
            .map_err(|error| Failure::new(format_args!("cannot start {program}: {error}")))?;
        let mut group = Group::led_by(&child, environment::marks(&shard));

        let mut tail = Tail::default();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
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
            let mut printed = std::pin::pin!(printed);
            // First its output, then itself: see `group`.
            tokio::select! {
                status = async { printed.as_mut().await; child.wait().await } => {
                    group.let_go();
                    status
                }
                reason = shard.cancel().cancelled() => {
                    end(&group, reason, printed).await;
                    let _ = tokio::time::timeout(BURIAL, child.wait()).await;
                    group.let_go();
                    return Err(Failure::new(format_args!("{program} was ended: {reason}")));
                }
            }
        };
        judge(program, status, &tail)
    }
}

impl ScriptHandler {
    fn tell(&self, shard: &Shard, stream: Stream, line: &str) {
        tracing::info!(job = %shard.job, shard = shard.item, stream = stream.as_str(), line, "script printed");
        self.output.line(shard, stream, line);
    }
}

/// Asks everybody to end, gives them a while, and ends them.
async fn end(group: &Group, reason: CancelReason, printed: impl Future<Output = ()>) {
    group.terminate();
    let grace = if reason == CancelReason::LeaseLost { GRACE_OF_A_LEASE } else { GRACE };
    let ended = async {
        while !group.leader_has_ended() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let _ = tokio::time::timeout(grace, async { tokio::join!(printed, ended) }).await;
    group.kill();
}

fn judge(program: &str, status: io::Result<ExitStatus>, tail: &Tail) -> Result<(), Failure> {
    let status =
        status.map_err(|error| Failure::new(format_args!("{program} was lost: {error}")))?;
    let end = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    Err(Failure::new(format_args!("{program} {end}{}", tail.after_colon())))
}
