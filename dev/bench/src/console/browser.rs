//! Measures the pages in a real Chromium, driven by a script of the web folder.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tokio::task::spawn_blocking;

use super::console_process::ConsoleProcess;
use crate::{BoxError, statistics::median};

const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/elasticjob-console/web");
/// Exit code of the script if there is no browser.
const NO_BROWSER: i32 = 3;

/// Times in milliseconds.
pub(super) struct BrowserTimings {
    /// From opening the page to rows and a working search, for each load.
    pub(super) ready: Vec<f64>,
    /// From a key press to new rows.
    pub(super) keys: Vec<f64>,
    /// The longest time for which the page did not react.
    pub(super) longest_task: f64,
}

impl BrowserTimings {
    pub(super) fn median_ready(&self) -> f64 {
        median(self.ready.iter().copied())
    }

    pub(super) fn median_key(&self) -> f64 {
        median(self.keys.iter().copied())
    }
}

/// Loads the list `loads` times. Returns an inner error if something that the browser needs is missing.
pub(super) async fn browse(
    console: &ConsoleProcess,
    loads: usize,
) -> Result<Result<BrowserTimings, String>, BoxError> {
    for (file, hint) in [
        ("dist/index.html", "make web"),
        ("node_modules/@playwright/test/package.json", "make web"),
    ] {
        if !Path::new(WEB).join(file).is_file() {
            return Ok(Err(format!(
                "there is no web/{file}; hint: {hint}, then rebuild elasticjob"
            )));
        }
    }
    let mut command = Command::new("node");
    command.current_dir(WEB).args([
        "bench/jobs.mjs",
        &format!("http://{}", console.address),
        &console.password,
    ]);
    command.arg(loads.to_string()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = match spawn_blocking(move || command.output()).await? {
        Ok(output) => output,
        Err(error) => {
            return Ok(Err(format!("cannot start node: {error}; hint: install Node 20 or newer")));
        }
    };
    match output.status.code() {
        Some(0) => {}
        Some(NO_BROWSER) => {
            let hint = "scripts/install-chromium.sh, or CHROMIUM=/path/to/one";
            return Ok(Err(format!("there is no Chromium; hint: {hint}")));
        }
        _ => return Err("the browser did not show the list; its output is above".into()),
    }
    let results: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let times = |key: &str| -> Vec<f64> {
        results[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(serde_json::Value::as_f64)
            .collect()
    };
    let timings = BrowserTimings {
        ready: times("readyMs"),
        keys: times("keysMs"),
        longest_task: results["longestTaskMs"].as_f64().unwrap_or_default(),
    };
    Ok(Ok(timings))
}
