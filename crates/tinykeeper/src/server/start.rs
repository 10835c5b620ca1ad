//! Starts a server: recovers the tree from disk, then starts the core, then accepts connections.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{mpsc, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval_at},
};

use super::{
    admission::Admission,
    budget::RequestBudget,
    client_warnings::{ClientWarnings, REPORT_INTERVAL},
    clock,
    config::Config,
    connection::{self, ConnectionContext},
    core::Core,
    handle::{Server, ServerError},
    journal::Journal,
    outbox::QueuedTotal,
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
    let (stop, tasks) = run(listener, address, config, tree, journal, since_snapshot);
    // Ids derive from the clock, so another server must not start in the same millisecond.
    clock::next_millisecond().await;
    tracing::info!(%address, "listening");
    Ok(Server { address, stop, tasks })
}

/// Starts the core and the task that accepts connections.
fn run(
    listener: TcpListener,
    address: SocketAddr,
    config: Config,
    tree: Tree,
    journal: Option<Journal>,
    since_snapshot: u64,
) -> (watch::Sender<bool>, JoinSet<Result<(), store::Error>>) {
    let config = Arc::new(config);
    let (stop, stopped) = watch::channel(false);
    let (core, inbox) = mpsc::channel(CORE_QUEUE);
    let warnings = ClientWarnings::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(
        Core::new(Arc::clone(&config), address, tree, journal, since_snapshot, warnings.clone())
            .run(inbox, stopped.clone()),
    );
    let queued_total = QueuedTotal::default();
    tasks.spawn(accept(
        listener,
        ConnectionContext { core, queued_total, config, warnings },
        stopped,
    ));
    (stop, tasks)
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
    context: ConnectionContext,
    mut stop: watch::Receiver<bool>,
) -> Result<(), store::Error> {
    let ConnectionContext { core, config, warnings, .. } = context.clone();
    let mut connections = JoinSet::new();
    let budget = RequestBudget::new();
    let admission = Admission::new(&config);
    let mut reports = interval_at(clock::now() + REPORT_INTERVAL, REPORT_INTERVAL);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next = 0;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            () = core.closed() => break,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            _ = reports.tick() => {
                warnings.report();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                let (slot, limit) = match admission.admit(peer.ip()) {
                    Ok(admitted) => admitted,
                    Err(limit) => {
                        limit.warn(peer, &config, &warnings);
                        continue;
                    }
                };
                next += 1;
                let budget = budget.for_another_connection();
                let connection =
                    connection::serve(next, socket, peer, limit, budget, context.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Most likely there are no free file descriptors; other connections have to end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop((core, context));
    // The core has dropped all outboxes, so each connection ends once its last replies are sent.
    let finish = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(config.io_timeout, finish).await.is_err() {
        tracing::warn!("connections still open at shutdown were dropped");
    }
    warnings.report();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::{Bytes, BytesMut};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::{sleep, timeout},
    };

    use super::*;
    use crate::{
        server::journal::QueuedBatch,
        wire::{ConnectRequest, Op, Request, RequestHeader, frame, op},
    };

    const NODE: &str = "/zookeeper/quota";

    /// A server whose disk writes nothing.
    struct StuckServer {
        address: SocketAddr,
        disk: mpsc::Receiver<QueuedBatch>,
        _stop: watch::Sender<bool>,
        _tasks: JoinSet<Result<(), store::Error>>,
    }

    impl StuckServer {
        fn start() -> Self {
            let config = Config::in_memory();
            let listener = listen(config.listen).unwrap();
            let address = listener.local_addr().unwrap();
            let (journal, disk) = Journal::stuck();
            let (stop, tasks) = run(listener, address, config, Tree::new(), Some(journal), 0);
            Self { address, disk, _stop: stop, _tasks: tasks }
        }

        /// Completes every write to disk while `future` runs.
        async fn unblock<T>(&mut self, future: impl Future<Output = T>) -> T {
            let write = async {
                while let Some(batch) = self.disk.recv().await {
                    batch.deliver();
                }
            };
            tokio::select! {
                () = write => panic!("the server has stopped"),
                result = timeout(Duration::from_secs(30), future) => result.expect("completes"),
            }
        }
    }

    /// The bytes of a handshake and of these requests.
    fn encode(requests: impl Iterator<Item = (i32, Request)>) -> Bytes {
        let connect = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout_ms: 40_000,
            session_id: 0,
            password: Bytes::new(),
            read_only: None,
        };
        let mut bytes = BytesMut::new();
        frame::write(&mut bytes, |out| connect.encode(out));
        for (op, request) in requests {
            frame::write(&mut bytes, |out| {
                RequestHeader { xid: 1, op }.encode(out);
                request.encode(out);
            });
        }
        bytes.freeze()
    }

    /// Writes of 1 MB each.
    fn writes(count: usize) -> impl Iterator<Item = (i32, Request)> {
        let data = Some(vec![b'x'; 1_000_000].into());
        let write = Request::Write(Op::SetData { path: NODE.to_owned(), data, version: -1 });
        std::iter::repeat_n((op::SET_DATA, write), count)
    }

    fn reads(count: usize) -> impl Iterator<Item = (i32, Request)> {
        let read = Request::GetData { path: NODE.to_owned(), watch: false };
        std::iter::repeat_n((op::GET_DATA, read), count)
    }

    #[tokio::test]
    async fn writers_wait_while_the_disk_is_stuck() {
        const WRITERS: usize = 4;
        let mut server = StuckServer::start();
        let address = server.address;
        let bytes = encode(writes(64));
        let accepted = Arc::new(AtomicUsize::new(0));
        let mut writers = JoinSet::new();

        for _ in 0..WRITERS {
            let (bytes, accepted) = (bytes.clone(), Arc::clone(&accepted));
            writers.spawn(async move {
                let mut socket = TcpStream::connect(address).await.unwrap();
                for chunk in bytes.chunks(64 << 10) {
                    socket.write_all(chunk).await.unwrap();
                    accepted.fetch_add(chunk.len(), Ordering::Relaxed);
                }
                socket
            });
        }
        let mut before = usize::MAX;
        while before != accepted.load(Ordering::Relaxed) {
            before = accepted.load(Ordering::Relaxed);
            sleep(Duration::from_millis(500)).await;
        }

        // The kernel may buffer ten MiB for each connection. The rest is the server's.
        let mib = before >> 20;
        assert!(mib < 80, "the server accepted {mib} MiB");
        assert_eq!(server.unblock(writers.join_all()).await.len(), WRITERS);
    }

    #[tokio::test]
    async fn client_whose_requests_wait_for_the_budget_gets_its_replies() {
        const READS: usize = 20;
        const WRITES: usize = 16;
        let mut server = StuckServer::start();
        let socket = TcpStream::connect(server.address).await.unwrap();
        let (mut reader, mut writer) = socket.into_split();
        // More replies than one connection may have queued, then more requests than the budget allows.
        let bytes = encode(writes(1).chain(reads(READS)).chain(writes(WRITES)));
        let mut sending = JoinSet::new();
        sending.spawn(async move {
            writer.write_all(&bytes).await.unwrap();
            writer
        });
        sleep(Duration::from_millis(500)).await;

        let replies = server.unblock(async {
            let (mut replies, mut input) = (0, BytesMut::new());
            while replies < 1 + 1 + READS + WRITES {
                assert!(reader.read_buf(&mut input).await.unwrap() > 0, "{replies} replies");
                while frame::split(&mut input, 2 << 20).unwrap().is_some() {
                    replies += 1;
                }
            }
            replies
        });

        assert_eq!(replies.await, 1 + 1 + READS + WRITES);
        assert_eq!(sending.join_all().await.len(), 1);
    }
}
