//! A client that does nothing by itself: it sends what the test says, and shows what came, in order.

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

use super::soon;

/// Far more than any answer here takes.
const FRAME_LIMIT: usize = 64 << 20;

pub(crate) struct Raw {
    socket: TcpStream,
    unread: BytesMut,
    next_xid: i32,
    /// What was asked and not answered yet: number and operation.
    asked: VecDeque<(i32, i32)>,
    /// Notifications that came while an answer was waited for.
    events: VecDeque<Event>,
    pub(crate) session: i64,
    pub(crate) password: Bytes,
    pub(crate) timeout_ms: i32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Event(Event),
    Answer(Answer),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) zxid: i64,
    pub(crate) kind: EventKind,
    pub(crate) path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) result: Result<Response, Code>,
}

impl Raw {
    /// A connection on which nothing was said yet.
    pub(crate) async fn dial(address: SocketAddr) -> Self {
        let socket = soon(TcpStream::connect(address)).await.expect("somebody listens");
        Self {
            socket,
            unread: BytesMut::new(),
            next_xid: 0,
            asked: VecDeque::new(),
            events: VecDeque::new(),
            session: 0,
            password: Bytes::new(),
            timeout_ms: 0,
        }
    }

    /// A new session with a timeout that outlives the test.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::connect_for(address, Duration::from_secs(40)).await
    }

    /// A new session with this timeout, as far as the server grants it.
    pub(crate) async fn connect_for(address: SocketAddr, timeout: Duration) -> Self {
        let mut client = Self::dial(address).await;
        client.hello(&newcomer(timeout)).await.expect("a session is granted");
        client
    }

    /// The same session on a new connection; the old one is left as it is.
    pub(crate) async fn resume(&self, address: SocketAddr) -> Self {
        let mut client = Self::dial(address).await;
        client.hello(&self.returning()).await.expect("the server answers");
        client
    }

    /// What a client says that comes back to its session.
    pub(crate) fn returning(&self) -> ConnectRequest {
        ConnectRequest {
            session_id: self.session,
            password: self.password.clone(),
            timeout_ms: self.timeout_ms,
            ..newcomer(Duration::ZERO)
        }
    }

    /// Says who it is; `None` if the server hangs up.
    pub(crate) async fn hello(&mut self, request: &ConnectRequest) -> Option<ConnectResponse> {
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

    /// Asks and waits for the answer; notifications before it are kept for [`Raw::event`].
    pub(crate) async fn ask(&mut self, request: &Request) -> Answer {
        self.submit(request).await;
        self.answer().await
    }

    /// What the server says to a request.
    pub(crate) async fn call(&mut self, request: &Request) -> Result<Response, Code> {
        self.ask(request).await.result
    }

    /// The stat in an answer that has to have one.
    pub(crate) async fn stat(&mut self, request: &Request) -> Stat {
        match self.call(request).await {
            Ok(
                Response::Stat(stat)
                | Response::Create2 { stat, .. }
                | Response::Data { stat, .. }
                | Response::ChildrenStat { stat, .. }
                | Response::Acl { stat, .. },
            ) => stat,
            other => panic!("{request:?} was answered {other:?}"),
        }
    }

    /// Asks and does not wait; the number it was asked under.
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
        self.asked.push_back((xid, request.op()));
        self.send_bytes(&out).await;
        xid
    }

    /// Notes that a request was sent by other means, so that its answer is understood.
    pub(crate) fn expect_answer(&mut self, xid: i32, op: i32) {
        self.asked.push_back((xid, op));
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        loop {
            match self.next().await {
                Incoming::Answer(answer) => return answer,
                Incoming::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// The next notification.
    pub(crate) async fn event(&mut self) -> Event {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        match self.next().await {
            Incoming::Event(event) => event,
            Incoming::Answer(answer) => panic!("nothing was asked, yet here is {answer:?}"),
        }
    }

    /// Kind and path of every notification that came before an answer.
    pub(crate) fn heard(&mut self) -> Vec<(EventKind, String)> {
        self.events.drain(..).map(|event| (event.kind, event.path)).collect()
    }

    /// Whatever comes next.
    pub(crate) async fn next(&mut self) -> Incoming {
        self.incoming().await.expect("the connection lives")
    }

    /// Whatever comes next; `None` when the server has hung up.
    pub(crate) async fn incoming(&mut self) -> Option<Incoming> {
        let mut reader = Reader::new(self.frame().await?);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        Some(if header.xid == xid::NOTIFICATION {
            let event = WatcherEvent::decode(&mut reader).unwrap();
            Incoming::Event(Event { zxid: header.zxid, kind: event.kind, path: event.path })
        } else {
            let (asked, op) = self.asked.pop_front().expect("something was asked");
            assert_eq!(header.xid, asked, "answers come in the order of the requests");
            let result = match header.code {
                Code::OK => Ok(Response::decode(op, &mut reader).unwrap()),
                code => Err(code),
            };
            assert_eq!(reader.remaining(), 0, "an answer holds nothing else");
            Incoming::Answer(Answer { xid: header.xid, zxid: header.zxid, result })
        })
    }

    /// Nothing comes for this long.
    pub(crate) async fn hears_nothing_for(&mut self, duration: Duration) {
        if let Ok(incoming) = timeout(duration, self.incoming()).await {
            panic!("too early: {incoming:?}");
        }
    }

    /// Waits until the server has hung up; what it still had to say does not matter.
    pub(crate) async fn ended(&mut self) {
        while self.frame().await.is_some() {}
    }

    /// Sends bytes as they are. That nobody takes them shows in what comes back, or does not.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = soon(self.socket.write_all(bytes)).await;
    }

    /// Says no more, but still listens.
    pub(crate) async fn hang_up(&mut self) {
        let _ = self.socket.shutdown().await;
    }

    /// Everything the server says until it hangs up.
    pub(crate) async fn text(&mut self) -> String {
        let mut text = String::new();
        soon(self.socket.read_to_string(&mut text)).await.expect("text");
        text
    }

    /// The next frame; `None` when the server has hung up, gently or not.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = frame::split(&mut self.unread, FRAME_LIMIT).unwrap() {
                return Some(frame);
            }
            match soon(self.socket.read_buf(&mut self.unread)).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }
}

/// Appends a request as a frame.
pub(crate) fn encode(out: &mut BytesMut, xid: i32, request: &Request) {
    frame::write(out, |out| {
        RequestHeader { xid, op: request.op() }.encode(out);
        request.encode(out);
    });
}

/// What a client says that has no session yet.
pub(crate) fn newcomer(timeout: Duration) -> ConnectRequest {
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
    Request::Write(creation(path, CreateMode::Persistent))
}

pub(crate) fn create_as(path: &str, mode: CreateMode) -> Request {
    Request::Write(creation(path, mode))
}

pub(crate) fn create_for(path: &str, acl: Vec<Acl>) -> Request {
    let Op::Create(create) = creation(path, CreateMode::Persistent) else { unreachable!() };
    Request::Write(Op::Create(Create { acl, ..create }))
}

pub(crate) fn creation(path: &str, mode: CreateMode) -> Op {
    Op::Create(Create {
        path: path.to_owned(),
        data: Some(Bytes::from_static(b"data")),
        acl: Acl::open(),
        mode,
        with_stat: true,
    })
}

pub(crate) fn set(path: &str, data: impl Into<Bytes>) -> Request {
    Request::Write(setting(path, data, -1))
}

pub(crate) fn setting(path: &str, data: impl Into<Bytes>, version: i32) -> Op {
    Op::SetData { path: path.to_owned(), data: Some(data.into()), version }
}

pub(crate) fn delete(path: &str) -> Request {
    Request::Write(deletion(path, -1))
}

pub(crate) fn deletion(path: &str, version: i32) -> Op {
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
