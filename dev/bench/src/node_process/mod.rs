//! A node with many jobs in a process of its own, so that its memory and its processor time are its own, as a user has them.
//!
//! The process is this program again ([`child`]). It joins its jobs and then obeys commands: one line each, answered by one line of JSON.

mod child;

use std::{env, net::Ipv4Addr, process::Stdio, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

pub(crate) use self::child::{Options, run};
use crate::{
    BoxError,
    process::{busy, peak_resident, resident},
};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_mins(3);
/// Not due during a benchmark.
pub(crate) const NEVER: &str = "0 0 2 1 1 ? 2099";

/// The jobs of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) registry: String,
    pub(crate) jobs: usize,
    pub(crate) shards: u32,
    pub(crate) cron: String,
    /// The node is 10.0.0.`number`.
    pub(crate) number: u8,
    pub(crate) history: Option<String>,
}

/// A node in a process. Dropping it kills the process.
pub(crate) struct NodeProcess {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// In which events of its history wait.
    _folder: Option<TempDir>,
}

/// How long a node took to join its jobs, counted from the start of its process' work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinTimes {
    /// Until every job could run a fire.
    pub(crate) ready: Duration,
    pub(crate) sessions: u32,
}

/// The shards that started because of one moment of the schedule.
#[derive(Debug)]
pub(crate) struct FireDelays {
    pub(crate) due_at: Timestamp,
    /// In milliseconds, one for each shard.
    pub(crate) delays: Vec<f64>,
}

/// What became of the events of a history.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HistoryCounts {
    pub(crate) recorded: u64,
    pub(crate) dropped: u64,
}

impl NodeProcess {
    /// Starts a process and waits until every job of it can run.
    pub(crate) async fn start(plan: &NodePlan) -> Result<(Self, JoinTimes), BoxError> {
        let mut process = Self::spawn(plan)?;
        let answer = process.read().await?;
        let ready = answer["ready_ms"].as_f64().ok_or("the answer has no time")?;
        let times = JoinTimes {
            ready: Duration::from_secs_f64(ready / 1e3),
            sessions: u32::try_from(answer["sessions"].as_u64().unwrap_or_default())?,
        };
        Ok((process, times))
    }

    fn spawn(plan: &NodePlan) -> Result<Self, BoxError> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["node", "--registry", &plan.registry, "--cron", &plan.cron]);
        command.args(["--jobs", &plan.jobs.to_string(), "--shards", &plan.shards.to_string()]);
        command.args(["--address", &Ipv4Addr::new(10, 0, 0, plan.number).to_string()]);
        let mut folder = None;
        if let Some(history) = &plan.history {
            let spill = tempfile::tempdir()?;
            command.args(["--history", history, "--spill"]).arg(spill.path());
            folder = Some(spill);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the node has no pipes".into());
        };
        Ok(Self { child, stdin, lines: BufReader::new(stdout).lines(), _folder: folder })
    }

    /// Resident memory, in megabytes.
    pub(crate) fn resident(&self) -> Result<f64, BoxError> {
        resident(self.pid()?)
    }

    /// Processor time so far.
    pub(crate) fn busy(&self) -> Result<Duration, BoxError> {
        busy(self.pid()?)
    }

    /// Peak resident memory, in megabytes.
    pub(crate) fn peak_resident(&self) -> Result<f64, BoxError> {
        peak_resident(self.pid()?)
    }

    /// The shards that started since the last call, by the moment at which they were due.
    pub(crate) async fn take_delays(&mut self) -> Result<Vec<FireDelays>, BoxError> {
        let answer = self.command("delays").await?;
        let fires = answer["fires"].as_array().ok_or("the answer has no fires")?;
        fires
            .iter()
            .map(|fire| {
                let due_at = Timestamp::from_millisecond(fire[0].as_i64().unwrap_or_default())?;
                let delays = fire[1].as_array().into_iter().flatten();
                Ok(FireDelays { due_at, delays: delays.filter_map(Value::as_f64).collect() })
            })
            .collect()
    }

    /// Waits until no job can run a fire because the registry is unreachable.
    pub(crate) async fn wait_until_unready(&mut self) -> Result<(), BoxError> {
        self.command("unready").await.map(drop)
    }

    /// Waits until every job can run a fire.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<(), BoxError> {
        self.command("ready").await.map(drop)
    }

    /// Stops the node gracefully, and returns what became of its history once all of it is stored.
    pub(crate) async fn stop(mut self) -> Result<HistoryCounts, BoxError> {
        let answer = self.command("stop").await?;
        self.child.wait().await?;
        let count = |name: &str| answer[name].as_u64().unwrap_or_default();
        Ok(HistoryCounts { recorded: count("recorded"), dropped: count("dropped") })
    }

    fn pid(&self) -> Result<u32, BoxError> {
        Ok(self.child.id().ok_or("the node has exited")?)
    }

    async fn command(&mut self, command: &str) -> Result<Value, BoxError> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await?;
        self.read().await
    }

    async fn read(&mut self) -> Result<Value, BoxError> {
        let line = timeout(TIMEOUT, self.lines.next_line()).await;
        let line = line.map_err(|_| format!("the node does not answer within {TIMEOUT:?}"))??;
        Ok(serde_json::from_str(&line.ok_or("the node has exited")?)?)
    }
}
