//! The worker's side: starts a supervisor, keeps its lease current, and takes its report.

use std::{
    convert::Infallible,
    future::pending,
    io,
    os::{fd::OwnedFd, unix::net},
    process::ExitStatus,
    time::Duration,
};

use rustix::net::{SendFlags, send};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::UnixStream,
    process::{Child, ChildStderr, ChildStdout, Command},
};

use super::{
    super::{NoExitStatus, process::REAP_TIMEOUT, stragglers},
    SUPERVISE_VARIABLE, Supervisor,
    protocol::{SupervisorReport, WorkerMessage},
};
use crate::{
    execution::Lease,
    runtime::{Clock, SystemClock},
};

/// The lease is passed on at least this often, however long it is.
const MAX_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// The lease is passed on at most this often, however short it is.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_millis(100);

/// A script under a supervisor. Dropping it kills the script and every process it started.
pub(in super::super) struct Supervised {
    supervisor: Child,
    socket: net::UnixStream,
    reports: Lines<BufReader<UnixStream>>,
    lease: Lease,
    marks: Vec<Vec<u8>>,
}

impl Supervised {
    /// Starts a supervisor, which starts the script. `script` adds the program, its arguments and its environment to the command. If the script
    /// cannot be started, [`Self::wait`] reports that.
    pub(in super::super) fn start(
        supervisor: &Supervisor,
        script: impl FnOnce(&mut Command),
        lease: Lease,
        marks: Vec<Vec<u8>>,
    ) -> io::Result<Self> {
        let (socket, supervisor_end) = net::UnixStream::pair()?;
        let reading = socket.try_clone()?;
        reading.set_nonblocking(true)?;
        let reports = BufReader::new(UnixStream::from_std(reading)?).lines();
        send_message(&socket, lease_message(&lease));

        let mut command = Command::new(&supervisor.program);
        script(&mut command);
        command
            .arg0("elasticjob-supervisor")
            .env(SUPERVISE_VARIABLE, "yes")
            .stdin(OwnedFd::from(supervisor_end));
        // In its own group: Ctrl-C at the worker's terminal is not meant for its scripts.
        let supervisor = command.process_group(0).spawn()?;
        Ok(Self { supervisor, socket, reports, lease, marks })
    }

    /// The pipes of the script's output, if they were not taken yet.
    pub(in super::super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.supervisor.stdout.take(), self.supervisor.stderr.take())
    }

    /// Waits for the exit status. `output_closed` completes when no process holds the output open.
    pub(in super::super) async fn wait(
        &mut self,
        output_closed: impl Future<Output = ()> + Clone,
    ) -> Result<ExitStatus, NoExitStatus> {
        let report = tokio::select! {
            report = report(&mut self.reports) => report,
            never = forward_output_closed(&self.socket, output_closed.clone()) => match never {},
            never = renew_lease(&self.socket, &self.lease) => match never {},
        };
        self.clean_up(report.is_some(), output_closed).await;
        match report {
            Some(SupervisorReport::Exited(status)) => Ok(status),
            Some(SupervisorReport::StartFailed(error)) => Err(NoExitStatus::StartFailed(error)),
            Some(SupervisorReport::LeaseLost) => Err(NoExitStatus::LeaseLost),
            Some(SupervisorReport::Stopped) | None => {
                Err(NoExitStatus::Lost(io::Error::other("its supervisor is gone")))
            }
        }
    }

    /// Asks the supervisor to stop the script and to kill it after `grace`.
    pub(in super::super) async fn stop(
        &mut self,
        grace: Duration,
        output_closed: impl Future<Output = ()> + Clone,
    ) {
        send_message(&self.socket, WorkerMessage::Stop(grace));
        let report = tokio::select! {
            report = report(&mut self.reports) => report,
            never = forward_output_closed(&self.socket, output_closed.clone()) => match never {},
            never = renew_lease(&self.socket, &self.lease) => match never {},
            () = tokio::time::sleep(grace + REAP_TIMEOUT) => None,
        };
        self.clean_up(report.is_some(), output_closed).await;
    }

    /// Cleans up after the supervisor's report: reads the output to its end and leaves no process behind.
    async fn clean_up(&mut self, has_report: bool, output_closed: impl Future<Output = ()>) {
        if !has_report {
            // The supervisor is dead or hangs. It carries the marks of its script, so this kills it as well.
            stragglers::kill(&self.marks);
        }
        let both = async { tokio::join!(output_closed, self.supervisor.wait()) };
        let _ = tokio::time::timeout(REAP_TIMEOUT, both).await;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        send_message(&self.socket, WorkerMessage::Stop(Duration::ZERO));
    }
}

/// The supervisor's report; `None` if it exits without one.
async fn report(reports: &mut Lines<BufReader<UnixStream>>) -> Option<SupervisorReport> {
    reports.next_line().await.ok().flatten().and_then(|line| SupervisorReport::parse(&line))
}

/// Tells the supervisor when no process holds the output open any more.
async fn forward_output_closed(
    socket: &net::UnixStream,
    output_closed: impl Future<Output = ()>,
) -> Infallible {
    output_closed.await;
    send_message(socket, WorkerMessage::OutputClosed);
    pending().await
}

/// Passes the lease on several times while it lasts.
async fn renew_lease(socket: &net::UnixStream, lease: &Lease) -> Infallible {
    loop {
        let Some(remaining) = lease.remaining() else { return pending().await };
        tokio::time::sleep((remaining / 4).clamp(MIN_RENEWAL_INTERVAL, MAX_RENEWAL_INTERVAL)).await;
        send_message(socket, lease_message(lease));
    }
}

fn lease_message(lease: &Lease) -> WorkerMessage {
    // The time first: if this process freezes in between, the lease gets shorter and not longer.
    let now = SystemClock.monotonic();
    WorkerMessage::Lease(lease.remaining().map(|remaining| now + remaining))
}

/// Sends without waiting. A supervisor that does not read is dead or frozen: a dead one sends no report, a frozen one misses a renewal.
fn send_message(socket: &net::UnixStream, message: WorkerMessage) {
    let _ =
        send(socket, format!("{message}\n").as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
