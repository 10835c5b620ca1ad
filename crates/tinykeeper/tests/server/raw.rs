//! A client without logic of its own: it sends what the test says, and returns what arrives, in order.

use std::{collections::VecDeque, io, net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use tinykeeper::wire::{
    Acl, Code, ConnectRequest, ConnectResponse, Create, CreateMode, EventKind, Op, PASSWORD_LEN,
    Reader, ReplyHeader, Request, RequestHeader, Response, Stat, WatcherEvent, frame, xid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::within_timeout;

/// Far more than any response of these tests.
const FRAME_LIMIT: usize = 64 << 20;

pub(crate) struct RawClient {
    socket: TcpStream,
    unread: BytesMut,
    next_xid: i32,
    /// Number and operation of each request without a reply.
    pending: VecDeque<(i32, i32)>,
    /// Notifications that arrived while the client waited for a reply.
    events: VecDeque<Event>,
    pub(crate) session: i64,
    pub(crate) password: Bytes,
    pub(crate) timeout_ms: i32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Event(Event),
    Reply(Reply),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) zxid: i64,
    pub(crate) kind: EventKind,
    pub(crate) path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) result: Result<Response, Code>,
}

impl RawClient {
    /// Opens a connection without a handshake.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let socket = within_timeout(TcpStream::connect(address)).await.expect("the server listens");
        Self {
            socket,
            unread: BytesMut::new(),
            next_xid: 0,
            pending: VecDeque::new(),
            events: VecDeque::new(),
            session: 0,
            password: Bytes::new(),
            timeout_ms: 0,
        }
    }

    /// Opens a session with a timeout longer than the test.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::connect_for(address, Duration::from_secs(40)).await
    }

    /// Opens a session with this timeout, as far as the server grants it.
    pub(crate) async fn connect_for(address: SocketAddr, timeout: Duration) -> Self {
        let mut client = Self::open(address).await;
        client.handshake(&new_session_request(timeout)).await.expect("a session is granted");
        client
    }

    /// Resumes the session on a new connection; the old connection is not closed.
    pub(crate) async fn resume(&self, address: SocketAddr) -> Self {
        let mut client = Self::open(address).await;
        client.handshake(&self.resume_request()).await.expect("the server responds");
        client
    }

    /// The request that resumes this session.
    pub(crate) fn resume_request(&self) -> ConnectRequest {
        ConnectRequest {
            session_id: self.session,
            password: self.password.clone(),
            timeout_ms: self.timeout_ms,
            ..new_session_request(Duration::ZERO)
        }
    }

    /// Sends a connect request; `None` if the server closes the connection.
    pub(crate) async fn handshake(&mut self, request: &ConnectRequest) -> Option<ConnectResponse> {
        let mut out = BytesMut::new();
        frame::write(&mut out, |out| request.encode(out));
        self.send_bytes(&out).await;
        let frame = self.frame().await?;
        let response = ConnectResponse::decode(&mut Reader::new(frame)).unwrap();
        self.session = response.session_id;
        self.password = response.password.clone();
        self.timeout_ms = response.timeout_ms;
        Some(response)
    }

    /// Sends a request and waits for its reply; notifications before it are kept for [`RawClient::event`].
    pub(crate) async fn request(&mut self, request: &Request) -> Reply {
        self.submit(request).await;
        self.reply().await
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn call(&mut self, request: &Request) -> Result<Response, Code> {
        self.request(request).await.result
    }

    /// Sends a request and returns the stat in its response.
    pub(crate) async fn stat(&mut self, request: &Request) -> Stat {
        match self.call(request).await {
            Ok(
                Response::Stat(stat)
                | Response::Create2 { stat, .. }
                | Response::Data { stat, .. }
                | Response::ChildrenStat { stat, .. }
                | Response::Acl { stat, .. },
            ) => stat,
            other => panic!("{request:?} got {other:?}"),
        }
    }

    /// Sends a request without waiting; returns its number.
    pub(crate) async fn submit(&mut self, request: &Request) -> i32 {
        self.next_xid += 1;
        let xid = match request {
            Request::Ping => xid::PING,
            Request::Auth { .. } => xid::AUTH,
            Request::SetWatches(_) => xid::SET_WATCHES,
            _ => self.next_xid,
        };
        let mut out = BytesMut::new();
        encode(&mut out, xid, request);
        self.pending.push_back((xid, request.op()));
        self.send_bytes(&out).await;
        xid
    }

    /// Registers a request that was sent with [`RawClient::send_bytes`], so that its reply can be decoded.
    pub(crate) fn expect_reply(&mut self, xid: i32, op: i32) {
        self.pending.push_back((xid, op));
    }

    /// Waits for the next reply.
    pub(crate) async fn reply(&mut self) -> Reply {
        loop {
            match self.next().await {
                Incoming::Reply(reply) => return reply,
                Incoming::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// Waits for the next notification.
    pub(crate) async fn event(&mut self) -> Event {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        match self.next().await {
            Incoming::Event(event) => event,
            Incoming::Reply(reply) => panic!("no request was sent, but there is {reply:?}"),
        }
    }

    /// Removes and returns kind and path of every notification received so far.
    pub(crate) fn take_events(&mut self) -> Vec<(EventKind, String)> {
        self.events.drain(..).map(|event| (event.kind, event.path)).collect()
    }

    /// Waits for the next reply or notification.
    pub(crate) async fn next(&mut self) -> Incoming {
        self.incoming().await.expect("the connection is open")
    }

    /// Waits for the next reply or notification; `None` if the server closed the connection.
    pub(crate) async fn incoming(&mut self) -> Option<Incoming> {
        let mut reader = Reader::new(self.frame().await?);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        Some(if header.xid == xid::NOTIFICATION {
            let event = WatcherEvent::decode(&mut reader).unwrap();
            Incoming::Event(Event { zxid: header.zxid, kind: event.kind, path: event.path })
        } else {
            let (asked, op) = self.pending.pop_front().expect("a request was sent");
            assert_eq!(header.xid, asked, "replies arrive in the order of the requests");
            let result = match header.code {
                Code::OK => Ok(Response::decode(op, &mut reader).unwrap()),
                code => Err(code),
            };
            assert_eq!(reader.remaining(), 0, "a reply has no trailing bytes");
            Incoming::Reply(Reply { xid: header.xid, zxid: header.zxid, result })
        })
    }

    /// Checks that nothing arrives for this long.
    pub(crate) async fn expect_silence(&mut self, duration: Duration) {
        if let Ok(incoming) = timeout(duration, self.incoming()).await {
            panic!("too early: {incoming:?}");
        }
    }

    /// Waits until the server closes the connection; ignores what arrives before.
    pub(crate) async fn wait_closed(&mut self) {
        while self.frame().await.is_some() {}
    }

    /// Sends bytes unchanged. An error is ignored: it shows in what arrives.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = within_timeout(self.socket.write_all(bytes)).await;
    }

    /// Closes the sending direction only.
    pub(crate) async fn shutdown_write(&mut self) {
        let _ = self.socket.shutdown().await;
    }

    /// Everything the server sends until it closes the connection.
    pub(crate) async fn text(&mut self) -> String {
        let mut text = String::new();
        within_timeout(self.socket.read_to_string(&mut text)).await.expect("text");
        text
    }

    /// Waits for the next frame; `None` if the server closed or reset the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = frame::split(&mut self.unread, FRAME_LIMIT).unwrap() {
                return Some(frame);
            }
            match within_timeout(self.socket.read_buf(&mut self.unread)).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }
}

/// Appends the frame of a request.
pub(crate) fn encode(out: &mut BytesMut, xid: i32, request: &Request) {
    frame::write(out, |out| {
        RequestHeader { xid, op: request.op() }.encode(out);
        request.encode(out);
    });
}

/// The request for a new session.
pub(crate) fn new_session_request(timeout: Duration) -> ConnectRequest {
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: timeout.as_millis() as i32,
        session_id: 0,
        password: Bytes::from_static(&[0; PASSWORD_LEN]),
        read_only: Some(false),
    }
}

pub(crate) fn create(path: &str) -> Request {
    Request::Write(create_op(path, CreateMode::Persistent))
}

pub(crate) fn create_as(path: &str, mode: CreateMode) -> Request {
    Request::Write(create_op(path, mode))
}

pub(crate) fn create_for(path: &str, acl: Vec<Acl>) -> Request {
    let Op::Create(create) = create_op(path, CreateMode::Persistent) else { unreachable!() };
    Request::Write(Op::Create(Create { acl, ..create }))
}

pub(crate) fn create_op(path: &str, mode: CreateMode) -> Op {
    Op::Create(Create {
        path: path.to_owned(),
        data: Some(Bytes::from_static(b"data")),
        acl: Acl::open(),
        mode,
        with_stat: true,
    })
}

pub(crate) fn set(path: &str, data: impl Into<Bytes>) -> Request {
    Request::Write(set_op(path, data, -1))
}

pub(crate) fn set_op(path: &str, data: impl Into<Bytes>, version: i32) -> Op {
    Op::SetData { path: path.to_owned(), data: Some(data.into()), version }
}

pub(crate) fn delete(path: &str) -> Request {
    Request::Write(delete_op(path, -1))
}

pub(crate) fn delete_op(path: &str, version: i32) -> Op {
    Op::Delete { path: path.to_owned(), version }
}

pub(crate) fn exists(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: false }
}

pub(crate) fn get(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: false }
}

pub(crate) fn children(path: &str) -> Request {
    Request::GetChildren { path: path.to_owned(), watch: false }
}
