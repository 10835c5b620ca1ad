//! What a server takes to hold many nodes.

use super::{
    contestant::Contestant,
    pipeline::{check_children, create, paths, windowed},
    row::connect,
};
use crate::{BoxError, process::resident};

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
