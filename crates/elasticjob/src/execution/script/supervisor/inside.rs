//! The supervisor itself: a process that starts one script, watches the worker, and ends.

use std::{
    fs::OpenOptions,
    future::pending,
    io,
    os::{fd::AsFd, unix::net},
    process::Stdio,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{UnixStream, unix::OwnedReadHalf},
    process::Command,
    signal::unix::{SignalKind, signal},
    sync::{Notify, watch},
};

use super::{
    super::{GRACE_OF_A_LEASE, environment, process::Process},
    ASKED,
    words::{Order, Report},
};
use crate::runtime::{Clock, Monotonic, SystemClock};

/// How long before the end of the lease everybody is killed: longer than the system takes to do it.
const AHEAD: Duration = Duration::from_millis(100);

/// Supervises one script, and says with which exit code to leave.
pub(super) fn main() -> i32 {
    match supervise() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!(
                "cannot supervise a script: {error}\nhint: {ASKED} is set, which only a worker does for a program it starts; unset it"
            );
            1
        }
    }
}

fn supervise() -> io::Result<()> {
    let line = net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Only a socket has another end.
    line.peer_addr()?;
    line.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Whoever signals everybody means the script and the worker. Handlers, unlike deafness, are not inherited.
        let (_terminate, _interrupt, _hangup) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        );
        let (orders, mut reports) = UnixStream::from_std(line)?.into_split();
        let mut worker = Worker {
            orders: BufReader::new(orders).lines(),
            lease: watch::Sender::new(None),
            over: Notify::new(),
        };
        // Without a first word the worker is dead, and nothing begins.
        let Some(Order::Lease(lease)) = next(&mut worker.orders).await else { return Ok(()) };
        worker.lease.send_replace(lease);
        let report = run(&mut worker).await?;
        // If nobody is left to hear it, so be it.
        let _ = reports.write_all(format!("{report}\n").as_bytes()).await;
        Ok(())
    })
}

async fn run(worker: &mut Worker) -> io::Result<Report> {
    let until = *worker.lease.borrow();
    if until.is_some_and(|until| SystemClock.monotonic() >= until - AHEAD) {
        return Ok(Report::LeaseLost);
    }
    let mut script = match Process::start(command()?, environment::marks_here()) {
        Ok(script) => script,
        Err(error) => return Ok(Report::Unstarted(error)),
    };
    // From now on its output is its own: whoever reads it must see when the script lets go of it.
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;

    let Worker { orders, lease, over } = worker;
    let printed = over.notified().shared();
    let (grace, gone, report) = tokio::select! {
        status = script.finished(printed.clone()) => return Ok(Report::Status(status?)),
        told = told_to_end(orders, lease, over) => match told {
            Some(grace) => (grace, false, Report::Ended),
            None => (GRACE_OF_A_LEASE, true, Report::Ended),
        },
        () = ends(lease, GRACE_OF_A_LEASE + AHEAD) => (GRACE_OF_A_LEASE, false, Report::LeaseLost),
    };
    // A second word, or the end of the worker or of the lease, ends the patience; what has shown already does not show twice.
    let again = async {
        if gone {
            pending::<()>().await;
        }
        told_to_end(orders, lease, over).await;
    };
    tokio::select! {
        () = script.end(grace, printed) => return Ok(report),
        () = again => {}
        () = ends(lease, AHEAD) => {}
    }
    script.kill().await;
    Ok(report)
}

/// The command line is our own, the environment too; it is only not for the script that we were asked to supervise it.
fn command() -> io::Result<Command> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or_else(|| io::Error::other("there is nothing to start"))?;
    let mut command = Command::new(program);
    command.args(words).env_remove(ASKED).stdin(Stdio::null());
    Ok(command)
}

/// What we know of the worker.
struct Worker {
    orders: Orders,
    lease: watch::Sender<Option<Monotonic>>,
    over: Notify,
}

type Orders = Lines<BufReader<OwnedReadHalf>>;

/// What it says next; `None` when it is gone, which one who is not understood is, too.
async fn next(orders: &mut Orders) -> Option<Order> {
    orders.next_line().await.ok().flatten().and_then(|line| Order::parse(&line))
}

/// Does what the worker says until that is to end, within this time; `None` when it is gone.
async fn told_to_end(
    orders: &mut Orders,
    lease: &watch::Sender<Option<Monotonic>>,
    over: &Notify,
) -> Option<Duration> {
    loop {
        match next(orders).await? {
            Order::Lease(until) => drop(lease.send_replace(until)),
            Order::Over => over.notify_one(),
            Order::End(grace) => return Some(grace),
        }
    }
}

/// Returns so long before the lease ends.
async fn ends(lease: &watch::Sender<Option<Monotonic>>, ahead: Duration) {
    let mut lease = lease.subscribe();
    loop {
        let until = *lease.borrow_and_update();
        let reached = async {
            match until {
                Some(until) => SystemClock.sleep_until(until - ahead).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = reached => return,
            _ = lease.changed() => {}
        }
    }
}
