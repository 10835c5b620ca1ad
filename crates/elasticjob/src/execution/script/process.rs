//! A script as a child of this process: of the worker, or of its [supervisor](super::supervisor).

use std::{io, process::ExitStatus, time::Duration};

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::group::Group;

/// How long to wait for killed processes to be gone.
pub(super) const REAP_TIMEOUT: Duration = Duration::from_secs(2);

/// How often to check whether a script that got `SIGTERM` has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running script. Dropping it kills the script and every process it started.
pub(super) struct Process {
    child: Child,
    group: Group,
}

impl Process {
    /// Starts the script as the leader of its own process group. `marks` are in the environment of every process it starts, directly or not.
    pub(super) fn start(mut command: Command, marks: Vec<Vec<u8>>) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = Group::led_by(&child, marks);
        Ok(Self { child, group })
    }

    /// The pipes of its output, if they exist and were not taken yet.
    pub(super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the exit status. `output_closed` completes when no process holds the output open; only then the script is reaped: see
    /// [`super::group`].
    pub(super) async fn wait(
        &mut self,
        output_closed: impl Future<Output = ()>,
    ) -> io::Result<ExitStatus> {
        output_closed.await;
        let status = self.child.wait().await;
        self.group.mark_reaped();
        status
    }

    /// Sends `SIGTERM` to the group, waits up to `grace`, and kills what is left.
    pub(super) async fn stop(&mut self, grace: Duration, output_closed: impl Future<Output = ()>) {
        self.group.terminate();
        let exited = async {
            while !self.group.leader_has_exited() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(grace, async { tokio::join!(output_closed, exited) }).await;
        self.kill().await;
    }

    /// Kills the group and all stragglers.
    pub(super) async fn kill(&mut self) {
        self.group.kill();
        let _ = tokio::time::timeout(REAP_TIMEOUT, self.child.wait()).await;
        self.group.mark_reaped();
    }
}
