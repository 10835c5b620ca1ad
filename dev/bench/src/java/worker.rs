//! An instance of either side, as a process that executes commands: the Java driver or its Rust counterpart in `dev/interop`, with jobs that only
//! record when they started.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use elasticjob::{
    job::{Failover, Job, KeySpelling},
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

use crate::{BoxError, registry::sibling_program};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_mins(5);
/// The session timeout where it does not matter: the longest that the server allows.
pub(super) const SESSION: Duration = Duration::from_secs(40);
/// How many threads a JVM may have before no more jobs are added to it: the system allows 32,768 for all processes together.
const MAX_THREADS: u32 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Java,
    Rust,
}

impl Side {
    /// Both sides; each comes first in every other turn.
    pub(super) fn in_turn(turn: usize) -> [Side; 2] {
        if turn.is_multiple_of(2) { [Side::Java, Side::Rust] } else { [Side::Rust, Side::Java] }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Java => "Java",
            Side::Rust => "Rust",
        }
    }
}

/// The start of a shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    pub(super) job: String,
    pub(super) item: u64,
    /// Milliseconds since 1970.
    pub(super) at: i64,
}

/// The result of joining many jobs.
#[derive(Debug)]
pub(super) struct JoinResult {
    pub(super) count: usize,
    /// Why the worker stopped before all jobs had joined.
    pub(super) reason: Option<String>,
}

/// The settings of a job whose shards do nothing, or sleep.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobTemplate {
    pub(super) cron: &'static str,
    pub(super) shards: u32,
    pub(super) failover: Failover,
    pub(super) duration: Duration,
}

impl JobTemplate {
    pub(super) fn new(cron: &'static str, shards: u32) -> Self {
        Self { cron, shards, failover: Failover::Wait, duration: Duration::ZERO }
    }

    fn yaml(self, name: &str) -> Result<String, BoxError> {
        let mut job = Job::named(name)?.cron(self.cron)?.shards(self.shards);
        job.spelling = KeySpelling::UpTo304;
        Ok(job.failover(self.failover).to_yaml())
    }
}

/// A process. Dropping it kills it.
pub(super) struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts process number `number` of its side and waits until it accepts commands.
    pub(super) async fn start(
        side: Side,
        server: SocketAddr,
        namespace: &str,
        number: usize,
        session: Duration,
    ) -> Result<Self, BoxError> {
        let program = sibling_program("interop", "interop")?;
        let session = session.as_millis();
        let mut command = match side {
            Side::Java => {
                let folder = program.ancestors().nth(2).unwrap_or(&program).join("interop");
                let mut command = Command::new("java");
                // With default settings, except for the log level.
                command
                    .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"])
                    .arg(format!("{0}/classes:{0}/lib/*", folder.display()))
                    .args(["interop.Driver", &server.to_string(), namespace, &session.to_string()]);
                command
            }
            Side::Rust => {
                let mut command = Command::new(program);
                let url = format!("zookeeper://{server}/{namespace}?sessionTimeout={session}ms");
                command.arg(url).arg(format!("10.0.0.{}", number + 1)).env("RUST_LOG", "error");
                command
            }
        };
        let mut child = command
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the driver has no pipes".into());
        };
        let mut worker = Self { child, stdin, lines: BufReader::new(stdout).lines() };
        worker.read("hello").await?;
        Ok(worker)
    }

    pub(super) fn pid(&self) -> Result<u32, BoxError> {
        Ok(self.child.id().ok_or("the process has exited")?)
    }

    /// Joins one job.
    pub(super) async fn join(&mut self, name: &str, template: JobTemplate) -> Result<(), BoxError> {
        let duration = template.duration.as_millis() as u64;
        let command = json!({"do": "start", "type": "RECORD_STARTS", "yaml": template.yaml(name)?, "lastsMs": duration});
        self.command(&command).await.map(|_| ())
    }

    /// Joins the jobs `prefix0` and on. Java stops after `limit`.
    pub(super) async fn join_many(
        &mut self,
        prefix: &str,
        count: usize,
        template: JobTemplate,
        limit: Duration,
    ) -> Result<JoinResult, BoxError> {
        let command = json!({
            "do": "start many",
            "prefix": prefix,
            "count": count,
            "yaml": template.yaml("template")?,
            "lastsMs": template.duration.as_millis() as u64,
            "withinMs": limit.as_millis() as u64,
            "threads": MAX_THREADS,
        });
        let answer = self.command(&command).await?;
        let joined =
            answer["joined"].as_u64().ok_or("the answer does not contain the number of jobs")?;
        Ok(JoinResult {
            count: usize::try_from(joined)?,
            reason: answer["reason"].as_str().map(ToOwned::to_owned),
        })
    }

    /// The starts since the last call.
    pub(super) async fn take_starts(&mut self) -> Result<Vec<Start>, BoxError> {
        let answer = self.command(&json!({"do": "take starts"})).await?;
        let read = |start: &Value| {
            let (job, item, at) = (start[0].as_str()?, start[1].as_u64()?, start[2].as_i64()?);
            Some(Start { job: job.to_owned(), item, at })
        };
        answer
            .as_array()
            .into_iter()
            .flatten()
            .map(|start| read(start).ok_or_else(|| format!("{start} is not a start").into()))
            .collect()
    }

    /// Leaves gracefully.
    pub(super) async fn leave(&mut self) -> Result<(), BoxError> {
        self.command(&json!({"do": "leave"})).await.map(|_| ())
    }

    /// Kills the process (SIGKILL) and returns the time of the kill.
    pub(super) async fn kill(mut self) -> Result<i64, BoxError> {
        let at = now();
        self.child.kill().await?;
        Ok(at)
    }

    async fn command(&mut self, command: &Value) -> Result<Value, BoxError> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await?;
        let mut answer = self.read("answer").await?;
        match answer["error"].as_str() {
            None => Ok(answer["value"].take()),
            Some(error) => Err(error.into()),
        }
    }

    async fn read(&mut self, kind: &str) -> Result<Value, BoxError> {
        loop {
            let line = timeout(TIMEOUT, self.lines.next_line()).await;
            let line = line.map_err(|_| format!("no {kind} within {TIMEOUT:?}"))??;
            let line = line.ok_or_else(|| format!("the driver exited without sending {kind}"))?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            if event["event"] == kind {
                return Ok(event);
            }
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    SystemClock.now().as_millisecond()
}

/// Waits until a time in milliseconds since 1970.
pub(super) async fn until(at: i64) {
    sleep(Duration::from_millis(u64::try_from(at - now()).unwrap_or_default())).await;
}
