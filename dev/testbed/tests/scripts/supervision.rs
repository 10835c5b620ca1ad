//! The supervisor of a script while its worker is alive.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use elasticjob::execution::Lease;
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::{
    fixture::PATIENCE,
    script::{FAMILY, Process, Stage, survivors},
};

#[tokio::test]
async fn supervisor_ends_the_script_when_the_lease_is_not_renewed() {
    // The lease always has 600 ms left when the worker asks; once the worker stops asking, nothing renews it.
    let lease = Lease::new(|| Duration::from_millis(600));
    let mut stage = Stage::under(lease, FAMILY, "");
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(stage.shard()));
    let family = stage.family(&mut run).await;

    // Nothing polls the run any more, as if the worker were frozen, so the lease is not renewed.
    let left = survivors(&family);

    assert_eq!(left, []);
    let failure = tokio::time::timeout(PATIENCE, run).await.expect("it ends").unwrap_err();
    assert_eq!(failure.to_string(), "sh was stopped: the lease was lost");
}

#[tokio::test]
async fn script_does_not_start_without_a_lease() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("started");
    let lease = Lease::new(|| Duration::ZERO);
    let stage = Stage::under(lease, "touch \"$1\"", &file.display().to_string());

    let run = tokio::time::timeout(PATIENCE, stage.handler.run(stage.shard()));

    let failure = run.await.expect("it ends").unwrap_err();
    assert_eq!(failure.to_string(), "sh was stopped: the lease was lost");
    assert!(!file.exists());
}

#[tokio::test]
async fn worker_ends_the_script_when_its_supervisor_is_killed() {
    let mut stage = Stage::with(&format!("echo $PPID\n{FAMILY}"), "");
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(stage.shard()));
    let supervisor = tokio::select! {
        line = stage.line() => Process::numbered(&line),
        _ = &mut run => panic!("it ended by itself"),
    };
    let family = stage.family(&mut run).await;

    kill_process(supervisor.0, Signal::KILL).unwrap();
    let failure = tokio::time::timeout(PATIENCE, run).await.expect("it ends").unwrap_err();

    assert_eq!(failure.to_string(), "sh was lost: its supervisor is gone");
    assert_eq!(survivors(&family), []);
}

#[tokio::test]
async fn supervisor_survives_signals_from_its_script() {
    let script = "trap : TERM; kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; exit 7";
    let stage = Stage::with(script, "");

    let run = tokio::time::timeout(PATIENCE, stage.handler.run(stage.shard()));

    assert_eq!(run.await.expect("it ends").unwrap_err().to_string(), "sh exited with code 7");
}

fn supervisor(stdin: Stdio) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_script-worker"));
    command.env("ELASTICJOB_SUPERVISE", "yes").stdin(stdin);
    command
}

#[test]
fn supervisor_starts_no_script_when_the_worker_is_gone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("started");
    let (worker_end, supervisor_end) = UnixStream::pair().unwrap();
    drop(worker_end);

    let status =
        supervisor(OwnedFd::from(supervisor_end).into()).arg("touch").arg(&file).status().unwrap();

    assert!(status.success());
    assert!(!file.exists());
}

#[test]
fn supervisor_started_by_hand_explains_the_variable() {
    let output = supervisor(Stdio::null()).arg("true").output().unwrap();

    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("hint: ELASTICJOB_SUPERVISE is set"), "{stderr}");
}
