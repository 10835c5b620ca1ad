//! Runs the binary as a process.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{ExitStatus, Stdio},
};

use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStdout, Command},
};

use super::within_timeout;

/// A running `tinykeeper`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: NamedTempFile,
    pub(crate) ready: String,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Starts the binary on a free port and waits for its ready line.
    pub(crate) async fn start(options: &[&str]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        let mut child = spawn(&[&["--listen", "127.0.0.1:0"], options].concat(), &stderr);
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut ready = String::new();
        within_timeout(stdout.read_line(&mut ready)).await.unwrap();
        let address = ready
            .split_whitespace()
            .find_map(|word| word.trim_end_matches(',').parse().ok())
            .unwrap_or_else(|| panic!("not ready: {ready:?}; {}", read(&stderr)));
        Self { child, stdout, stderr, ready, address }
    }

    /// Starts the binary with its data in `dir`.
    pub(crate) async fn start_in(dir: &Path, options: &[&str]) -> Self {
        let dir = dir.to_str().expect("a UTF-8 path");
        Self::start(&[&["--data", dir], options].concat()).await
    }

    /// Sends SIGKILL and waits for the exit.
    pub(crate) async fn kill(mut self) {
        within_timeout(self.child.kill()).await.unwrap();
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let pid = self.pid().to_string();
        let sent =
            within_timeout(Command::new("kill").args(["-TERM", &pid]).status()).await.unwrap();
        assert!(sent.success());
    }

    /// Waits for the exit; returns the status and the stdout since the ready line.
    pub(crate) async fn wait(&mut self) -> (ExitStatus, String) {
        let status = within_timeout(self.child.wait()).await.unwrap();
        let mut rest = String::new();
        within_timeout(self.stdout.read_to_string(&mut rest)).await.unwrap();
        (status, rest)
    }

    /// The stderr so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Peak resident memory, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }
}

/// Runs a binary that must not start; returns its status, stdout and stderr.
pub(crate) async fn run_refused(options: &[&str]) -> (ExitStatus, String, String) {
    let stderr = NamedTempFile::new().unwrap();
    let mut child = spawn(options, &stderr);
    let mut stdout = String::new();
    within_timeout(child.stdout.take().unwrap().read_to_string(&mut stdout)).await.unwrap();
    let status = within_timeout(child.wait()).await.unwrap();
    (status, stdout, read(&stderr))
}

fn spawn(options: &[&str], stderr: &NamedTempFile) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tinykeeper"))
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::options().append(true).open(stderr.path()).unwrap())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts")
}

fn read(stderr: &NamedTempFile) -> String {
    fs::read_to_string(stderr.path()).unwrap()
}
