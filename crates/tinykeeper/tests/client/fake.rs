//! A fake server that sends what the test tells it to.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tinykeeper::wire::{
    Code, ConnectRequest, ConnectResponse, EventKind, KeeperState, Reader, ReplyHeader, Request,
    RequestHeader, Response, WatcherEvent, frame, xid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::within_timeout;

/// The password every fake session has.
pub(crate) const PASSWORD: &[u8; 16] = b"sixteen secrets!";

pub(crate) struct FakeServer {
    listener: TcpListener,
}

impl FakeServer {
    pub(crate) async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Accepts the next connection.
    pub(crate) async fn accept(&self) -> FakeConnection {
        let (socket, _) = within_timeout(self.listener.accept()).await.unwrap();
        FakeConnection { socket, input: BytesMut::new() }
    }

    /// Accepts the next connection and grants it this session.
    pub(crate) async fn accept_session(&self, session: i64, timeout_ms: i32) -> FakeConnection {
        let mut peer = self.accept().await;
        peer.connect_request().await;
        peer.grant(session, timeout_ms).await;
        peer
    }
}

/// The server's end of a client's connection.
pub(crate) struct FakeConnection {
    socket: TcpStream,
    input: BytesMut,
}

impl FakeConnection {
    pub(crate) async fn connect_request(&mut self) -> ConnectRequest {
        let frame = self.frame().await.expect("the client sends a connect request");
        ConnectRequest::decode(&mut Reader::new(frame)).unwrap()
    }

    pub(crate) async fn grant(&mut self, session: i64, timeout_ms: i32) {
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms,
            session_id: session,
            password: Bytes::from_static(PASSWORD),
            read_only: Some(false),
        };
        self.send(|out| response.encode(out)).await;
    }

    pub(crate) async fn report_expired(&mut self) {
        self.send(|out| ConnectResponse::expired(Some(true)).encode(out)).await;
    }

    /// The next request, or `None` if the client closed the connection.
    pub(crate) async fn next_request(&mut self) -> Option<(i32, Request)> {
        let mut reader = Reader::new(self.frame().await?);
        let header = RequestHeader::decode(&mut reader).unwrap();
        Some((header.xid, Request::decode(header.op, &mut reader).unwrap()))
    }

    /// The next request that is not a ping; replies to pings.
    pub(crate) async fn next_request_except_ping(&mut self) -> (i32, Request) {
        loop {
            match self.next_request().await.expect("the client is connected") {
                (number, Request::Ping) => self.reply(number, &Response::Empty).await,
                other => return other,
            }
        }
    }

    pub(crate) async fn reply(&mut self, number: i32, response: &Response) {
        self.reply_at(number, 1, response).await;
    }

    pub(crate) async fn reply_at(&mut self, xid: i32, zxid: i64, response: &Response) {
        self.send(|out| {
            ReplyHeader { xid, zxid, code: Code::OK }.encode(out);
            response.encode(out);
        })
        .await;
    }

    pub(crate) async fn refuse(&mut self, xid: i32, code: Code) {
        self.send(|out| ReplyHeader { xid, zxid: 1, code }.encode(out)).await;
    }

    pub(crate) async fn notify(&mut self, kind: EventKind, path: &str) {
        let event =
            WatcherEvent { kind, state: KeeperState::SYNC_CONNECTED, path: path.to_owned() };
        self.send(|out| {
            ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.encode(out);
            event.encode(out);
        })
        .await;
    }

    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        // The client may have closed the connection already.
        let _ = self.socket.write_all(bytes).await;
    }

    async fn send(&mut self, body: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        frame::write(&mut out, body);
        self.socket.write_all(&out).await.unwrap();
    }

    async fn frame(&mut self) -> Option<Bytes> {
        within_timeout(async {
            loop {
                if let Some(frame) = frame::split(&mut self.input, 1 << 20).unwrap() {
                    return Some(frame);
                }
                // Closed or reset.
                if self.socket.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                    return None;
                }
            }
        })
        .await
    }
}
