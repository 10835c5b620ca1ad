//! What a supervisor does, seen from a worker that lives.

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
async fn a_lease_that_is_not_renewed_ends_the_script_without_the_worker() {
    // At first it is there; then the worker knows of no more than a moment, and does nothing about it.
    let lease = Lease::new(|| Duration::from_millis(600));
    let mut stage = Stage::under(lease, FAMILY, "");
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(stage.shard()));
    let family = stage.family(&mut run).await;

    // Nobody polls the run any more, as if the worker were frozen: nothing is renewed.
    let left = survivors(&family);

    assert_eq!(left, []);
    let failure = tokio::time::timeout(PATIENCE, run).await.expect("it ends").unwrap_err();
    assert_eq!(failure.to_string(), "sh was stopped: the lease was lost");
}

#[tokio::test]
async fn nothing_is_started_when_the_lease_is_over() {
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
async fn a_worker_whose_supervisor_is_killed_ends_the_script_itself() {
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
async fn whoever_signals_everybody_does_not_end_the_supervisor() {
    let script = "trap : TERM; kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; exit 7";
    let stage = Stage::with(script, "");

    let run = tokio::time::timeout(PATIENCE, stage.handler.run(stage.shard()));

    assert_eq!(run.await.expect("it ends").unwrap_err().to_string(), "sh exited with code 7");
}

fn asked(stdin: Stdio) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_script-worker"));
    command.env("ELASTICJOB_SUPERVISE", "yes").stdin(stdin);
    command
}

#[test]
fn nothing_is_started_for_a_worker_that_is_gone() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("started");
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);

    let ended = asked(OwnedFd::from(theirs).into()).arg("touch").arg(&file).status().unwrap();

    assert!(ended.success());
    assert!(!file.exists());
}

#[test]
fn a_program_that_no_worker_has_started_says_so() {
    let ended = asked(Stdio::null()).arg("true").output().unwrap();

    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("hint: ELASTICJOB_SUPERVISE is set"), "{said}");
}
