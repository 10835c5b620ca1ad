//! The binary, as a process.

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

use super::soon;

/// A running `tinykeeper`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: NamedTempFile,
    pub(crate) ready: String,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Starts one on a free port and waits until it says that it is ready.
    pub(crate) async fn start(options: &[&str]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        let mut child = spawn(&[&["--listen", "127.0.0.1:0"], options].concat(), &stderr);
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut ready = String::new();
        soon(stdout.read_line(&mut ready)).await.unwrap();
        let address = ready
            .split_whitespace()
            .find_map(|word| word.trim_end_matches(',').parse().ok())
            .unwrap_or_else(|| panic!("not ready: {ready:?}; {}", said(&stderr)));
        Self { child, stdout, stderr, ready, address }
    }

    /// Starts one that keeps its data in `folder`.
    pub(crate) async fn start_in(folder: &Path, options: &[&str]) -> Self {
        let folder = folder.to_str().expect("a folder of ours");
        Self::start(&[&["--data", folder], options].concat()).await
    }

    /// SIGKILL, and wait for the end.
    pub(crate) async fn kill(mut self) {
        soon(self.child.kill()).await.unwrap();
    }

    /// SIGTERM.
    pub(crate) async fn terminate(&self) {
        let pid = self.pid().to_string();
        let sent = soon(Command::new("kill").args(["-TERM", &pid]).status()).await.unwrap();
        assert!(sent.success());
    }

    /// Waits for the end: how it went, and what was on stdout since it was ready.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, String) {
        let status = soon(self.child.wait()).await.unwrap();
        let mut rest = String::new();
        soon(self.stdout.read_to_string(&mut rest)).await.unwrap();
        (status, rest)
    }

    /// What it said on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        said(&self.stderr)
    }

    /// The most memory it ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }
}

/// Runs one that must not start: how it ended, its stdout and its stderr.
pub(crate) async fn refused(options: &[&str]) -> (ExitStatus, String, String) {
    let stderr = NamedTempFile::new().unwrap();
    let mut child = spawn(options, &stderr);
    let mut stdout = String::new();
    soon(child.stdout.take().unwrap().read_to_string(&mut stdout)).await.unwrap();
    let status = soon(child.wait()).await.unwrap();
    (status, stdout, said(&stderr))
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

fn said(stderr: &NamedTempFile) -> String {
    fs::read_to_string(stderr.path()).unwrap()
}
