//! An instance as a test holds it: a process of either language that takes orders and says what it does.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use elasticjob::job::Job;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testbed::Proxy;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    task::JoinSet,
};

use crate::record::{PATIENCE, Record, Said};

/// What Java and the jars are kept in by `scripts/build-java-driver.sh`.
fn driver() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("interop");
    assert!(
        folder.join("built").exists(),
        "there is no Java driver in {}; hint: make test-java builds it first",
        folder.display()
    );
    folder
}

/// The command that runs the Java driver.
pub(crate) fn java(servers: &str, namespace: &str, session: Duration) -> Command {
    jvm(&driver(), servers, namespace, session)
}

/// The command that runs the driver with 2.1.5.
pub(crate) fn old(servers: &str, namespace: &str, session: Duration) -> Command {
    jvm(&driver().join("old"), servers, namespace, session)
}

fn jvm(folder: &Path, servers: &str, namespace: &str, session: Duration) -> Command {
    let mut command = Command::new("java");
    command
        // It lives for seconds: starting counts, not speed.
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"])
        .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dfile.encoding=UTF-8"])
        .args(["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Duser.timezone=UTC"])
        .arg("-cp")
        .arg(format!("{0}/classes:{0}/lib/*", folder.display()))
        .args(["interop.Driver", servers, namespace, &session.as_millis().to_string()]);
    command
}

/// The command that runs its twin.
pub(crate) fn rust(servers: &str, namespace: &str, session: Duration, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interop"));
    let session = session.as_millis();
    command
        .arg(format!(
            "zookeeper://{servers}/{namespace}?sessionTimeout={session}ms&connectionTimeout=2s&baseSleepTime=100ms&maxSleepTime=500ms"
        ))
        .arg(address)
        .env("TZ", "UTC");
    command
}

/// An instance. It is killed when this is dropped.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its way to the server, which can be cut.
    pub(crate) line: Proxy,
    child: Child,
    stdin: ChildStdin,
    pid: Pid,
    answers: mpsc::UnboundedReceiver<Value>,
    listening: JoinSet<()>,
}

impl Peer {
    /// Starts a process and waits until it says hello; it logs to `log`.
    pub(crate) async fn start(
        name: &str,
        mut command: Command,
        line: Proxy,
        record: &Record,
        log: &Path,
    ) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (answer, mut answers) = mpsc::unbounded_channel();
        let (mut listening, peer, record) = (JoinSet::new(), name.to_owned(), record.clone());
        listening.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // Scripts print as well.
                let Ok(words) = serde_json::from_str::<Value>(&line) else { continue };
                if words["said"] == "answer" || words["said"] == "hello" {
                    let _ = answer.send(words);
                } else {
                    record.push(Said { peer: peer.clone(), words });
                }
            }
        });
        let hello = tokio::time::timeout(PATIENCE, answers.recv()).await;
        let hello = hello.ok().flatten().unwrap_or_else(|| panic!("{name} does not start"));
        let version = hello["version"].as_str().unwrap().to_owned();
        Self { name: name.to_owned(), version, line, child, stdin, pid, answers, listening }
    }

    /// What it answers to an order, or what it says is wrong with it.
    pub(crate) async fn tries(&mut self, order: Value) -> Result<Value, String> {
        self.stdin.write_all(format!("{order}\n").as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.answers.recv()).await;
        let mut answer = answer
            .ok()
            .flatten()
            .unwrap_or_else(|| panic!("{} does not answer {order}", self.name));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].take()),
        }
    }

    pub(crate) async fn does(&mut self, order: Value) -> Value {
        let done = self.tries(order.clone()).await;
        done.unwrap_or_else(|error| panic!("{}: {order}: {error}", self.name))
    }

    /// Joins a job whose shards take this long; its id.
    pub(crate) async fn joins(&mut self, job: &Job, lasts: Duration) -> String {
        self.joins_as("SIMPLE", job, lasts).await
    }

    /// Joins a job of this type; its id.
    pub(crate) async fn joins_as(&mut self, kind: &str, job: &Job, lasts: Duration) -> String {
        let order = json!({
            "do": "start",
            "type": kind,
            "yaml": job.to_yaml(),
            "lastsMs": lasts.as_millis() as u64,
            "fails": -1,
        });
        self.does(order).await.as_str().unwrap().to_owned()
    }

    /// Leaves a job in peace.
    pub(crate) async fn leaves(&mut self, job: &Job) {
        assert_eq!(self.does(json!({"do": "stop", "job": job.name.as_str()})).await, true);
    }

    /// Stops it where it is.
    pub(crate) fn freeze(&self) {
        kill_process(self.pid, Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        kill_process(self.pid, Signal::CONT).unwrap();
    }

    /// Kills it (`kill -9`) and waits until everything it said is heard.
    pub(crate) async fn kill(mut self) {
        kill_process(self.pid, Signal::KILL).unwrap();
        let ended = async {
            self.child.wait().await.unwrap();
            while self.listening.join_next().await.is_some() {}
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("who is killed ends");
    }
}
