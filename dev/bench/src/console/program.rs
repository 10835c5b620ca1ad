//! The program that is measured.

use std::{
    fs::{self, File},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use elasticjob::history::HistoryUrl;
use tempfile::TempDir;

use crate::{BoxError, registry::beside_us, stopwatch::Stopwatch};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// `elasticjob console`; dropping it kills it.
pub(super) struct Console {
    child: Child,
    pub(super) address: String,
    pub(super) password: String,
    // After the child, who writes there.
    _folder: TempDir,
}

impl Console {
    pub(super) fn start(registry: &str, history: &HistoryUrl) -> Result<Self, BoxError> {
        let program = beside_us("elasticjob", "elasticjob-console")?;
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
            let said = fs::read_to_string(&log)?;
            let word = |before: &str| {
                let rest = said.split_once(before)?.1;
                Some(rest.split_whitespace().next()?.trim_end_matches('/').to_owned())
            };
            if let (Some(password), Some(address)) = (word("admin / "), word("console   http://")) {
                (console.password, console.address) = (password, address);
                return Ok(console);
            }
            if stopwatch.elapsed() > PATIENCE || console.child.try_wait()?.is_some() {
                return Err(format!("the console did not start: {said}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // It has ended by itself at worst.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
