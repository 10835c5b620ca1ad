//! An instance of either side, as a process that takes orders: the drivers of `interop/` and of the crate `interop`, with jobs that only note when they ran.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use elasticjob::{
    job::{Failover, Job, Spelling},
    runtime::{Clock, SystemClock},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

use crate::{BoxError, registry::beside_us};

/// How long anything may take to be answered.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long a session lasts where it does not matter: what the server allows at most.
pub(super) const SESSION: Duration = Duration::from_secs(40);
/// How many threads a JVM may have before no more jobs are added to it: the system has 32,768 for everybody, and others live here too.
const THREADS: u32 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Java,
    Ours,
}

impl Side {
    /// Each is first in turn.
    pub(super) fn in_turn(turn: usize) -> [Side; 2] {
        if turn.is_multiple_of(2) { [Side::Java, Side::Ours] } else { [Side::Ours, Side::Java] }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Side::Java => "ElasticJob",
            Side::Ours => "ours",
        }
    }
}

/// A shard that began.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Beat {
    pub(super) job: String,
    pub(super) item: u64,
    /// Milliseconds since 1970.
    pub(super) at: i64,
}

/// How a crowd of jobs was joined.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) count: usize,
    /// Why there are not more.
    pub(super) why: Option<String>,
}

/// A job whose shards do nothing, or wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    pub(super) cron: &'static str,
    pub(super) shards: u32,
    pub(super) failover: Failover,
    pub(super) lasts: Duration,
}

impl Pattern {
    pub(super) fn new(cron: &'static str, shards: u32) -> Self {
        Self { cron, shards, failover: Failover::Wait, lasts: Duration::ZERO }
    }

    fn yaml(self, name: &str) -> Result<String, BoxError> {
        let mut job = Job::named(name)?.cron(self.cron)?.shards(self.shards);
        job.spelling = Spelling::UpTo304;
        Ok(job.if_node_dies(self.failover).to_yaml())
    }
}

/// A process; dropping it kills it.
pub(super) struct Worker {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts one, `number` among its like, and waits until it takes orders.
    pub(super) async fn start(
        side: Side,
        server: SocketAddr,
        namespace: &str,
        number: usize,
        session: Duration,
    ) -> Result<Self, BoxError> {
        let program = beside_us("interop", "interop")?;
        let session = session.as_millis();
        let mut command = match side {
            Side::Java => {
                let folder = program.ancestors().nth(2).unwrap_or(&program).join("interop");
                let mut command = Command::new("java");
                // As it comes, but for what it logs.
                command
                    .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"])
                    .arg(format!("{0}/classes:{0}/lib/*", folder.display()))
                    .args(["interop.Driver", &server.to_string(), namespace, &session.to_string()]);
                command
            }
            Side::Ours => {
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
            return Err("a driver without pipes".into());
        };
        let mut worker = Self { child, stdin, lines: BufReader::new(stdout).lines() };
        worker.hear("hello").await?;
        Ok(worker)
    }

    pub(super) fn pid(&self) -> Result<u32, BoxError> {
        Ok(self.child.id().ok_or("the process has ended")?)
    }

    /// Joins one job.
    pub(super) async fn join(&mut self, name: &str, pattern: Pattern) -> Result<(), BoxError> {
        let lasts = pattern.lasts.as_millis() as u64;
        let order =
            json!({"do": "start", "type": "BEAT", "yaml": pattern.yaml(name)?, "lastsMs": lasts});
        self.does(&order).await.map(|_| ())
    }

    /// Joins the jobs `prefix0` and on; in `within` at most, if it stops by itself.
    pub(super) async fn join_many(
        &mut self,
        prefix: &str,
        count: usize,
        pattern: Pattern,
        within: Duration,
    ) -> Result<Joined, BoxError> {
        let order = json!({
            "do": "crowd",
            "prefix": prefix,
            "count": count,
            "yaml": pattern.yaml("pattern")?,
            "lastsMs": pattern.lasts.as_millis() as u64,
            "withinMs": within.as_millis() as u64,
            "threads": THREADS,
        });
        let answer = self.does(&order).await?;
        let joined = answer["joined"].as_u64().ok_or("it does not say how many")?;
        Ok(Joined {
            count: usize::try_from(joined)?,
            why: answer["why"].as_str().map(ToOwned::to_owned),
        })
    }

    /// What began since this was last asked.
    pub(super) async fn beats(&mut self) -> Result<Vec<Beat>, BoxError> {
        let told = self.does(&json!({"do": "beats"})).await?;
        let read = |beat: &Value| {
            let (job, item, at) = (beat[0].as_str()?, beat[1].as_u64()?, beat[2].as_i64()?);
            Some(Beat { job: job.to_owned(), item, at })
        };
        told.as_array()
            .into_iter()
            .flatten()
            .map(|beat| read(beat).ok_or_else(|| format!("{beat} is no beat").into()))
            .collect()
    }

    /// Leaves in peace.
    pub(super) async fn leave(&mut self) -> Result<(), BoxError> {
        self.does(&json!({"do": "leave"})).await.map(|_| ())
    }

    /// Kills it (`kill -9`); when that was.
    pub(super) async fn kill(mut self) -> Result<i64, BoxError> {
        let at = now();
        self.child.kill().await?;
        Ok(at)
    }

    async fn does(&mut self, order: &Value) -> Result<Value, BoxError> {
        self.stdin.write_all(format!("{order}\n").as_bytes()).await?;
        let mut answer = self.hear("answer").await?;
        match answer["error"].as_str() {
            None => Ok(answer["value"].take()),
            Some(error) => Err(error.into()),
        }
    }

    async fn hear(&mut self, what: &str) -> Result<Value, BoxError> {
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.map_err(|_| format!("no {what} in {PATIENCE:?}"))??;
            let line = line.ok_or_else(|| format!("a driver ended and said no {what}"))?;
            let Ok(words) = serde_json::from_str::<Value>(&line) else { continue };
            if words["said"] == what {
                return Ok(words);
            }
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    SystemClock.now().as_millisecond()
}

/// Waits until then.
pub(super) async fn until(at: i64) {
    sleep(Duration::from_millis(u64::try_from(at - now()).unwrap_or_default())).await;
}
