//! A handle to a process of either language that executes commands and prints events.

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

use crate::event_log::{Event, EventLog, TIMEOUT};

/// The folder that `scripts/build-java-driver.sh` builds the Java driver into.
fn driver_folder() -> PathBuf {
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
    jvm(&driver_folder(), servers, namespace, session)
}

/// The command that runs the Java driver with elastic-job 2.1.5.
pub(crate) fn java_2_1_5(servers: &str, namespace: &str, session: Duration) -> Command {
    jvm(&driver_folder().join("old"), servers, namespace, session)
}

fn jvm(folder: &Path, servers: &str, namespace: &str, session: Duration) -> Command {
    let mut command = Command::new("java");
    command
        // The process lives for seconds: startup time matters, not speed.
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"])
        .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dfile.encoding=UTF-8"])
        .args(["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Duser.timezone=UTC"])
        .arg("-cp")
        .arg(format!("{0}/classes:{0}/lib/*", folder.display()))
        .args(["interop.Driver", servers, namespace, &session.as_millis().to_string()]);
    command
}

/// The command that runs the Rust counterpart of the driver.
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

/// A process. Dropping it kills the process.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its connection to the server, which can be cut.
    pub(crate) proxy: Proxy,
    child: Child,
    stdin: ChildStdin,
    pid: Pid,
    answers: mpsc::UnboundedReceiver<Value>,
    reader: JoinSet<()>,
}

impl Peer {
    /// Starts a process and waits for its `hello`. Its log is appended to `log`.
    pub(crate) async fn start(
        name: &str,
        mut command: Command,
        proxy: Proxy,
        events: &EventLog,
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
        let (mut reader, peer, events) = (JoinSet::new(), name.to_owned(), events.clone());
        reader.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // Scripts print other lines too.
                let Ok(fields) = serde_json::from_str::<Value>(&line) else { continue };
                if fields["event"] == "answer" || fields["event"] == "hello" {
                    let _ = answer.send(fields);
                } else {
                    events.push(Event { peer: peer.clone(), fields });
                }
            }
        });
        let hello = tokio::time::timeout(TIMEOUT, answers.recv()).await;
        let hello = hello.ok().flatten().unwrap_or_else(|| panic!("{name} does not start"));
        let version = hello["version"].as_str().unwrap().to_owned();
        Self { name: name.to_owned(), version, proxy, child, stdin, pid, answers, reader }
    }

    /// Sends a command and returns the answer, or the error that the process reports.
    pub(crate) async fn try_command(&mut self, command: Value) -> Result<Value, String> {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(TIMEOUT, self.answers.recv()).await;
        let mut answer = answer
            .ok()
            .flatten()
            .unwrap_or_else(|| panic!("{} does not answer {command}", self.name));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].take()),
        }
    }

    /// Like [`Self::try_command`]; panics on an error.
    pub(crate) async fn command(&mut self, command: Value) -> Value {
        let answer = self.try_command(command.clone()).await;
        answer.unwrap_or_else(|error| panic!("{}: {command}: {error}", self.name))
    }

    /// Joins a job whose shards run for `duration`. Returns the instance id.
    pub(crate) async fn join(&mut self, job: &Job, duration: Duration) -> String {
        self.join_as("SIMPLE", job, duration).await
    }

    /// Joins a job of type `kind`. Returns the instance id.
    pub(crate) async fn join_as(&mut self, kind: &str, job: &Job, duration: Duration) -> String {
        let command = json!({
            "do": "start",
            "type": kind,
            "yaml": job.to_yaml(),
            "lastsMs": duration.as_millis() as u64,
            "fails": -1,
        });
        self.command(command).await.as_str().unwrap().to_owned()
    }

    /// Leaves a job gracefully.
    pub(crate) async fn leave(&mut self, job: &Job) {
        assert_eq!(self.command(json!({"do": "stop", "job": job.name.as_str()})).await, true);
    }

    /// Suspends the process (SIGSTOP).
    pub(crate) fn freeze(&self) {
        kill_process(self.pid, Signal::STOP).unwrap();
    }

    /// Resumes the process (SIGCONT).
    pub(crate) fn thaw(&self) {
        kill_process(self.pid, Signal::CONT).unwrap();
    }

    /// Kills the process (SIGKILL) and waits until all its events are read.
    pub(crate) async fn kill(mut self) {
        kill_process(self.pid, Signal::KILL).unwrap();
        let exit = async {
            self.child.wait().await.unwrap();
            while self.reader.join_next().await.is_some() {}
        };
        tokio::time::timeout(TIMEOUT, exit).await.expect("a killed process exits");
    }
}
