//! A proxy in front of ZooKeeper that counts reads and writes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::BoxError;

/// The requests so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestCounts {
    pub(super) reads: u64,
    /// A transaction counts as one write.
    pub(super) writes: u64,
}

impl RequestCounts {
    pub(super) fn since(self, before: Self) -> Self {
        Self { reads: self.reads - before.reads, writes: self.writes - before.writes }
    }
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
}

/// Dropping the proxy closes its connections.
pub(super) struct CountingProxy {
    address: SocketAddr,
    counts: Arc<Counts>,
    _tasks: JoinSet<()>,
}

impl CountingProxy {
    pub(super) async fn start(server: SocketAddr) -> Result<Self, BoxError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, counts) = (listener.local_addr()?, Arc::new(Counts::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, Arc::clone(&counts)));
        Ok(Self { address, counts, _tasks: tasks })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn counts(&self) -> RequestCounts {
        let Counts { reads, writes } = &*self.counts;
        RequestCounts {
            reads: reads.load(Ordering::Relaxed),
            writes: writes.load(Ordering::Relaxed),
        }
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let counts = Arc::clone(&counts);
        connections.spawn(async move {
            // An error means that one end closed the connection.
            let _ = forward(client, server, &counts).await;
        });
    }
}

async fn forward(client: TcpStream, server: SocketAddr, counts: &Counts) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let (mut frames, mut buffer) = (FrameReader::default(), vec![0; 64 * 1024]);
        loop {
            let length = from_client.read(&mut buffer).await?;
            if length == 0 {
                return to_server.shutdown().await;
            }
            frames.feed(&buffer[..length], counts);
            to_server.write_all(&buffer[..length]).await?;
        }
    };
    let answers = async {
        io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(requests, answers).map(|_| ())
}

/// Size of the length, transaction id and type of a request.
const HEADER: usize = 12;

/// Finds the requests in the bytes that a client sends.
#[derive(Debug, Default)]
struct FrameReader {
    /// The part of the next request's header that has arrived.
    header: Vec<u8>,
    /// Remaining bytes of the current request.
    rest: usize,
    /// The first frame is the connect request, which does not count.
    is_connected: bool,
}

impl FrameReader {
    fn feed(&mut self, mut bytes: &[u8], counts: &Counts) {
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            (self.rest, bytes) = (self.rest - skipped, &bytes[skipped..]);
            let taken = (HEADER - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.header.len() == HEADER {
                let [length, kind] = [0, 8].map(|at| self.number(at));
                if self.is_connected {
                    count(kind, counts);
                }
                self.is_connected = true;
                self.rest = usize::try_from(length).unwrap_or_default().saturating_sub(HEADER - 4);
                self.header.clear();
            }
        }
    }

    fn number(&self, at: usize) -> i32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.header[at..at + 4]);
        i32::from_be_bytes(bytes)
    }
}

/// Pings and session closes do not count.
fn count(kind: i32, counts: &Counts) {
    match kind {
        11 | -11 => {}
        // create, delete, setData, setACL, multi, and the other variants of create and delete.
        1 | 2 | 5 | 7 | 14 | 15 | 19 | 20 | 21 => {
            counts.writes.fetch_add(1, Ordering::Relaxed);
        }
        _ => {
            counts.reads.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: i32, body: usize) -> Vec<u8> {
        let mut bytes = (8 + body as i32).to_be_bytes().to_vec();
        bytes.extend(1_i32.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(vec![7; body]);
        bytes
    }

    #[test]
    fn requests_are_counted_by_kind_for_any_chunk_size() {
        let connect = request(1, 30);
        let sent: Vec<u8> =
            [connect, request(4, 9), request(11, 0), request(14, 200), request(5, 3)].concat();

        for piece in [1, 5, 12, 13, 1_000] {
            let (mut frames, counts) = (FrameReader::default(), Counts::default());
            for bytes in sent.chunks(piece) {
                frames.feed(bytes, &counts);
            }

            assert_eq!(counts.reads.into_inner(), 1, "in pieces of {piece}");
            assert_eq!(counts.writes.into_inner(), 2, "in pieces of {piece}");
        }
    }
}
