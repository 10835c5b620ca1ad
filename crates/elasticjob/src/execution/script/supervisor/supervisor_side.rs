//! The supervisor process: starts one script, watches the worker, and exits.

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
    super::{LEASE_LOSS_GRACE, environment, process::Process},
    SUPERVISE_VARIABLE,
    protocol::{SupervisorReport, WorkerMessage},
};
use crate::runtime::{Clock, Monotonic, SystemClock};

/// How long before the end of the lease everything is killed: longer than the system takes for it.
const KILL_AHEAD: Duration = Duration::from_millis(100);

/// Supervises one script and returns the exit code of the process.
pub(super) fn main() -> i32 {
    match supervise() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!(
                "cannot supervise a script: {error}\nhint: {SUPERVISE_VARIABLE} is set, which only a worker sets for a program it starts; unset it"
            );
            1
        }
    }
}

fn supervise() -> io::Result<()> {
    let socket = net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Fails unless standard input is a socket.
    socket.peer_addr()?;
    socket.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // A signal sent to all processes is meant for the script and the worker. The script does not inherit handlers, as it would `SIG_IGN`.
        let (_terminate, _interrupt, _hangup) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        );
        let (messages, mut reports) = UnixStream::from_std(socket)?.into_split();
        let mut worker = WorkerLink {
            messages: BufReader::new(messages).lines(),
            lease: watch::Sender::new(None),
            output_closed: Notify::new(),
        };
        // Without a first message the worker is dead, and the script is not started.
        let Some(WorkerMessage::Lease(lease)) = next(&mut worker.messages).await else {
            return Ok(());
        };
        worker.lease.send_replace(lease);
        let report = run(&mut worker).await?;
        // Fails only if the worker is gone.
        let _ = reports.write_all(format!("{report}\n").as_bytes()).await;
        Ok(())
    })
}

async fn run(worker: &mut WorkerLink) -> io::Result<SupervisorReport> {
    let until = *worker.lease.borrow();
    if until.is_some_and(|until| SystemClock.monotonic() >= until - KILL_AHEAD) {
        return Ok(SupervisorReport::LeaseLost);
    }
    let mut script = match Process::start(command()?, environment::own_marks()) {
        Ok(script) => script,
        Err(error) => return Ok(SupervisorReport::StartFailed(error)),
    };
    // Releases the output pipes: the worker has to see when the script closes them.
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;

    let WorkerLink { messages, lease, output_closed } = worker;
    let closed = output_closed.notified().shared();
    let (grace, gone, report) = tokio::select! {
        status = script.wait(closed.clone()) => return Ok(SupervisorReport::Exited(status?)),
        grace = stop_requested(messages, lease, output_closed) => match grace {
            Some(grace) => (grace, false, SupervisorReport::Stopped),
            None => (LEASE_LOSS_GRACE, true, SupervisorReport::Stopped),
        },
        () = lease_ends(lease, LEASE_LOSS_GRACE + KILL_AHEAD) => (LEASE_LOSS_GRACE, false, SupervisorReport::LeaseLost),
    };
    // Another `Stop`, or the end of the worker or of the lease, cuts the grace period short. If the worker is gone already, only the lease can.
    let again = async {
        if gone {
            pending::<()>().await;
        }
        stop_requested(messages, lease, output_closed).await;
    };
    tokio::select! {
        () = script.stop(grace, closed) => return Ok(report),
        () = again => {}
        () = lease_ends(lease, KILL_AHEAD) => {}
    }
    script.kill().await;
    Ok(report)
}

/// The script's command: this process's own arguments and environment, without the variable that made it a supervisor.
fn command() -> io::Result<Command> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or_else(|| io::Error::other("no program to start"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(SUPERVISE_VARIABLE).stdin(Stdio::null());
    Ok(command)
}

/// The connection to the worker and the state it reported.
struct WorkerLink {
    messages: Messages,
    lease: watch::Sender<Option<Monotonic>>,
    output_closed: Notify,
}

type Messages = Lines<BufReader<OwnedReadHalf>>;

/// The next message; `None` when the worker is gone or sends something invalid.
async fn next(messages: &mut Messages) -> Option<WorkerMessage> {
    messages.next_line().await.ok().flatten().and_then(|line| WorkerMessage::parse(&line))
}

/// Handles messages until the worker asks to stop, and returns the grace period; `None` when the worker is gone.
async fn stop_requested(
    messages: &mut Messages,
    lease: &watch::Sender<Option<Monotonic>>,
    output_closed: &Notify,
) -> Option<Duration> {
    loop {
        match next(messages).await? {
            WorkerMessage::Lease(until) => drop(lease.send_replace(until)),
            WorkerMessage::OutputClosed => output_closed.notify_one(),
            WorkerMessage::Stop(grace) => return Some(grace),
        }
    }
}

/// Completes `ahead` of the end of the lease.
async fn lease_ends(lease: &watch::Sender<Option<Monotonic>>, ahead: Duration) {
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
