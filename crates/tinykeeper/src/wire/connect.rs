//! The first frame each way: which session this connection carries.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::jute::{DecodeError, Reader, Writer};

/// How long a session's password is.
pub const PASSWORD_LEN: usize = 16;

/// A client opens a session, or takes up the one it had.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The protocol's version: zero.
    pub protocol_version: i32,
    /// The newest transaction the client has seen; a server that is behind it must refuse.
    pub last_zxid_seen: i64,
    /// The session timeout the client wishes, in milliseconds.
    pub timeout_ms: i32,
    /// The session to take up, zero for a new one.
    pub session_id: i64,
    /// That session's password.
    pub password: Bytes,
    /// Whether a read-only server would do; clients before 3.4 do not say.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Reads a connect request.
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

    /// Writes a connect request.
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

// The password is what lets a stranger take the session over.
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

/// The server's answer: the session, or a timeout of zero when it is gone.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The protocol's version: zero.
    pub protocol_version: i32,
    /// The session timeout the server grants, in milliseconds; zero: the session is gone.
    pub timeout_ms: i32,
    /// The session.
    pub session_id: i64,
    /// Its password.
    pub password: Bytes,
    /// Whether this server is read-only; sent to clients that know the field.
    pub read_only: Option<bool>,
}

impl ConnectResponse {
    /// What a client is told whose session no longer exists.
    pub fn expired(read_only: Option<bool>) -> Self {
        Self {
            protocol_version: 0,
            timeout_ms: 0,
            session_id: 0,
            password: Bytes::from_static(&[0; PASSWORD_LEN]),
            read_only: read_only.map(|_| false),
        }
    }

    /// Reads a connect response.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: reader.i32("protocolVersion")?,
            timeout_ms: reader.i32("timeOut")?,
            session_id: reader.i64("sessionId")?,
            password: reader.buffer("passwd")?.unwrap_or_default(),
            read_only: if reader.remaining() > 0 { Some(reader.bool("readOnly")?) } else { None },
        })
    }

    /// Writes a connect response.
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

// As above: the password opens the session.
impl fmt::Debug for ConnectResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectResponse")
            .field("timeout_ms", &self.timeout_ms)
            .field("session_id", &self.session_id)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
