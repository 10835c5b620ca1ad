//! One worker process, and the events it prints.

use std::{
    io::Write,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use elasticjob::job::Shard;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc,
    task::JoinSet,
};

/// Environment variable with the registry URL; set only for a worker.
pub(crate) const REGISTRY: &str = "ELASTICJOB_TEST_REGISTRY";

/// How long a shard runs: long enough to be stopped during the run.
const RUN_DURATION: Duration = Duration::from_millis(200);
/// How long a worker may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker started or ended a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardEvent {
    pub(crate) step: Step,
    pub(crate) instance: String,
    /// Due time of the run, in milliseconds.
    pub(crate) run: i64,
    pub(crate) item: u32,
    pub(crate) total: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Started,
    Ended,
}

/// Prints that the shard starts, takes its time, and prints that the shard ended.
pub(crate) async fn handler(shard: Shard) -> std::io::Result<()> {
    print_event("started", &shard)?;
    tokio::time::sleep(RUN_DURATION).await;
    print_event("ended", &shard)
}

fn print_event(step: &str, shard: &Shard) -> std::io::Result<()> {
    let line = json!({
        "step": step,
        "instance": shard.task.instance.to_string(),
        "run": shard.due_at.as_millisecond(),
        "item": shard.item,
        "total": shard.total.get(),
    });
    // In one write, and not through the test harness, which captures `println!`.
    std::io::stdout().write_all(format!("{line}\n").as_bytes())
}

fn parse_event(line: &str) -> Option<ShardEvent> {
    // The test harness prints other lines.
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
    Some(ShardEvent {
        step: if value["step"] == "started" { Step::Started } else { Step::Ended },
        instance: value["instance"].as_str()?.to_owned(),
        run: value["run"].as_i64()?,
        item: number("item")?,
        total: number("total")?,
    })
}

/// Handle to a worker process. Dropping it kills the process.
pub(crate) struct Worker {
    child: Child,
    reader: JoinSet<()>,
    exit_status: Option<ExitStatus>,
}

impl Worker {
    pub(crate) fn start(url: &str, sender: mpsc::UnboundedSender<ShardEvent>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["worker_process", "--exact", "--include-ignored", "--nocapture"])
            .env(REGISTRY, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(event) = parse_event(&line) {
                    let _ = sender.send(event);
                }
            }
        });
        Self { child, reader, exit_status: None }
    }

    /// Whether the instance id belongs to this process.
    pub(crate) fn is(&self, instance: &str) -> bool {
        let pid = self.child.id().unwrap_or(0).to_string();
        instance.split_once("@-@").is_some_and(|(_, rest)| rest.split('-').next() == Some(&pid))
    }

    /// Asks the worker to stop, and waits until it has exited and all its events are read. Later calls return the same exit status.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        if let Some(exit_status) = self.exit_status {
            return exit_status;
        }
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let exit_status = tokio::time::timeout(STOP_TIMEOUT, async {
            let exit_status = self.child.wait().await.unwrap();
            while self.reader.join_next().await.is_some() {}
            exit_status
        });
        *self.exit_status.insert(exit_status.await.expect("the worker exits within the timeout"))
    }
}
