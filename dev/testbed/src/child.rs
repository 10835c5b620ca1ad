//! A child process that does not outlive this process.
//!
//! The child runs under a small shell, its keeper, which reads commands from a pipe. A command is the name of a signal to send to the child. The pipe
//! closes when the [`Child`] is dropped and when this process ends: at the end of `main` with the child in a static, or killed without a chance to
//! clean up. The keeper then kills the child and removes its folder. Only the keeper signals the child, and only while the pid belongs to its own
//! child: if the child exits by itself, the shell may already have waited for it, and its pid may belong to another process.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::Duration;

use crate::poll;

/// How long the threads of a child may take to stop after SIGSTOP.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(30);

/// Ignores the signals of ctrl-C and of a closing terminal: the keeper has to stay until the pipe closes.
const KEEPER: &str = r#"
trap '' HUP INT QUIT TERM PIPE
signal() {
    if read -r _ _ _ parent _ <"/proc/$pid/stat" && [ "$parent" != "$$" ]; then
        return
    fi
    kill -s "$1" "$pid"
}
folder=$1
shift
"$@" </dev/null >"$folder/log" 2>&1 &
pid=$!
echo "$pid"
while read -r command; do
    signal "$command"
    if [ "$command" = KILL ]; then
        wait "$pid"
        echo "$command"
        exit
    fi
    echo "$command"
done
signal KILL
wait "$pid"
rm -rf -- "$folder"
"#;

/// A running child. Dropping it kills it and removes its folder.
pub(crate) struct Child {
    keeper: process::Child,
    answers: BufReader<process::ChildStdout>,
    pid: u32,
}

impl Child {
    /// Starts `command`. Its output goes to the file `log` in `folder`.
    pub(crate) fn start(command: &[OsString], folder: &Path) -> Self {
        // The output of an earlier child must not be taken for that of this one.
        let _ = fs::remove_file(folder.join("log"));
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("/bin/sh starts");
        let stdout = keeper.stdout.take().expect("stdout is piped");
        let mut answers = BufReader::new(stdout);
        let pid = answer(&mut answers)
            .ok()
            .and_then(|line| line.parse().ok())
            .expect("the keeper prints the pid of the child");

        Self { keeper, answers, pid }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the child has exited by itself. Always `false` on a system without `/proc`.
    pub(crate) fn has_exited(&self) -> bool {
        match state(&self.proc()) {
            Some(state) => state == 'Z', // A zombie.
            None => Path::new("/proc/self").exists(),
        }
    }

    /// Suspends all threads (SIGSTOP) and waits until none of them runs.
    pub(crate) fn freeze(&mut self) {
        self.signal("STOP");
        // One of the threads has to receive the signal, and it may take a while until that thread is scheduled.
        let stopped = poll::until(FREEZE_TIMEOUT, || self.has_stopped().then_some(()));
        stopped.unwrap_or_else(|| panic!("process {} does not stop", self.pid));
    }

    /// Resumes all threads (SIGCONT).
    pub(crate) fn thaw(&mut self) {
        self.signal("CONT");
    }

    /// Sends SIGINT, as ctrl-C does. Does nothing if the child has exited already.
    pub(crate) fn interrupt(&mut self) {
        self.signal("INT");
    }

    /// Kills the child and waits for its exit. Its folder stays.
    pub(crate) fn kill(mut self) {
        self.signal("KILL");
    }

    /// Has the keeper send the signal called `name`, and waits until it is sent.
    fn signal(&mut self, name: &str) {
        let commands = self.keeper.stdin.as_mut().expect("stdin is piped");
        writeln!(commands, "{name}")
            .and_then(|()| answer(&mut self.answers))
            .unwrap_or_else(|error| panic!("cannot send {name} to process {}: {error}", self.pid));
    }

    fn has_stopped(&self) -> bool {
        let threads = fs::read_dir(self.proc().join("task")).into_iter().flatten().flatten();
        threads.filter_map(|thread| state(&thread.path())).all(|state| state == 'T')
    }

    fn proc(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.pid))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // `wait` closes the pipe first, which makes the keeper clean up.
        let _ = self.keeper.wait();
    }
}

/// The state of a process or thread, which follows its name in `stat`: `4711 (java) S …`.
fn state(proc: &Path) -> Option<char> {
    let stat = fs::read_to_string(proc.join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn answer(answers: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if answers.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn sleep_command() -> [OsString; 2] {
        ["sleep".into(), "1000".into()]
    }

    fn is_running(pid: u32) -> bool {
        Command::new("kill")
            .args(["-0", &pid.to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    #[test]
    fn dropped_child_is_killed_and_its_folder_removed() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&sleep_command(), folder.path());
        let pid = child.pid();
        assert!(is_running(pid));

        drop(child);

        assert!(!is_running(pid));
        assert!(!folder.path().exists());
    }

    #[test]
    fn killed_child_leaves_its_folder() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&sleep_command(), folder.path());
        let pid = child.pid();

        child.kill();

        assert!(!is_running(pid));
        assert!(folder.path().exists());
    }

    #[test]
    fn frozen_child_can_be_killed() {
        let folder = TempDir::new().unwrap();
        let mut child = Child::start(&sleep_command(), folder.path());
        let pid = child.pid();
        child.freeze();

        child.kill();

        assert!(!is_running(pid));
    }

    #[test]
    fn exit_of_a_child_is_noticed() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&["no-such-program".into()], folder.path());

        let ended = poll::until(TIMEOUT, || child.has_exited().then_some(()));

        assert!(ended.is_some());
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(log.contains("no-such-program"), "{log}");
    }

    /// This test starts itself as a second process, which sees the environment variable and holds a child until it is killed.
    #[test]
    fn child_does_not_outlive_a_killed_parent() {
        const NAME: &str = "child::tests::child_does_not_outlive_a_killed_parent";
        const HOLD_VARIABLE: &str = "TESTBED_HOLDS_A_CHILD_IN";
        if let Some(folder) = env::var_os(HOLD_VARIABLE).map(PathBuf::from) {
            let child = Child::start(&sleep_command(), &folder.join("child"));
            fs::write(folder.join("pid.new"), child.pid().to_string()).unwrap();
            fs::rename(folder.join("pid.new"), folder.join("pid")).unwrap();
            loop {
                thread::park();
            }
        }
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("child")).unwrap();
        let mut holder = Command::new(env::current_exe().unwrap())
            .args(["--exact", NAME])
            .env(HOLD_VARIABLE, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = poll::until(TIMEOUT, || fs::read_to_string(folder.path().join("pid")).ok());
        let pid: u32 = pid.expect("the holder writes the pid of its child").parse().unwrap();
        assert!(is_running(pid));

        holder.kill().unwrap();
        holder.wait().unwrap();

        assert!(poll::until(TIMEOUT, || (!is_running(pid)).then_some(())).is_some());
        let child_folder = folder.path().join("child");
        assert!(poll::until(TIMEOUT, || (!child_folder.exists()).then_some(())).is_some());
    }
}
