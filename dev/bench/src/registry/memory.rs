//! Memory of a server that holds many nodes.

use super::{
    pipeline::{check_children, create, paths, windowed},
    server_under_test::ServerUnderTest,
    workload::connect,
};
use crate::{BoxError, process::resident};

pub(super) const NODES: usize = 100_000;
const WINDOW: usize = 256;
/// Children of one node; a list of many more would not fit into an answer.
const CHILDREN: usize = 10_000;

/// Resident memory, in megabytes of a million bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    pub(super) empty: f64,
    pub(super) full: f64,
}

/// Measures a server that was just started, before and after filling it.
pub(super) async fn measure(server: &ServerUnderTest) -> Result<Resident, BoxError> {
    let empty = resident(server.pid())?;
    let client = connect(server.address()).await?;
    for number in 0..NODES / CHILDREN {
        let parent = format!("/memory-{number}");
        let paths = paths(&client, &parent, CHILDREN).await?;
        windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
        check_children(&client, &parent, CHILDREN).await?;
    }
    let full = resident(server.pid())?;
    client.close().await;
    Ok(Resident { empty, full })
}
