//! A script as a child of this process: of the worker, or of its [supervisor](super::supervisor).

use std::{io, process::ExitStatus, time::Duration};

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::group::Group;

/// How long the system may take to end what was killed.
pub(super) const BURIAL: Duration = Duration::from_secs(2);

/// How often to look whether a script that was asked to end has done so.
const LOOK: Duration = Duration::from_millis(20);

/// A script that runs. It is killed, with all that came of it, when this is dropped.
pub(super) struct Process {
    child: Child,
    group: Group,
}

impl Process {
    /// Starts it as the leader of a group of its own. `marks` stand in the environment of everything that comes of it.
    pub(super) fn start(mut command: Command, marks: Vec<Vec<u8>>) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = Group::led_by(&child, marks);
        Ok(Self { child, group })
    }

    /// Where it prints to, if that is a pipe nobody has taken yet.
    pub(super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the end. `printed` ends when nobody holds its output any more; only then it is waited for: see [`super::group`].
    pub(super) async fn finished(
        &mut self,
        printed: impl Future<Output = ()>,
    ) -> io::Result<ExitStatus> {
        printed.await;
        let status = self.child.wait().await;
        self.group.let_go();
        status
    }

    /// Asks everybody to end, gives them a while, and ends them.
    pub(super) async fn end(&mut self, grace: Duration, printed: impl Future<Output = ()>) {
        self.group.terminate();
        let ended = async {
            while !self.group.leader_has_ended() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(grace, async { tokio::join!(printed, ended) }).await;
        self.kill().await;
    }

    /// Ends everybody.
    pub(super) async fn kill(&mut self) {
        self.group.kill();
        let _ = tokio::time::timeout(BURIAL, self.child.wait()).await;
        self.group.let_go();
    }
}
