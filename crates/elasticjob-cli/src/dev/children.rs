//! The demo workers: child processes, so that they can be killed.

use std::{
    env, io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use elasticjob::runtime::{CancelReason, CancelToken, Tasks};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::print::print_event;
use crate::{
    error::{Code, Error},
    output::print_message,
};

const NAMES: [&str; 3] = ["worker-1", "worker-2", "worker-3"];
/// How long a worker may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Children {
    tasks: Tasks,
    stop: CancelToken,
}

impl Children {
    /// Starts the workers. When one dies, that is printed with the command line to restart it, which has the history URL without its password.
    pub(super) fn start(
        registry: &str,
        endpoint: &str,
        history: Option<&(String, String)>,
        retention: &[(&'static str, String)],
    ) -> Result<Self, Error> {
        let cannot = |error: io::Error| {
            Error::new(Code::Internal, format!("cannot start a worker: {error}"))
        };
        let (mut tasks, stop) = (Tasks::new(), CancelToken::new());
        let program = env::current_exe().map_err(cannot)?;
        for name in NAMES {
            let child = Command::new(&program)
                .args(["demo-worker", "--child", "--name", name])
                .args(["--endpoint", endpoint, "--registry", registry])
                // Not an argument, since every user can see those and the URL may hold a password.
                .env("ELASTICJOB_HISTORY", history.map_or("none", |(_, url)| url))
                .env_remove("ELASTICJOB_HISTORY_FILE")
                .env_remove("ELASTICJOB_REGISTRY_FILE")
                .envs(retention.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                // Ctrl-C goes to this process only; it stops the workers itself.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(cannot)?;
            let display_url = history.map_or("none", |(display_url, _)| display_url);
            let command_line = format!(
                "{} demo-worker --name {name} --endpoint {endpoint} --registry '{registry}' --history '{display_url}'",
                program.display()
            );
            tasks.spawn(watch(name, child, command_line, stop.clone()));
        }
        Ok(Self { tasks, stop })
    }

    /// Stops the workers and waits for them.
    pub(super) async fn stop(self) {
        self.stop.cancel(CancelReason::ShuttingDown);
        self.tasks.finish(STOP_TIMEOUT * 2).await;
    }
}

async fn watch(name: &str, mut child: Child, command_line: String, stop: CancelToken) {
    let Some(pid) = child.id() else { return };
    tokio::select! {
        ended = child.wait() => {
            let exit = ended.map_or_else(|error| error.to_string(), describe_exit);
            print_event(&format!("{name} (pid {pid}) {exit}. Start it again with"));
            print_message(&format!("          {command_line}"));
            return;
        }
        _ = stop.cancelled() => {}
    }
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // Fails only if the process has just ended.
        let _ = kill_process(pid, Signal::TERM);
    }
    if tokio::time::timeout(STOP_TIMEOUT, child.wait()).await.is_err() {
        tracing::warn!(name, "demo worker did not stop in time, killing it");
        let _ = child.kill().await;
    }
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}
