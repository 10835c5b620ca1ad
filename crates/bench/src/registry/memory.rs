//! What a server takes to hold many nodes.

use std::fs;

use super::{
    contestant::Contestant,
    pipeline::{check_children, create, paths, windowed},
    row::connect,
};
use crate::BoxError;

pub(super) const NODES: usize = 100_000;
const WINDOW: usize = 256;
/// Nodes in one folder; a list of many more would not fit into an answer.
const FOLDER: usize = 10_000;

/// Resident, in megabytes of a million bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    pub(super) empty: f64,
    pub(super) full: f64,
}

/// Fills a server that was just started.
pub(super) async fn measure(contestant: &Contestant) -> Result<Resident, BoxError> {
    let empty = resident(contestant.pid())?;
    let client = connect(contestant.address()).await?;
    for folder in 0..NODES / FOLDER {
        let place = format!("/memory-{folder}");
        let paths = paths(&client, &place, FOLDER).await?;
        windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
        check_children(&client, &place, FOLDER).await?;
    }
    let full = resident(contestant.pid())?;
    client.close().await;
    Ok(Resident { empty, full })
}

fn resident(pid: u32) -> Result<f64, BoxError> {
    let file = format!("/proc/{pid}/status");
    let status =
        fs::read_to_string(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    Ok(resident_in(&status).ok_or_else(|| format!("no VmRSS in {file}"))?)
}

fn resident_in(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_kb_and_means_kibibytes() {
        let status = "Name:\ttinykeeper\nVmRSS:\t   10000 kB\nRssAnon:\t 1 kB\n";

        assert!((resident_in(status).unwrap() - 10.24).abs() < 1e-9);
        assert_eq!(resident_in("Name:\ttinykeeper\n"), None);
    }
}
