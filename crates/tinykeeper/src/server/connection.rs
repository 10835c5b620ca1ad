//! One connection: reads requests and passes them to the core, takes replies from the outbox and writes them.
//!
//! While the peer does not accept output, its requests are not read: a client that only sends is slowed down instead of
//! filling memory with replies. Requests are not read either while the [`RequestBudget`] has no room for those that were read
//! before; output is still sent then, because processed requests make room. The task ends, and tells the core, when the peer closes the connection, sends invalid data, or
//! is aborted. It ends by itself when the core drops its outbox and everything queued there is sent.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
    time::{Instant, interval, timeout},
};

use super::{
    admission::{LimitReached, WORD_TIMEOUT},
    budget::{RequestBudget, RequestPermit},
    client_warnings::ClientWarnings,
    clock,
    config::Config,
    core::{ConnectionId, Inbound},
    four_letter,
    outbox::{self, NextOutput, OutboxReceiver, QueuedTotal},
};
use crate::wire::{ConnectRequest, DecodeError, Reader, Request, RequestHeader, frame};

/// Bytes to request from the socket at once. A client that pipelines has many requests waiting there.
const READ_CHUNK: usize = 16 << 10;
/// Largest first frame: it has a session id and a password of 16 bytes.
const MAX_HANDSHAKE: usize = 4 << 10;
/// Memory of a request that waits, beyond its bytes.
const REQUEST_OVERHEAD: usize = 128;
/// Unread bytes up to which a connection that waits for room tells that more have arrived.
const PEEK: usize = 4 << 10;

/// Why a connection ended, for the log.
#[derive(Debug, thiserror::Error)]
enum CloseReason {
    #[error("closed by the peer")]
    PeerClosed,
    #[error("closed by the server")]
    ServerClosed,
    #[error("no complete handshake in time")]
    HandshakeTimeout,
    #[error("the peer does not read its replies")]
    WriteTimeout,
    #[error("aborted: too many unread bytes, or its session moved or ended")]
    Aborted,
    #[error("refused: {0}")]
    Refused(LimitReached),
    #[error(transparent)]
    TooLarge(#[from] frame::FrameTooLarge),
    #[error("invalid data: {0}")]
    InvalidData(#[from] DecodeError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct ConnectionContext {
    pub(super) core: mpsc::Sender<Inbound>,
    pub(super) queued_total: QueuedTotal,
    pub(super) config: Arc<Config>,
    pub(super) warnings: ClientWarnings,
}

/// Serves one connection until it ends. With a limit, it may send a four-letter word only.
pub(super) async fn serve(
    id: ConnectionId,
    socket: TcpStream,
    peer: SocketAddr,
    limit: Option<LimitReached>,
    budget: RequestBudget,
    context: ConnectionContext,
) {
    let _ = socket.set_nodelay(true);
    let (reader, writer) = socket.into_split();
    let input = BytesMut::new();
    let mut connection = Connection { id, peer, limit, reader, writer, input, budget, context };
    let reason = match connection.run().await {
        Err(reason) => reason,
        Ok(never) => match never {},
    };
    let ConnectionContext { core, config, warnings, .. } = &connection.context;
    let warn = |kind| {
        if warnings.is_first(peer.ip(), kind) {
            tracing::warn!(%peer, %reason, "connection closed");
        }
    };
    match &reason {
        CloseReason::PeerClosed | CloseReason::ServerClosed | CloseReason::Io(_) => {
            tracing::debug!(%peer, %reason, "connection ended");
        }
        CloseReason::Aborted => tracing::info!(%peer, %reason, "connection closed"),
        CloseReason::Refused(limit) => limit.warn(peer, config, warnings),
        CloseReason::HandshakeTimeout => warn("no complete handshake in time"),
        CloseReason::WriteTimeout => warn("the peer does not read its replies"),
        CloseReason::TooLarge(_) => warn("frame outside the limit"),
        CloseReason::InvalidData(_) => warn("invalid data"),
    }
    let _ = core.send(Inbound::Disconnected { connection: id }).await;
}

struct Connection {
    id: ConnectionId,
    peer: SocketAddr,
    /// The limit because of which it may send a four-letter word only.
    limit: Option<LimitReached>,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    input: BytesMut,
    budget: RequestBudget,
    context: ConnectionContext,
}

impl Connection {
    async fn run(&mut self) -> Result<std::convert::Infallible, CloseReason> {
        let io_timeout = self.io_timeout();
        let core = self.context.core.clone();
        let first = tokio::select! {
            first = timeout(io_timeout, self.first_message()) => {
                first.map_err(|_| CloseReason::HandshakeTimeout)??
            }
            () = core.closed() => return Err(CloseReason::ServerClosed),
        };
        let connect = match first {
            FirstMessage::Command(command) => return Err(self.run_command(command).await),
            FirstMessage::Connect(frame) => match self.limit {
                Some(limit) => return Err(CloseReason::Refused(limit)),
                None => frame,
            },
        };
        let request = ConnectRequest::decode(&mut Reader::new(connect))?;
        let (outbox, mut receiver) =
            outbox::channel(self.context.config.max_outbox, &self.context.queued_total);
        let connect = Inbound::Connect { connection: self.id, peer: self.peer, request, outbox };
        self.context.core.send(connect).await.map_err(|_| CloseReason::ServerClosed)?;
        let mut output = Vec::new();
        loop {
            self.forward_requests(&mut output, &mut receiver).await?;
            tokio::select! {
                biased;
                next = receiver.next(&mut output) => self.handle_output(next, &mut output, &receiver).await?,
                read = read(&mut self.reader, &mut self.input) => read?,
            }
        }
    }

    /// Time limit for the handshake and for each write. The few slots for four-letter words must become free soon.
    fn io_timeout(&self) -> Duration {
        let io_timeout = self.context.config.io_timeout;
        if self.limit.is_some() { io_timeout.min(WORD_TIMEOUT) } else { io_timeout }
    }

    /// Closes the socket after everything was sent. A peer that requested the close hangs up first if it has the time; some
    /// clients treat a close by the server as an error.
    async fn close_gracefully(&mut self) {
        const LINGER: Duration = Duration::from_millis(200);
        let peer_close = async {
            let mut ignored = [0; 256];
            while self.reader.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
        };
        let _ = timeout(LINGER, peer_close).await;
        let _ = self.writer.shutdown().await;
    }

    /// Reads the first four bytes, which are either a four-letter command or the length of the first frame.
    async fn first_message(&mut self) -> Result<FirstMessage, CloseReason> {
        loop {
            if let Some(command) =
                self.input.first_chunk::<4>().and_then(|bytes| four_letter::Command::parse(bytes))
            {
                return Ok(FirstMessage::Command(command));
            }
            let limit = self.context.config.max_frame.min(MAX_HANDSHAKE);
            if let Some(frame) = frame::split(&mut self.input, limit)? {
                return Ok(FirstMessage::Connect(frame));
            }
            read(&mut self.reader, &mut self.input).await?;
        }
    }

    async fn run_command(&mut self, command: four_letter::Command) -> CloseReason {
        let (reply, response) = oneshot::channel();
        if self.context.core.send(Inbound::Command { command, reply }).await.is_err() {
            return CloseReason::ServerClosed;
        }
        let text = response.await.unwrap_or_default();
        match timeout(self.io_timeout(), self.writer.write_all(text.as_bytes())).await {
            Ok(Ok(())) => {
                let _ = self.writer.shutdown().await;
                CloseReason::ServerClosed
            }
            Ok(Err(error)) => CloseReason::Io(error),
            Err(_) => CloseReason::WriteTimeout,
        }
    }

    /// Passes every complete request that has arrived to the core, in one message, once the budget has room for it.
    async fn forward_requests(
        &mut self,
        output: &mut Vec<Bytes>,
        receiver: &mut OutboxReceiver,
    ) -> Result<(), CloseReason> {
        let mut requests = Vec::new();
        let mut bytes = 0;
        while let Some(frame) = frame::split(&mut self.input, self.context.config.max_frame)? {
            bytes += frame.len() + REQUEST_OVERHEAD;
            let mut reader = Reader::new(frame);
            let header = RequestHeader::decode(&mut reader)?;
            requests.push((header.xid, Request::decode(header.op, &mut reader)?));
        }
        if requests.is_empty() {
            return Ok(());
        }
        let arrived = clock::now();
        let permit = if let Some(permit) = self.budget.try_acquire(bytes) {
            permit
        } else {
            // The request keeps its session alive, although it is not processed yet.
            self.forward(Vec::new(), arrived, None).await?;
            self.wait_for_room(bytes, output, receiver).await?
        };
        self.forward(requests, arrived, Some(permit)).await
    }

    async fn forward(
        &self,
        requests: Vec<(i32, Request)>,
        arrived: Instant,
        permit: Option<RequestPermit>,
    ) -> Result<(), CloseReason> {
        let inbound = Inbound::Requests { connection: self.id, requests, arrived, permit };
        self.context.core.send(inbound).await.map_err(|_| CloseReason::ServerClosed)
    }

    /// Waits until the budget has room, and sends output meanwhile: earlier requests of this connection may be waiting until
    /// the peer has read its replies. The pings of the peer are not read, but they keep its session alive: how long it waits
    /// depends on other clients.
    async fn wait_for_room(
        &mut self,
        bytes: usize,
        output: &mut Vec<Bytes>,
        receiver: &mut OutboxReceiver,
    ) -> Result<RequestPermit, CloseReason> {
        let mut permit = pin!(self.budget.acquire(bytes));
        let mut look = interval(self.context.config.min_session_timeout / 3);
        let mut known = 0;
        loop {
            tokio::select! {
                biased;
                permit = &mut permit => return Ok(permit),
                next = receiver.next(output) => self.handle_output(next, output, receiver).await?,
                _ = look.tick() => {
                    let unread = self.unread_bytes().await?;
                    if unread > known || unread == PEEK {
                        self.forward(Vec::new(), clock::now(), None).await?;
                    }
                    known = unread;
                }
            }
        }
    }

    /// How many bytes of the peer have arrived and are not read, at most [`PEEK`].
    async fn unread_bytes(&mut self) -> Result<usize, CloseReason> {
        let mut unread = [0; PEEK];
        match timeout(Duration::ZERO, self.reader.peek(&mut unread)).await {
            Ok(Ok(0)) => Err(CloseReason::PeerClosed),
            Ok(Ok(count)) => Ok(count),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Ok(0),
        }
    }

    async fn handle_output(
        &mut self,
        next: NextOutput,
        output: &mut Vec<Bytes>,
        receiver: &OutboxReceiver,
    ) -> Result<(), CloseReason> {
        match next {
            NextOutput::Bytes => self.send(output, receiver).await,
            NextOutput::Aborted => Err(CloseReason::Aborted),
            NextOutput::Closed => {
                self.close_gracefully().await;
                Err(CloseReason::ServerClosed)
            }
        }
    }

    async fn send(
        &mut self,
        output: &mut Vec<Bytes>,
        receiver: &OutboxReceiver,
    ) -> Result<(), CloseReason> {
        let bytes = match output.as_slice() {
            [only] => only.clone(),
            several => several.concat().into(),
        };
        output.clear();
        tokio::select! {
            biased;
            written = timeout(self.io_timeout(), self.writer.write_all(&bytes)) => {
                written.map_err(|_| CloseReason::WriteTimeout)??;
            }
            () = receiver.wait_aborted() => return Err(CloseReason::Aborted),
        }
        if receiver.mark_sent(bytes.len()) {
            let drained = Inbound::OutboxDrained { connection: self.id };
            self.context.core.send(drained).await.map_err(|_| CloseReason::ServerClosed)?;
        }
        Ok(())
    }
}

/// Waits for more input. Cancel safe.
async fn read(from: &mut OwnedReadHalf, input: &mut BytesMut) -> Result<(), CloseReason> {
    input.reserve(READ_CHUNK);
    match from.read_buf(input).await? {
        0 => Err(CloseReason::PeerClosed),
        _ => Ok(()),
    }
}

enum FirstMessage {
    Command(four_letter::Command),
    Connect(Bytes),
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn pings_keep_a_session_alive_while_its_request_waits_for_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, peer) = listener.accept().await.unwrap();
        let (reader, writer) = socket.into_split();
        let (core, mut inbound) = mpsc::channel(16);
        let budget = RequestBudget::new();
        let used_up = budget.try_acquire(usize::MAX).expect("the budget is unused");
        let config = Config { min_session_timeout: Duration::from_millis(30), ..Config::default() };
        let queued_total = QueuedTotal::default();
        let (_outbox, mut receiver) = outbox::channel(config.max_outbox, &queued_total);
        let config = Arc::new(config);
        let warnings = ClientWarnings::default();
        let context = ConnectionContext { core, queued_total, config, warnings };
        let (id, limit, input) = (1, None, BytesMut::new());
        let mut connection = Connection { id, peer, limit, reader, writer, input, budget, context };

        let mut output = Vec::new();
        let waits = connection.wait_for_room(1, &mut output, &mut receiver);
        let pings = async {
            for _ in 0..3 {
                client.write_all(b"ping").await.unwrap();
                let Some(Inbound::Requests { requests, permit: None, .. }) = inbound.recv().await
                else {
                    panic!("a ping is told to the core");
                };
                assert!(requests.is_empty());
            }
            drop(used_up);
        };
        let (room, ()) = timeout(Duration::from_secs(30), async { tokio::join!(waits, pings) })
            .await
            .expect("pings are noticed");

        assert!(room.is_ok());
    }
}
