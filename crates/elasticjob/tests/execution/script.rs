//! Scripts: input, output, exit and cleanup.
//!
//! The same tests run with and without a supervisor: `crate::script_work` decides.

use std::{
    fs,
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
    time::Duration,
};

use elasticjob::{
    execution::{Guard, Handler, Lease, Outcome, Output, RunSettings, Script, Stream, attempt},
    job::{Job, Shard},
    runtime::CancelReason,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::fixture::{self, PATIENCE};

/// A shell script in its own folder, and the lines it prints.
pub(crate) struct Stage {
    job: Job,
    lines: mpsc::UnboundedReceiver<(Stream, String)>,
    pub(crate) handler: Arc<dyn Handler>,
    folder: TempDir,
}

struct LineCollector(mpsc::UnboundedSender<(Stream, String)>);

impl Output for LineCollector {
    fn line(&self, _: &Shard, stream: Stream, line: &str) {
        let _ = self.0.send((stream, line.to_owned()));
    }
}

impl Stage {
    pub(crate) fn with(script: &str, arguments: &str) -> Self {
        Self::under(Lease::none(), script, arguments)
    }

    pub(crate) fn under(lease: Lease, script: &str, arguments: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("script.sh");
        fs::write(&file, script).unwrap();
        let line = format!("sh {} {arguments}", file.display());
        let job = fixture::job(&[("script.command.line", &line)]);
        let (sender, lines) = mpsc::unbounded_channel();
        let setting =
            RunSettings { lease, output: Arc::new(LineCollector(sender)), ..RunSettings::of(&job) };
        let handler = fixture::handler(&crate::script_work(), &setting);
        Self { job, lines, handler, folder }
    }

    pub(crate) fn shard(&self) -> Shard {
        fixture::shard(&self.job, 1)
    }

    async fn run(&mut self, shard: Shard) -> Vec<String> {
        let run = tokio::time::timeout(PATIENCE, self.handler.run(shard));
        assert_eq!(run.await.expect("the script ends"), Ok(()));
        let mut printed = Vec::new();
        while let Ok((_, line)) = self.lines.try_recv() {
            printed.push(line);
        }
        printed
    }

    async fn failure(&self) -> String {
        let run = tokio::time::timeout(PATIENCE, self.handler.run(self.shard()));
        run.await.expect("the script ends").unwrap_err().to_string()
    }

    pub(crate) async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.recv());
        line.await.expect("the script prints a line").unwrap().1
    }
}

/// A process that was alive when this was created.
pub(crate) struct Process(pub(crate) Pid, OwnedFd);

impl Process {
    pub(crate) fn numbered(line: &str) -> Self {
        let pid = Pid::from_raw(line.parse().unwrap()).unwrap();
        Self(pid, pidfd_open(pid, PidfdFlags::empty()).expect("the process is alive"))
    }

    pub(crate) fn ends_within(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).unwrap();
        let poll_once = || poll(&mut [PollFd::new(&self.1, PollFlags::IN)], Some(&timeout));
        // Every child that exits raises SIGCHLD, which interrupts the call.
        retry_on_intr(poll_once).unwrap() == 1
    }
}

#[tokio::test]
async fn sharding_context_is_last_argument() {
    let mut stage = Stage::with(r#"printf '%s\n' "$@""#, "one 'two'");
    let shard = stage.shard();
    let task = shard.task.to_string();

    let printed = stage.run(shard).await;

    let context = format!(
        r#"{{"jobName":"报表","taskId":"{task}","shardingTotalCount":4,"jobParameter":"\u003call\u003e","shardingItem":1,"shardingParameter":"Shang hai"}}"#
    );
    assert_eq!(printed, ["one", "two", &context]);
}

#[tokio::test]
async fn grouped_argument_keeps_quotes_like_java() {
    let mut stage = Stage::with(r#"printf '%s\n' "$1" "$2" "$3""#, r#""a b" 'c d' $HOME"#);
    let shard = stage.shard();

    assert_eq!(stage.run(shard).await, [r#""a b""#, r#""c d""#, "$HOME"]);
}

#[tokio::test]
async fn environment_describes_the_shard() {
    let mut stage = Stage::with("env | grep ^ELASTICJOB_ | sort", "");
    let shard = stage.shard();
    let task = format!("ELASTICJOB_TASK_ID={}", shard.task);

    let mut printed = stage.run(shard).await;
    printed.sort();

    assert_eq!(
        printed,
        [
            "ELASTICJOB_ATTEMPT=1",
            "ELASTICJOB_FENCING_TOKEN=77",
            "ELASTICJOB_ITEM=1",
            "ELASTICJOB_ITEM_PARAMETER=Shang hai",
            "ELASTICJOB_JOB_NAME=报表",
            "ELASTICJOB_JOB_PARAMETER=<all>",
            "ELASTICJOB_RUN_ID=报表/1774749600000",
            "ELASTICJOB_SCHEDULED_AT=2026-03-29T02:00:00Z",
            &task,
            "ELASTICJOB_TOTAL=4",
        ]
    );
}

#[tokio::test]
async fn shell_property_runs_command_in_shell() {
    let job = fixture::job(&[
        ("script.command.line", r#"test -n "$1" && exit "$((3 + ELASTICJOB_TOTAL))""#),
        ("elasticjob.script.shell", "true"),
    ]);

    let failure = fixture::run(&crate::script_work(), &job, 0).await.unwrap_err();

    assert_eq!(failure.to_string(), "sh exited with code 7");
}

#[tokio::test]
async fn failure_has_exit_code_and_end_of_stderr() {
    let stage = Stage::with("seq 1 50 >&2; echo noise; echo 'disk full' >&2; exit 3", "");

    let message = stage.failure().await;

    assert!(message.starts_with("sh exited with code 3: 42\n"), "{message}");
    assert!(message.ends_with("50\ndisk full"), "{message}");
}

#[tokio::test]
async fn signal_fails_shard() {
    assert_eq!(Stage::with("kill -9 $$", "").failure().await, "sh was killed by signal 9");
}

#[tokio::test]
async fn script_that_cannot_start_fails_with_reason() {
    for (line, reason) in [
        ("/no/such/program", "cannot start /no/such/program: No such file"),
        ("sh 'x", "a quote is not closed"),
        (" ", "script.command.line is missing"),
    ] {
        let job = fixture::job(&[("script.command.line", line)]);

        let failure = fixture::run(&crate::script_work(), &job, 0).await.unwrap_err();

        assert!(failure.to_string().contains(reason), "{failure}");
    }
}

#[tokio::test]
async fn output_is_split_into_lines_even_if_not_utf8() {
    let mut stage = Stage::with(r"printf 'caf\351\nlast'; printf 'oh\n' >&2", "");
    let run = stage.handler.run(stage.shard()).await;
    assert_eq!(run, Ok(()));

    let mut printed = Vec::new();
    while let Ok(line) = stage.lines.try_recv() {
        printed.push(line);
    }
    printed.sort_by_key(|(stream, _)| *stream == Stream::Stderr);

    let line = |stream, text: &str| (stream, text.to_owned());
    assert_eq!(
        printed,
        [
            line(Stream::Stdout, "caf\u{fffd}"),
            line(Stream::Stdout, "last"),
            line(Stream::Stderr, "oh")
        ]
    );
}

/// Starts a process tree: a parent and a child that ignore SIGTERM, a grandchild, one process that left the group, and one that also left
/// its parents.
pub(crate) const FAMILY: &str = r#"
trap '' TERM
echo $$
sh -c 'trap "" TERM; echo $$; sleep 1000 & echo $!; wait' &
setsid sh -c 'trap "" TERM; echo $$; sleep 1000' &
(setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' &)
wait
sleep 1000
"#;

impl Stage {
    pub(crate) async fn family(&mut self, run: &mut (impl Future + Unpin)) -> Vec<Process> {
        let mut family = Vec::new();
        while family.len() < 5 {
            tokio::select! {
                line = self.line() => family.push(Process::numbered(&line)),
                _ = &mut *run => panic!("the script ended early"),
            }
        }
        family
    }
}

pub(crate) fn survivors(family: &[Process]) -> Vec<Pid> {
    family
        .iter()
        .filter(|process| !process.ends_within(PATIENCE))
        .map(|process| process.0)
        .collect()
}

#[tokio::test]
async fn cancel_kills_all_processes() {
    let mut stage = Stage::with(FAMILY, "");
    let shard = stage.shard();
    let cancel = shard.cancel().clone();
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(shard));
    let family = stage.family(&mut run).await;

    cancel.cancel(CancelReason::LeaseLost);
    let failure = tokio::time::timeout(PATIENCE, run).await.expect("the script ends").unwrap_err();

    assert_eq!(failure.to_string(), "sh was stopped: the lease was lost");
    assert_eq!(survivors(&family), []);
}

#[tokio::test]
async fn dropping_the_run_kills_all_processes() {
    let mut stage = Stage::with(FAMILY, "");
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(stage.shard()));
    let family = stage.family(&mut run).await;

    drop(run);

    assert_eq!(survivors(&family), []);
}

#[tokio::test]
async fn timeout_kills_all_processes() {
    let mut stage = Stage::with("echo $$; sleep 1000 & echo $!; wait", "");
    let (handler, shard) = (Arc::clone(&stage.handler), stage.shard());

    let (rules, around) = (fixture::rules(Duration::from_millis(300)), fixture::around());
    let guard = Guard::none();
    let run = attempt(&*handler, shard, &guard, &rules, &around);
    let family =
        async { [Process::numbered(&stage.line().await), Process::numbered(&stage.line().await)] };
    let (result, family) = tokio::join!(run, family);

    assert_eq!((result.outcome, result.attempts), (Outcome::TimedOut, 1));
    assert_eq!(result.message.as_deref(), Some("took longer than 300ms"));
    assert_eq!(survivors(&family), []);
}

#[tokio::test]
async fn script_can_clean_up_on_sigterm() {
    let mut stage = Stage::with(
        "trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        "",
    );
    let shard = stage.shard();
    let cancel = shard.cancel().clone();
    let handler = Arc::clone(&stage.handler);
    let mut run = Box::pin(handler.run(shard));
    tokio::select! {
        line = stage.line() => assert_eq!(line, "ready"),
        _ = &mut run => panic!("the script ended early"),
    }

    cancel.cancel(CancelReason::Requested);
    run.await.unwrap_err();

    // The shell prints a message about the signal, too.
    while stage.line().await != "tidied" {}
}

#[tokio::test]
async fn script_with_closed_output_can_clean_up_on_sigterm() {
    let mut stage = Stage::with(
        "trap 'touch \"$1\"; exit 0' TERM; echo ready; exec >&- 2>&-; while :; do sleep 0.01; done",
        "",
    );
    let (script, tidied) =
        (stage.folder.path().join("script.sh"), stage.folder.path().join("tidied"));
    let line = format!("sh {} {}", script.display(), tidied.display());
    stage.job = fixture::job(&[("script.command.line", &line)]);
    let (sender, lines) = mpsc::unbounded_channel();
    stage.lines = lines;
    let setting =
        RunSettings { output: Arc::new(LineCollector(sender)), ..RunSettings::of(&stage.job) };
    let handler = fixture::handler(&crate::script_work(), &setting);
    let shard = stage.shard();
    let cancel = shard.cancel().clone();
    let mut run = Box::pin(handler.run(shard));
    tokio::select! {
        line = stage.line() => assert_eq!(line, "ready"),
        _ = &mut run => panic!("the script ended early"),
    }

    cancel.cancel(CancelReason::Requested);
    let failure = tokio::time::timeout(PATIENCE, run).await.expect("the script ends").unwrap_err();

    assert_eq!(failure.to_string(), "sh was stopped: on request");
    assert!(tidied.exists());
}

#[tokio::test]
async fn script_ends_when_its_output_is_closed() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut stage = Stage::with("(read line < \"$1\"; echo \"$line\") & exit 0", "");
    let pipe = stage.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let line = format!("sh {} {}", stage.folder.path().join("script.sh").display(), pipe.display());
    stage.job = fixture::job(&[("script.command.line", &line)]);
    let handler = fixture::handler(&crate::script_work(), &RunSettings::of(&stage.job));

    let run = async {
        handler.run(stage.shard()).await.unwrap();
        order.lock().unwrap().push("ended");
    };
    let release = async {
        // Opening a pipe blocks until the other end is open, so the background child has started.
        let pipe = tokio::task::spawn_blocking(move || {
            fs::OpenOptions::new().write(true).open(pipe).unwrap()
        });
        let pipe = pipe.await.unwrap();
        order.lock().unwrap().push("released");
        drop(pipe);
    };
    tokio::join!(run, release);

    assert_eq!(*order.lock().unwrap(), ["released", "ended"]);
}

#[test]
fn program_of_script_is_available_for_access_checks() {
    let job = fixture::job(&[("script.command.line", "/opt/jobs/backup.sh -v")]);

    assert_eq!(Script::of(&job).unwrap().program().to_str(), Some("/opt/jobs/backup.sh"));
}
