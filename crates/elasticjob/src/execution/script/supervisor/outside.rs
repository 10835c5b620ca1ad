//! The worker's end: starts a supervisor, keeps it informed, and believes what it reports.

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
    super::{NoStatus, process::BURIAL, stragglers},
    ASKED, Supervisor,
    words::{Order, Report},
};
use crate::{
    execution::Lease,
    runtime::{Clock, SystemClock},
};

/// A lease is passed on at least this often, however long it is.
const SELDOM: Duration = Duration::from_secs(5);

/// And not more often than this, however short.
const OFTEN: Duration = Duration::from_millis(100);

/// A script under a supervisor. It is killed, with all that came of it, when this is dropped.
pub(in super::super) struct Supervised {
    supervisor: Child,
    line: net::UnixStream,
    reports: Lines<BufReader<UnixStream>>,
    lease: Lease,
    marks: Vec<Vec<u8>>,
}

impl Supervised {
    /// Starts a supervisor and lets it start the script. `script` writes down what to start, with which arguments and environment; that
    /// it could not be started is told by [`Self::finished`].
    pub(in super::super) fn start(
        supervisor: &Supervisor,
        script: impl FnOnce(&mut Command),
        lease: Lease,
        marks: Vec<Vec<u8>>,
    ) -> io::Result<Self> {
        let (line, theirs) = net::UnixStream::pair()?;
        let reading = line.try_clone()?;
        reading.set_nonblocking(true)?;
        let reports = BufReader::new(UnixStream::from_std(reading)?).lines();
        say(&line, renewal(&lease));

        let mut command = Command::new(&supervisor.program);
        script(&mut command);
        command.arg0("elasticjob-supervisor").env(ASKED, "yes").stdin(OwnedFd::from(theirs));
        // Of its own: who interrupts the worker at the terminal does not mean its scripts.
        let supervisor = command.process_group(0).spawn()?;
        Ok(Self { supervisor, line, reports, lease, marks })
    }

    /// Where the script prints to, if nobody has taken it yet.
    pub(in super::super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.supervisor.stdout.take(), self.supervisor.stderr.take())
    }

    /// Waits for the end. `printed` ends when nobody holds the output any more.
    pub(in super::super) async fn finished(
        &mut self,
        printed: impl Future<Output = ()> + Clone,
    ) -> Result<ExitStatus, NoStatus> {
        let report = tokio::select! {
            report = report(&mut self.reports) => report,
            never = over(&self.line, printed.clone()) => match never {},
            never = renew(&self.line, &self.lease) => match never {},
        };
        self.buried(report.is_some(), printed).await;
        match report {
            Some(Report::Status(status)) => Ok(status),
            Some(Report::Unstarted(error)) => Err(NoStatus::Unstarted(error)),
            Some(Report::LeaseLost) => Err(NoStatus::LeaseLost),
            Some(Report::Ended) | None => {
                Err(NoStatus::Lost(io::Error::other("its supervisor is gone")))
            }
        }
    }

    /// Lets everybody be asked to end, given a while, and ended.
    pub(in super::super) async fn end(
        &mut self,
        grace: Duration,
        printed: impl Future<Output = ()> + Clone,
    ) {
        say(&self.line, Order::End(grace));
        let report = tokio::select! {
            report = report(&mut self.reports) => report,
            never = over(&self.line, printed.clone()) => match never {},
            never = renew(&self.line, &self.lease) => match never {},
            () = tokio::time::sleep(grace + BURIAL) => None,
        };
        self.buried(report.is_some(), printed).await;
    }

    /// After the supervisor's last word: what was printed is read to its end, and nothing is left behind.
    async fn buried(&mut self, in_order: bool, printed: impl Future<Output = ()>) {
        if !in_order {
            // It is dead, or as good as that. It carries the marks of its script, too.
            stragglers::kill(&self.marks);
        }
        let both = async { tokio::join!(printed, self.supervisor.wait()) };
        let _ = tokio::time::timeout(BURIAL, both).await;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        say(&self.line, Order::End(Duration::ZERO));
    }
}

/// What the supervisor says at the end; `None` if it went without a word.
async fn report(reports: &mut Lines<BufReader<UnixStream>>) -> Option<Report> {
    reports.next_line().await.ok().flatten().and_then(|line| Report::parse(&line))
}

/// Passes on that nobody holds the output any more.
async fn over(line: &net::UnixStream, printed: impl Future<Output = ()>) -> Infallible {
    printed.await;
    say(line, Order::Over);
    pending().await
}

/// Passes the lease on, a few times while it lasts.
async fn renew(line: &net::UnixStream, lease: &Lease) -> Infallible {
    loop {
        let Some(remaining) = lease.remaining() else { return pending().await };
        tokio::time::sleep((remaining / 4).clamp(OFTEN, SELDOM)).await;
        say(line, renewal(lease));
    }
}

fn renewal(lease: &Lease) -> Order {
    // The time first: should we freeze in between, the lease gets shorter by that and not longer.
    let now = SystemClock.monotonic();
    Order::Lease(lease.remaining().map(|remaining| now + remaining))
}

/// Never waits. One who does not listen is dead or frozen: the first is seen by its silence, the second misses a renewal.
fn say(line: &net::UnixStream, order: Order) {
    let _ = send(line, format!("{order}\n").as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
