//! Starts a server: recovers the tree from disk, then starts the core, then accepts connections.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    clock,
    config::Config,
    connection,
    core::{Core, Inbound},
    handle::{Server, ServerError},
    journal::Journal,
};
use crate::{
    store::{self, Store},
    tree::{Transaction, Tree},
};

/// Number of connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// Number of logs after which a start takes a snapshot.
const MAX_LOGS: u64 = 16;
/// Number of messages that may wait for the core before connections stop reading.
const CORE_QUEUE: usize = 1024;

pub(super) async fn start(config: Config) -> Result<Server, ServerError> {
    let listener = listen(config.listen)?;
    let address = listener.local_addr().map_err(ServerError::Internal)?;
    let (tree, journal, since_snapshot) = match config.data.clone() {
        None => (Tree::new(), None, 0),
        Some(dir) => {
            let options = store::Options { fsync: config.fsync, ..store::Options::default() };
            let opened = tokio::task::spawn_blocking(move || recover(&dir, options)).await;
            let (tree, store) = opened.map_err(|panic| ServerError::Internal(panic.into()))??;
            let backlog = store.since_snapshot();
            // Every start creates a log. A server that starts often and writes little must not collect logs without end.
            let is_snapshot_due = backlog.logs >= MAX_LOGS;
            let records = if is_snapshot_due { config.snapshot_every } else { backlog.records };
            (tree, Some(Journal::start(store).map_err(ServerError::Internal)?), records)
        }
    };
    let config = Arc::new(config);
    let (stop, stopped) = watch::channel(false);
    let (core, inbox) = mpsc::channel(CORE_QUEUE);
    let mut tasks = JoinSet::new();
    tasks.spawn(
        Core::new(Arc::clone(&config), address, tree, journal, since_snapshot)
            .run(inbox, stopped.clone()),
    );
    tasks.spawn(accept(listener, core, config, stopped));
    // Ids derive from the clock, so another server must not start in the same millisecond.
    clock::next_millisecond().await;
    tracing::info!(%address, "listening");
    Ok(Server { address, stop, tasks })
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let open = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    open().map_err(|source| ServerError::Listen { address, source })
}

fn recover(dir: &Path, options: store::Options) -> Result<(Tree, Store), ServerError> {
    let (store, recovered) = Store::open(dir, options)?;
    let mut tree = match recovered.snapshot {
        Some((zxid, bytes)) => {
            Tree::from_snapshot(bytes).map_err(|source| ServerError::Snapshot { zxid, source })?
        }
        None => Tree::new(),
    };
    for (zxid, bytes) in recovered.records {
        let replay = |reason: String| ServerError::Replay { zxid, reason };
        let transaction = Transaction::decode(bytes).map_err(|error| replay(error.to_string()))?;
        tree.replay(&transaction).map_err(|error| replay(error.to_string()))?;
    }
    Ok((tree, store))
}

async fn accept(
    listener: TcpListener,
    core: mpsc::Sender<Inbound>,
    config: Arc<Config>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), store::Error> {
    let mut connections = JoinSet::new();
    let mut next = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            () = core.closed() => break,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((_, peer)) if connections.len() >= config.max_connections => {
                tracing::warn!(%peer, max_connections = config.max_connections, "connection refused: too many connections");
            }
            Ok((socket, peer)) => {
                next += 1;
                connections.spawn(connection::serve(
                    next,
                    socket,
                    peer,
                    core.clone(),
                    Arc::clone(&config),
                ));
            }
            Err(error) => {
                // Most likely there are no free file descriptors; other connections have to end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(core);
    // The core has dropped all outboxes, so each connection ends once its last replies are sent.
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(config.io_timeout, finish).await.is_err() {
        tracing::warn!("connections still open at shutdown were dropped");
    }
    Ok(())
}
