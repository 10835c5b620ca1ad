//! One worker: a process of its own that says what it does.

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

/// Set for a worker, to where it meets the others.
pub(crate) const REGISTRY: &str = "ELASTICJOB_TEST_REGISTRY";

/// How long a shard works: long enough to be stopped in the middle of it.
const WORK: Duration = Duration::from_millis(200);
/// How long a worker may take to end when it is asked to.
const END: Duration = Duration::from_secs(10);

/// Something a worker did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) step: Step,
    pub(crate) instance: String,
    /// When it was due, in milliseconds.
    pub(crate) run: i64,
    pub(crate) item: u32,
    pub(crate) total: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Started,
    Ended,
}

/// Says that it starts, works, and says that it ended.
pub(crate) async fn handler(shard: Shard) -> std::io::Result<()> {
    say("started", &shard)?;
    tokio::time::sleep(WORK).await;
    say("ended", &shard)
}

fn say(step: &str, shard: &Shard) -> std::io::Result<()> {
    let line = json!({
        "step": step,
        "instance": shard.task.instance.to_string(),
        "run": shard.due_at.as_millisecond(),
        "item": shard.item,
        "total": shard.total.get(),
    });
    // In one piece, and past whoever captures what tests print.
    std::io::stdout().write_all(format!("{line}\n").as_bytes())
}

fn hear(line: &str) -> Option<Said> {
    // The test harness speaks as well.
    let said: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| said[key].as_u64().and_then(|number| u32::try_from(number).ok());
    Some(Said {
        step: if said["step"] == "started" { Step::Started } else { Step::Ended },
        instance: said["instance"].as_str()?.to_owned(),
        run: said["run"].as_i64()?,
        item: number("item")?,
        total: number("total")?,
    })
}

/// A worker as its parent holds it. It ends when this is dropped.
pub(crate) struct Worker {
    child: Child,
    listening: JoinSet<()>,
    ended: Option<ExitStatus>,
}

impl Worker {
    pub(crate) fn start(url: &str, tell: mpsc::UnboundedSender<Said>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["work", "--exact", "--include-ignored", "--nocapture"])
            .env(REGISTRY, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(said) = hear(&line) {
                    let _ = tell.send(said);
                }
            }
        });
        Self { child, listening, ended: None }
    }

    /// Whether this is the process behind an instance id.
    pub(crate) fn is(&self, instance: &str) -> bool {
        let pid = self.child.id().unwrap_or(0).to_string();
        instance.split_once("@-@").is_some_and(|(_, rest)| rest.split('-').next() == Some(&pid))
    }

    /// Asks it to stop and waits for its end, and for all it had to say. Once it has ended this is how it ended.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        if let Some(ended) = self.ended {
            return ended;
        }
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let ended = tokio::time::timeout(END, async {
            let ended = self.child.wait().await.unwrap();
            while self.listening.join_next().await.is_some() {}
            ended
        });
        *self.ended.insert(ended.await.expect("a worker that is asked to stop ends in time"))
    }
}
