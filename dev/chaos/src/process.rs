//! The parent's handle to a worker process.

use std::{
    fs::OpenOptions,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinSet,
};

use crate::{
    event::{Event, EventKind},
    event_log::EventLog,
    worker::{CONFIG_VARIABLE, WorkerConfig},
};

/// How long a worker may take to exit after a signal.
const EXIT_TIMEOUT: Duration = Duration::from_mins(1);

/// A worker process. Dropping it kills the process.
pub struct Process {
    child: Child,
    pid: Pid,
    reader: JoinSet<()>,
}

impl Process {
    /// Starts `program` as worker number `worker`. Its log is appended to `log`.
    pub fn start(
        program: &Path,
        config: &WorkerConfig,
        worker: usize,
        events: &EventLog,
        log: &Path,
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg("worker")
            .env(CONFIG_VARIABLE, config.to_text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(OpenOptions::new().create(true).append(true).open(log)?)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().ok_or(io::ErrorKind::NotFound)?;
        let pid = Pid::from_raw(id.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stdout).lines();
        let events = events.clone();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((kind, at)) = EventKind::parse(&line) {
                    events.push(Event { kind, at, worker, pid: id });
                }
            }
        });
        Ok(Self { child, pid, reader })
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Suspends the process (SIGSTOP).
    pub fn freeze(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::STOP)?)
    }

    /// Resumes the process (SIGCONT).
    pub fn thaw(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Kills the process (SIGKILL) and waits until all its events are read.
    pub async fn kill(mut self) -> io::Result<()> {
        kill_process(self.pid, Signal::KILL)?;
        self.wait().await.map(drop)
    }

    /// Stops the process (SIGTERM) and waits until it has exited and all its events are read.
    pub async fn stop(mut self) -> io::Result<ExitStatus> {
        kill_process(self.pid, Signal::TERM)?;
        self.wait().await
    }

    /// The status of the process if it has already exited.
    pub fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let exited = tokio::time::timeout(EXIT_TIMEOUT, async {
            // Keep its stdin open: the worker takes end of file for the death of its parent.
            let stdin = self.child.stdin.take();
            let status = self.child.wait().await;
            drop(stdin);
            while self.reader.join_next().await.is_some() {}
            status
        });
        exited.await.map_err(|_| {
            io::Error::other(format!("{:?} did not exit within {EXIT_TIMEOUT:?}", self.pid))
        })?
    }
}
