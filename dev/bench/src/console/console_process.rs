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
pub(crate) struct ConsoleProcess {
    child: Child,
    pub(crate) address: String,
    pub(crate) password: String,
    // Declared after the child, which writes there.
    _folder: TempDir,
}

impl ConsoleProcess {
    pub(crate) fn start(registry: &str, history: &HistoryUrl) -> Result<Self, BoxError> {
        let program = sibling_program("elasticjob", "elasticjob-cli")?;
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
            if let Some(url) = value(&output, "console") {
                let password = generated_password(&output);
                let password = password.ok_or("the console printed no account")?;
                password.clone_into(&mut console.password);
                let address = url.trim_start_matches("http://").trim_end_matches('/');
                address.clone_into(&mut console.address);
                return Ok(console);
            }
            if stopwatch.elapsed() > TIMEOUT || console.child.try_wait()?.is_some() {
                return Err(format!("the console did not start: {output}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
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

/// The password of `account   NAME / PASSWORD  (a note)`, which is printed before the line of the console.
fn generated_password(output: &str) -> Option<&str> {
    let (_, password) = value(output, "account")?.split_once('/')?;
    password.split_whitespace().next()
}

/// The rest of the first complete line that begins with the word `label`.
fn value<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    let lines = output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut values = lines.filter_map(|line| line.split_once(char::is_whitespace));
    values.find(|(word, _)| *word == label).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_and_address_are_found_in_complete_lines() {
        let output = "data      /tmp/x  (accounts)\naccount   admin / s3cret  (a note)\nconsole   http://127.0.0.1:7/\n";

        assert_eq!(generated_password(output), Some("s3cret"));
        assert_eq!(value(output, "console"), Some("http://127.0.0.1:7/"));
        assert_eq!(value(output.trim_end(), "console"), None);
    }
}
