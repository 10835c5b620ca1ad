//! The process under test: `elasticjob console`.

use std::{
    fs::{self, File},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use elasticjob::history::HistoryUrl;
use tempfile::TempDir;

use crate::{BoxError, registry::sibling_program, stopwatch::Stopwatch};

/// How long the console may take to start.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Dropping it kills the process.
pub(super) struct ConsoleProcess {
    child: Child,
    pub(super) address: String,
    pub(super) password: String,
    // Declared after the child, which writes there.
    _folder: TempDir,
}

impl ConsoleProcess {
    pub(super) fn start(registry: &str, history: &HistoryUrl) -> Result<Self, BoxError> {
        let program = sibling_program("elasticjob", "elasticjob-console")?;
        let folder = tempfile::Builder::new().prefix("bench-console-").tempdir()?;
        let log = folder.path().join("log");
        let child = Command::new(program)
            .args([
                "console",
                "--listen",
                "0",
                "--registry",
                registry,
                "--history",
                &history.to_string(),
                "--data",
            ])
            .arg(folder.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut console =
            Self { child, address: String::new(), password: String::new(), _folder: folder };
        let stopwatch = Stopwatch::start();
        loop {
            let output = fs::read_to_string(&log)?;
            let word_after = |before: &str| {
                let rest = output.split_once(before)?.1;
                Some(rest.split_whitespace().next()?.trim_end_matches('/').to_owned())
            };
            if let (Some(password), Some(address)) =
                (word_after("admin / "), word_after("console   http://"))
            {
                (console.password, console.address) = (password, address);
                return Ok(console);
            }
            if stopwatch.elapsed() > TIMEOUT || console.child.try_wait()?.is_some() {
                return Err(format!("the console did not start: {output}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ConsoleProcess {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
