//! The demonstration's workers: processes, so that they can be killed.

use std::{
    env, io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use elasticjob::runtime::{Cancel, CancelReason, Tasks};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::voice::tell;
use crate::{
    error::{Code, Error},
    output::say,
};

const NAMES: [&str; 3] = ["worker-1", "worker-2", "worker-3"];
/// How long one may take to leave.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who was started, until they are told to stop.
pub(super) struct Children {
    tasks: Tasks,
    stop: Cancel,
}

impl Children {
    /// Starts them. The death of one is told, with the words that start it again: there the history is as it may be shown.
    pub(super) fn start(
        registry: &str,
        endpoint: &str,
        history: Option<&(String, String)>,
        retention: &[(&'static str, String)],
    ) -> Result<Self, Error> {
        let cannot = |error: io::Error| {
            Error::new(Code::Internal, format!("cannot start a worker: {error}"))
        };
        let (mut tasks, stop) = (Tasks::new(), Cancel::new());
        let program = env::current_exe().map_err(cannot)?;
        for name in NAMES {
            let child = Command::new(&program)
                .args(["demo-worker", "--child", "--name", name])
                .args(["--endpoint", endpoint, "--registry", registry])
                // Not an argument: it may hold a password, and everybody sees those.
                .env("ELASTICJOB_HISTORY", history.map_or("none", |(_, url)| url))
                .envs(retention.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                // ctrl-C is for us: we tell them.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(cannot)?;
            let kept = history.map_or("none", |(shown, _)| shown);
            let again = format!(
                "{} demo-worker --name {name} --endpoint {endpoint} --registry '{registry}' --history '{kept}'",
                program.display()
            );
            tasks.spawn(watch(name, child, again, stop.clone()));
        }
        Ok(Self { tasks, stop })
    }

    /// Lets them leave.
    pub(super) async fn stop(self) {
        self.stop.cancel(CancelReason::ShuttingDown);
        self.tasks.finish(PATIENCE * 2).await;
    }
}

async fn watch(name: &str, mut child: Child, again: String, stop: Cancel) {
    let Some(pid) = child.id() else { return };
    tokio::select! {
        ended = child.wait() => {
            let how = ended.map_or_else(|error| error.to_string(), how);
            tell(&format!("{name} (pid {pid}) {how}. Start it again with"));
            say(&format!("          {again}"));
            return;
        }
        _ = stop.cancelled() => {}
    }
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // If it has just ended, there is nobody to tell.
        let _ = kill_process(pid, Signal::TERM);
    }
    if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
        tracing::warn!(name, "a worker did not leave in time and is killed");
        let _ = child.kill().await;
    }
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("ended with {code}"),
        (None, None) => "ended".to_owned(),
    }
}
