//! Request and reply headers, and the notification, which is a reply header followed by an event.

use bytes::BytesMut;

use super::{
    code::Code,
    jute::{DecodeError, Reader, Writer},
};

/// Reserved request numbers, which ordinary requests must not use.
pub mod xid {
    pub const NOTIFICATION: i32 = -1;
    pub const PING: i32 = -2;
    pub const AUTH: i32 = -4;
    pub const SET_WATCHES: i32 = -8;
}

/// Precedes every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// The client's number for this request; the reply repeats it.
    pub xid: i32,
    /// Number of the operation, one of [`op`](super::op).
    pub op: i32,
}

impl RequestHeader {
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { xid: reader.i32("xid")?, op: reader.i32("op")? })
    }

    pub fn encode(self, out: &mut BytesMut) {
        out.put_int(self.xid);
        out.put_int(self.op);
    }
}

/// Precedes every reply and every notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The request's number, or one of [`xid`].
    pub xid: i32,
    /// For a write, its own transaction; for a read, the last one applied before it.
    pub zxid: i64,
    pub code: Code,
}

impl ReplyHeader {
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            xid: reader.i32("xid")?,
            zxid: reader.i64("zxid")?,
            code: Code(reader.i32("err")?),
        })
    }

    pub fn encode(self, out: &mut BytesMut) {
        out.put_int(self.xid);
        out.put_long(self.zxid);
        out.put_int(self.code.0);
    }
}

/// What happened to a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// No node changed; the event reports the state of the connection.
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

/// The state of the connection, as reported by a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperState(pub i32);

impl KeeperState {
    /// The state in every notification about a node.
    pub const SYNC_CONNECTED: KeeperState = KeeperState(3);
}

/// A notification that a watched node changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherEvent {
    pub kind: EventKind,
    pub state: KeeperState,
    pub path: String,
}

impl WatcherEvent {
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: EventKind::from_number(reader.i32("event type")?)?,
            state: KeeperState(reader.i32("event state")?),
            path: reader.string("event path")?,
        })
    }

    pub fn encode(&self, out: &mut BytesMut) {
        out.put_int(self.kind.number());
        out.put_int(self.state.0);
        out.put_string(&self.path);
    }
}
