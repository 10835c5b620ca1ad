//! Starts the binary.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use elasticjob::runtime::{Clock, SystemClock};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything in these tests takes; a test that waits this long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary in an environment without its variables.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
    for variable in [
        "ELASTICJOB_REGISTRY",
        "ELASTICJOB_REGISTRY_FILE",
        "ELASTICJOB_HISTORY",
        "ELASTICJOB_HISTORY_FILE",
        "CREDENTIALS_DIRECTORY",
        "RUST_LOG",
        "NO_COLOR",
        "ELASTICJOB_ADDRESS",
    ] {
        command.env_remove(variable);
    }
    // Tests must not write to the default history file of this machine.
    command.env("ELASTICJOB_HISTORY", "none");
    command
}

/// Runs a command and waits for it.
pub(crate) fn elasticjob(arguments: &[&str]) -> CommandOutput {
    let output = binary().args(arguments).stdin(Stdio::null()).output().unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that runs until it is stopped, and its log. It is killed on drop.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(binary().args(arguments))
    }

    /// As [`Self::start`], with a limit on the size of files.
    pub(crate) fn start_with_file_limit(arguments: &[&str], kilobytes: u32) -> Self {
        // Ignored signals stay ignored after exec: writing fails with an error instead of a signal, as on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kilobytes * 2);
        let plain = binary();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(plain.get_program()).args(arguments);
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::spawn(&mut command)
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines(child.stderr.take().unwrap());
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for the next line of the log that contains `part`.
    pub(crate) fn wait_for_log(&mut self, part: &str) -> String {
        // A worker with jobs never falls silent, so there is a limit for all lines together, too.
        let deadline = SystemClock.monotonic() + 3 * PATIENCE;
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let Some(line) = line.ok().filter(|_| SystemClock.monotonic() < deadline) else {
                panic!("{part:?} was never logged; log:\n{}", self.seen.join("\n"));
            };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The word that follows the first `part` in a line.
    pub(crate) fn word_after(line: &str, part: &str) -> String {
        let (_, rest) = line.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {line:?}"));
        rest.split([' ', ')', '\'']).next().unwrap().to_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// Kills the process; returns whether all processes that share its log have ended, too.
    pub(crate) fn kill_and_wait_for_silence(&mut self) -> bool {
        self.child.kill().unwrap();
        // A surviving process keeps writing, so limit the number of lines.
        (0..200).any(|_| match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line);
                false
            }
            Err(end) => end == RecvTimeoutError::Disconnected,
        })
    }

    /// Waits for the process; returns its status and standard output.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        // The log ends when the process does.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push(line);
        }
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        (self.child.wait().unwrap(), stdout)
    }

    pub(crate) fn log(&self) -> String {
        self.seen.join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
