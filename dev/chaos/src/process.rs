//! A worker as its parent holds it.

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
    heard::Heard,
    said::{Said, What},
    worker::{ORDERS, Orders},
};

/// How long a worker may take to end when it is asked to.
const END: Duration = Duration::from_mins(1);

/// A worker as its parent holds it. It is killed when this is dropped.
pub struct Process {
    child: Child,
    pid: Pid,
    listening: JoinSet<()>,
}

impl Process {
    /// Starts `program` as this worker; it logs to `log`, after what is there.
    pub fn start(
        program: &Path,
        orders: &Orders,
        worker: usize,
        heard: &Heard,
        log: &Path,
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg("worker")
            .env(ORDERS, orders.to_text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(OpenOptions::new().create(true).append(true).open(log)?)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().ok_or(io::ErrorKind::NotFound)?;
        let pid = Pid::from_raw(id.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stdout).lines();
        let heard = heard.clone();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((what, at)) = What::hear(&line) {
                    heard.push(Said { what, at, worker, pid: id });
                }
            }
        });
        Ok(Self { child, pid, listening })
    }

    /// Which process it is.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Stops it where it is.
    pub fn freeze(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::STOP)?)
    }

    /// Lets it go on.
    pub fn thaw(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Kills it (`kill -9`) and waits until everything it said is heard.
    pub async fn kill(mut self) -> io::Result<()> {
        kill_process(self.pid, Signal::KILL)?;
        self.end().await.map(drop)
    }

    /// Asks it to stop and waits until it has, and everything it said is heard.
    pub async fn stop(mut self) -> io::Result<ExitStatus> {
        kill_process(self.pid, Signal::TERM)?;
        self.end().await
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    async fn end(&mut self) -> io::Result<ExitStatus> {
        let ended = tokio::time::timeout(END, async {
            // Its stdin stays open: the end of it would mean that we are gone.
            let stdin = self.child.stdin.take();
            let ended = self.child.wait().await;
            drop(stdin);
            while self.listening.join_next().await.is_some() {}
            ended
        });
        ended
            .await
            .map_err(|_| io::Error::other(format!("{:?} did not end in {END:?}", self.pid)))?
    }
}
