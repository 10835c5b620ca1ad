//! One connection: bytes in, requests to the core; answers from the outbox, bytes out.
//!
//! While the peer does not take what we send we do not read what it asks: a client that only asks is slowed down, not served
//! into memory. The task ends, and tells the core, when the peer hangs up, talks nonsense or is cut; it ends by itself when the
//! core lets go of its outbox and everything in it is sent.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    clock,
    config::Config,
    core::{ConnectionId, Inbound},
    outbox::{Inbox, Taken, outbox},
    words,
};
use crate::wire::{ConnectRequest, DecodeError, Reader, Request, RequestHeader, frame};

/// How much to ask the socket for at once. A client that asks without waiting has many requests lying there.
const READ_CHUNK: usize = 16 << 10;

/// Why a connection ended, for the log.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("closed by the peer")]
    HungUp,
    #[error("closed by the server")]
    LetGo,
    #[error("did not say who it is in time")]
    Silent,
    #[error("does not read what it is sent")]
    Stuck,
    #[error("cut: it leaves too much unread, or its session moved or ended")]
    Cut,
    #[error(transparent)]
    TooLarge(#[from] frame::FrameTooLarge),
    #[error("sent garbage: {0}")]
    Garbage(#[from] DecodeError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Serves one connection until it ends.
pub(super) async fn serve(
    id: ConnectionId,
    socket: TcpStream,
    peer: SocketAddr,
    core: mpsc::Sender<Inbound>,
    config: Arc<Config>,
) {
    let _ = socket.set_nodelay(true);
    let (reading, writing) = socket.into_split();
    let mut connection =
        Connection { id, peer, reading, writing, unread: BytesMut::new(), core, config };
    let end = match connection.run().await {
        Err(end) => end,
        Ok(never) => match never {},
    };
    match end {
        End::HungUp | End::LetGo | End::Io(_) => {
            tracing::debug!(%peer, reason = %end, "connection ended");
        }
        End::Cut => tracing::info!(%peer, reason = %end, "connection closed"),
        End::Silent | End::Stuck | End::TooLarge(_) | End::Garbage(_) => {
            tracing::warn!(%peer, reason = %end, "connection closed");
        }
    }
    let _ = connection.core.send(Inbound::Gone { connection: id }).await;
}

struct Connection {
    id: ConnectionId,
    peer: SocketAddr,
    reading: OwnedReadHalf,
    writing: OwnedWriteHalf,
    unread: BytesMut,
    core: mpsc::Sender<Inbound>,
    config: Arc<Config>,
}

impl Connection {
    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let patience = self.config.patience;
        let core = self.core.clone();
        let first = tokio::select! {
            first = timeout(patience, self.introduction()) => first.map_err(|_| End::Silent)??,
            () = core.closed() => return Err(End::LetGo),
        };
        let hello = match first {
            Introduction::Word(word) => return Err(self.answer_word(word).await),
            Introduction::Hello(frame) => frame,
        };
        let request = ConnectRequest::decode(&mut Reader::new(hello))?;
        let (outbox, mut inbox) = outbox(self.config.max_outbox);
        let connect = Inbound::Connect { connection: self.id, peer: self.peer, request, outbox };
        self.core.send(connect).await.map_err(|_| End::LetGo)?;
        let mut outgoing = Vec::new();
        loop {
            self.forward().await?;
            tokio::select! {
                biased;
                taken = inbox.take(&mut outgoing) => match taken {
                    Taken::Some => self.send(&mut outgoing, &inbox).await?,
                    Taken::Cut => return Err(End::Cut),
                    Taken::Last => {
                        self.part().await;
                        return Err(End::LetGo);
                    }
                },
                read = read(&mut self.reading, &mut self.unread) => read?,
            }
        }
    }

    /// Everything is said. A peer that asked to part hangs up first, if we let it; its client would take our hanging up for an error.
    async fn part(&mut self) {
        const COURTESY: Duration = Duration::from_millis(200);
        let hang_up = async {
            let mut ignored = [0; 256];
            while self.reading.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
        };
        let _ = timeout(COURTESY, hang_up).await;
        let _ = self.writing.shutdown().await;
    }

    /// The first four bytes are either a word for people or the length of the first frame.
    async fn introduction(&mut self) -> Result<Introduction, End> {
        loop {
            if let Some(word) =
                self.unread.first_chunk::<4>().and_then(|bytes| words::Word::find(*bytes))
            {
                return Ok(Introduction::Word(word));
            }
            if let Some(frame) = frame::split(&mut self.unread, self.config.max_frame)? {
                return Ok(Introduction::Hello(frame));
            }
            read(&mut self.reading, &mut self.unread).await?;
        }
    }

    async fn answer_word(&mut self, word: words::Word) -> End {
        let (reply, answer) = oneshot::channel();
        if self.core.send(Inbound::Word { word, reply }).await.is_err() {
            return End::LetGo;
        }
        let text = answer.await.unwrap_or_default();
        match timeout(self.config.patience, self.writing.write_all(text.as_bytes())).await {
            Ok(Ok(())) => {
                let _ = self.writing.shutdown().await;
                End::LetGo
            }
            Ok(Err(error)) => End::Io(error),
            Err(_) => End::Stuck,
        }
    }

    /// Hands every whole request that has arrived to the core, in one go.
    async fn forward(&mut self) -> Result<(), End> {
        let mut requests = Vec::new();
        while let Some(frame) = frame::split(&mut self.unread, self.config.max_frame)? {
            let mut reader = Reader::new(frame);
            let header = RequestHeader::decode(&mut reader)?;
            requests.push((header.xid, Request::decode(header.op, &mut reader)?));
        }
        if requests.is_empty() {
            return Ok(());
        }
        let arrived = clock::now();
        let inbound = Inbound::Requests { connection: self.id, requests, arrived };
        self.core.send(inbound).await.map_err(|_| End::LetGo)
    }

    async fn send(&mut self, outgoing: &mut Vec<Bytes>, inbox: &Inbox) -> Result<(), End> {
        let bytes = match outgoing.as_slice() {
            [only] => only.clone(),
            several => several.concat().into(),
        };
        outgoing.clear();
        tokio::select! {
            biased;
            written = timeout(self.config.patience, self.writing.write_all(&bytes)) => {
                written.map_err(|_| End::Stuck)??;
            }
            () = inbox.until_cut() => return Err(End::Cut),
        }
        if inbox.sent(bytes.len()) {
            let caught_up = Inbound::CaughtUp { connection: self.id };
            self.core.send(caught_up).await.map_err(|_| End::LetGo)?;
        }
        Ok(())
    }
}

/// Waits for more. Cancel safe.
async fn read(from: &mut OwnedReadHalf, unread: &mut BytesMut) -> Result<(), End> {
    unread.reserve(READ_CHUNK);
    match from.read_buf(unread).await? {
        0 => Err(End::HungUp),
        _ => Ok(()),
    }
}

enum Introduction {
    Word(words::Word),
    Hello(Bytes),
}
