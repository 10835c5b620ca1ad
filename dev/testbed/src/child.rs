//! A child process that cannot outlive us.
//!
//! The child runs under a small shell, its keeper, which holds a pipe from us. An order on the pipe
//! is the name of a signal to send to the child; the end of the pipe means that we are gone: dropped,
//! at the end of `main` with the child in a static, or killed with no chance to clean up. The keeper
//! then kills the child and removes its folder. Nobody else signals the child, and the keeper only
//! while the pid is that of its own child: if the child ends by itself the shell may have waited for
//! it, and someone else have its pid.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::Duration;

use crate::poll;

/// How long the threads of a child may take to stop where they are.
const FREEZE: Duration = Duration::from_secs(30);

/// Ctrl-C and a closed terminal reach the keeper as well; it has to stay until the pipe ends.
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
while read -r order; do
    signal "$order"
    if [ "$order" = KILL ]; then
        wait "$pid"
        echo "$order"
        exit
    fi
    echo "$order"
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
    /// Starts `command`, which lives in `folder` and writes what it has to say to `log` there.
    pub(crate) fn start(command: &[OsString], folder: &Path) -> Self {
        // What an earlier one said must not be taken for a word of this one.
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
            .expect("the keeper says the child's pid");

        Self { keeper, answers, pid }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the child has ended by itself. Where there is no `/proc`, nobody can tell.
    pub(crate) fn has_ended(&self) -> bool {
        match state(&self.proc()) {
            Some(state) => state == 'Z', // It waits to be waited for.
            None => Path::new("/proc/self").exists(),
        }
    }

    /// Stops all threads where they are. On return none of them runs.
    pub(crate) fn freeze(&mut self) {
        self.signal("STOP");
        // The signal takes one thread to receive it, which may take a while to get its turn.
        let stopped = poll::until(FREEZE, || self.has_stopped().then_some(()));
        stopped.unwrap_or_else(|| panic!("{} does not stop", self.pid));
    }

    /// Lets all threads go on.
    pub(crate) fn thaw(&mut self) {
        self.signal("CONT");
    }

    /// Asks the child to end, as ctrl-C does. One that has ended already is left alone.
    pub(crate) fn interrupt(&mut self) {
        self.signal("INT");
    }

    /// Kills the child, waits for its end, and leaves its folder.
    pub(crate) fn kill(mut self) {
        self.signal("KILL");
    }

    /// Sends the signal called `name`, and returns when it is sent.
    fn signal(&mut self, name: &str) {
        let orders = self.keeper.stdin.as_mut().expect("stdin is piped");
        writeln!(orders, "{name}")
            .and_then(|()| answer(&mut self.answers))
            .unwrap_or_else(|error| panic!("cannot send {name} to {}: {error}", self.pid));
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
        // Closes the pipe first, which is the keeper's order to clean up.
        let _ = self.keeper.wait();
    }
}

/// The state of a process or a thread, which follows its name: `4711 (java) S …`.
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

    const PATIENCE: Duration = Duration::from_secs(30);

    fn sleeper() -> [OsString; 2] {
        ["sleep".into(), "1000".into()]
    }

    fn runs(pid: u32) -> bool {
        Command::new("kill")
            .args(["-0", &pid.to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    #[test]
    fn a_dropped_child_is_gone_with_its_folder() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&sleeper(), folder.path());
        let pid = child.pid();
        assert!(runs(pid));

        drop(child);

        assert!(!runs(pid));
        assert!(!folder.path().exists());
    }

    #[test]
    fn a_killed_child_leaves_its_folder() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&sleeper(), folder.path());
        let pid = child.pid();

        child.kill();

        assert!(!runs(pid));
        assert!(folder.path().exists());
    }

    #[test]
    fn a_frozen_child_can_be_killed() {
        let folder = TempDir::new().unwrap();
        let mut child = Child::start(&sleeper(), folder.path());
        let pid = child.pid();
        child.freeze();

        child.kill();

        assert!(!runs(pid));
    }

    #[test]
    fn a_child_that_ends_by_itself_is_seen_to_have_ended() {
        let folder = TempDir::new().unwrap();
        let child = Child::start(&["no-such-program".into()], folder.path());

        let ended = poll::until(PATIENCE, || child.has_ended().then_some(()));

        assert!(ended.is_some());
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(log.contains("no-such-program"), "{log}");
    }

    /// This test runs itself as a second process, which finds the variable set and holds a child
    /// until it is killed.
    #[test]
    fn a_child_does_not_outlive_a_process_that_is_killed() {
        const NAME: &str = "child::tests::a_child_does_not_outlive_a_process_that_is_killed";
        const HOLD: &str = "TESTBED_HOLDS_A_CHILD_IN";
        if let Some(folder) = env::var_os(HOLD).map(PathBuf::from) {
            let child = Child::start(&sleeper(), &folder.join("child"));
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
            .env(HOLD, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = poll::until(PATIENCE, || fs::read_to_string(folder.path().join("pid")).ok());
        let pid: u32 = pid.expect("the holder says its child's pid").parse().unwrap();
        assert!(runs(pid));

        holder.kill().unwrap();
        holder.wait().unwrap();

        assert!(poll::until(PATIENCE, || (!runs(pid)).then_some(())).is_some());
        let child_folder = folder.path().join("child");
        assert!(poll::until(PATIENCE, || (!child_folder.exists()).then_some(())).is_some());
    }
}
