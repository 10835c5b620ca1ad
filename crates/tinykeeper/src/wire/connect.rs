//! The first frame in each direction, which opens or resumes a session.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::jute::{DecodeError, Reader, Writer};

/// Length of a session password, in bytes.
pub const PASSWORD_LEN: usize = 16;

/// A client's request to open a session or resume an existing one.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Always zero.
    pub protocol_version: i32,
    /// The newest transaction the client has seen; a server that does not have it must refuse the connection.
    pub last_zxid_seen: i64,
    /// The session timeout the client requests.
    pub timeout_ms: i32,
    /// The session to resume, zero for a new one.
    pub session_id: i64,
    pub password: Bytes,
    /// Whether the client accepts a read-only server; clients before 3.4 do not send this field.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: reader.i32("protocolVersion")?,
            last_zxid_seen: reader.i64("lastZxidSeen")?,
            timeout_ms: reader.i32("timeOut")?,
            session_id: reader.i64("sessionId")?,
            password: reader.buffer("passwd")?.unwrap_or_default(),
            read_only: if reader.remaining() > 0 { Some(reader.bool("readOnly")?) } else { None },
        })
    }

    pub fn encode(&self, out: &mut BytesMut) {
        out.put_int(self.protocol_version);
        out.put_long(self.last_zxid_seen);
        out.put_int(self.timeout_ms);
        out.put_long(self.session_id);
        out.put_buffer(Some(&self.password));
        if let Some(read_only) = self.read_only {
            out.put_bool(read_only);
        }
    }
}

// Without the password: it allows anyone to take over the session.
impl fmt::Debug for ConnectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest")
            .field("last_zxid_seen", &self.last_zxid_seen)
            .field("timeout_ms", &self.timeout_ms)
            .field("session_id", &self.session_id)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// The server's response: the session, or a timeout of zero if the session no longer exists.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// Always zero.
    pub protocol_version: i32,
    /// The session timeout the server grants; zero if the session no longer exists.
    pub timeout_ms: i32,
    pub session_id: i64,
    pub password: Bytes,
    /// Whether this server is read-only; sent only to clients that sent the field.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// The response to a client whose session no longer exists.
    pub fn expired(read_only: Option<bool>) -> Self {
        Self {
            protocol_version: 0,
            timeout_ms: 0,
            session_id: 0,
            password: Bytes::from_static(&[0; PASSWORD_LEN]),
            read_only: read_only.map(|_| false),
        }
    }

    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: reader.i32("protocolVersion")?,
            timeout_ms: reader.i32("timeOut")?,
            session_id: reader.i64("sessionId")?,
            password: reader.buffer("passwd")?.unwrap_or_default(),
            read_only: if reader.remaining() > 0 { Some(reader.bool("readOnly")?) } else { None },
        })
    }

    pub fn encode(&self, out: &mut BytesMut) {
        out.put_int(self.protocol_version);
        out.put_int(self.timeout_ms);
        out.put_long(self.session_id);
        out.put_buffer(Some(&self.password));
        if let Some(read_only) = self.read_only {
            out.put_bool(read_only);
        }
    }
}

// Without the password, as above.
impl fmt::Debug for ConnectResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectResponse")
            .field("timeout_ms", &self.timeout_ms)
            .field("session_id", &self.session_id)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
