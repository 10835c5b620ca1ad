//! What somebody feels: a real Chromium, driven by the script beside the pages.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tokio::task::spawn_blocking;

use super::program::Console;
use crate::{BoxError, statistics::median};

const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/elasticjob-console/web");
/// What the script ends with when there is no browser.
const NO_BROWSER: i32 = 3;

/// In milliseconds.
pub(super) struct Felt {
    /// From the address to rows and a search that works, load by load.
    pub(super) ready: Vec<f64>,
    /// From a key to other rows.
    pub(super) keys: Vec<f64>,
    /// For how long nothing could be done at the worst.
    pub(super) longest_task: f64,
}

impl Felt {
    pub(super) fn median_ready(&self) -> f64 {
        median(self.ready.iter().copied())
    }

    pub(super) fn median_key(&self) -> f64 {
        median(self.keys.iter().copied())
    }
}

/// Loads the list so often; or says what is missing for that.
pub(super) async fn browse(
    console: &Console,
    loads: usize,
) -> Result<Result<Felt, String>, BoxError> {
    for (file, hint) in [
        ("dist/index.html", "make web"),
        ("node_modules/@playwright/test/package.json", "make web"),
    ] {
        if !Path::new(WEB).join(file).is_file() {
            return Ok(Err(format!(
                "there is no web/{file}; hint: {hint}, then build elasticjob again"
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
            return Ok(Err(format!(
                "node cannot be started: {error}; hint: install Node 20 or newer"
            )));
        }
    };
    match output.status.code() {
        Some(0) => {}
        Some(NO_BROWSER) => {
            let hint = "scripts/install-chromium.sh, or CHROMIUM=/path/to/one";
            return Ok(Err(format!("there is no Chromium; hint: {hint}")));
        }
        _ => return Err("the browser did not see the list; what it said is above".into()),
    }
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let times = |key: &str| -> Vec<f64> {
        told[key].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
    };
    let felt = Felt {
        ready: times("readyMs"),
        keys: times("keysMs"),
        longest_task: told["longestTaskMs"].as_f64().unwrap_or_default(),
    };
    Ok(Ok(felt))
}
