//! What stands before a body: request and reply headers, and the notification, which is a header with an event.

use bytes::BytesMut;

use super::{
    code::Code,
    jute::{DecodeError, Reader, Writer},
};

/// The transaction numbers a client may not use for ordinary requests.
pub mod xid {
    /// A notification from the server.
    pub const NOTIFICATION: i32 = -1;
    /// A ping and its answer.
    pub const PING: i32 = -2;
    /// An authentication packet and its answer.
    pub const AUTH: i32 = -4;
    /// Watches set again after a reconnect.
    pub const SET_WATCHES: i32 = -8;
}

/// Stands before every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// The client's number for this request; the reply carries it back.
    pub xid: i32,
    /// Which operation follows.
    pub op: i32,
}

impl RequestHeader {
    /// Reads a request header.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { xid: reader.i32("xid")?, op: reader.i32("op")? })
    }

    /// Writes a request header.
    pub fn encode(self, out: &mut BytesMut) {
        out.put_int(self.xid);
        out.put_int(self.op);
    }
}

/// Stands before every reply and every notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The request's number, or one of [`xid`].
    pub xid: i32,
    /// For a write, its own transaction; for a read, the last one applied before it.
    pub zxid: i64,
    /// Done, or why not.
    pub code: Code,
}

impl ReplyHeader {
    /// Reads a reply header.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            xid: reader.i32("xid")?,
            zxid: reader.i64("zxid")?,
            code: Code(reader.i32("err")?),
        })
    }

    /// Writes a reply header.
    pub fn encode(self, out: &mut BytesMut) {
        out.put_int(self.xid);
        out.put_long(self.zxid);
        out.put_int(self.code.0);
    }
}

/// What happened to a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the protocol's own and say it all")]
pub enum EventKind {
    /// Nothing happened to a node; the event tells of the connection.
    None,
    NodeCreated,
    NodeDeleted,
    NodeDataChanged,
    NodeChildrenChanged,
}

impl EventKind {
    fn number(self) -> i32 {
        match self {
            EventKind::None => -1,
            EventKind::NodeCreated => 1,
            EventKind::NodeDeleted => 2,
            EventKind::NodeDataChanged => 3,
            EventKind::NodeChildrenChanged => 4,
        }
    }

    fn from_number(value: i32) -> Result<Self, DecodeError> {
        Ok(match value {
            -1 => EventKind::None,
            1 => EventKind::NodeCreated,
            2 => EventKind::NodeDeleted,
            3 => EventKind::NodeDataChanged,
            4 => EventKind::NodeChildrenChanged,
            value => {
                return Err(DecodeError::BadValue { field: "event type", value });
            }
        })
    }
}

/// The state of the connection, as a notification tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperState(pub i32);

impl KeeperState {
    /// The usual one.
    pub const SYNC_CONNECTED: KeeperState = KeeperState(3);
}

/// A notification: something happened to a watched node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherEvent {
    /// What happened.
    pub kind: EventKind,
    /// The state of the connection.
    pub state: KeeperState,
    /// To which node.
    pub path: String,
}

impl WatcherEvent {
    /// Reads a notification.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: EventKind::from_number(reader.i32("event type")?)?,
            state: KeeperState(reader.i32("event state")?),
            path: reader.string("event path")?,
        })
    }

    /// Writes a notification.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_int(self.kind.number());
        out.put_int(self.state.0);
        out.put_string(&self.path);
    }
}
