//! The logged form of a write: changes that replay can apply without any decision.

use bytes::{Bytes, BytesMut};

use super::lifetime::Lifetime;
use crate::wire::{Acl, DecodeError, Reader, Writer};

/// One fully decided change to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Create {
        path: String,
        data: Option<Bytes>,
        acl: Vec<Acl>,
        lifetime: Lifetime,
    },
    Delete {
        path: String,
    },
    SetData {
        path: String,
        data: Option<Bytes>,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        version: i32,
    },
    /// A condition that held. Changes nothing.
    Check,
    OpenSession {
        id: i64,
        timeout_ms: i32,
        password: Bytes,
    },
    /// Ends the session and deletes its ephemerals.
    CloseSession {
        id: i64,
    },
}

/// All changes of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub zxid: i64,
    /// Milliseconds since 1970.
    pub time: i64,
    pub changes: Vec<Change>,
}

impl Transaction {
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_long(self.zxid);
        out.put_long(self.time);
        out.put_int(self.changes.len() as i32);
        for change in &self.changes {
            change.encode(out);
        }
    }

    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            zxid: reader.i64("zxid")?,
            time: reader.i64("time")?,
            changes: reader.vector("changes", Change::decode)?,
        })
    }
}

impl Change {
    fn encode(&self, out: &mut BytesMut) {
        match self {
            Change::Create { path, data, acl, lifetime } => {
                out.put_int(1);
                out.put_string(path);
                out.put_buffer(data.as_deref());
                Acl::encode_list(acl, out);
                out.put_long(lifetime.to_owner());
            }
            Change::Delete { path } => {
                out.put_int(2);
                out.put_string(path);
            }
            Change::SetData { path, data, version } => {
                out.put_int(3);
                out.put_string(path);
                out.put_buffer(data.as_deref());
                out.put_int(*version);
            }
            Change::SetAcl { path, acl, version } => {
                out.put_int(4);
                out.put_string(path);
                Acl::encode_list(acl, out);
                out.put_int(*version);
            }
            Change::Check => out.put_int(5),
            Change::OpenSession { id, timeout_ms, password } => {
                out.put_int(6);
                out.put_long(*id);
                out.put_int(*timeout_ms);
                out.put_buffer(Some(password));
            }
            Change::CloseSession { id } => {
                out.put_int(7);
                out.put_long(*id);
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match reader.i32("change")? {
            1 => Change::Create {
                path: reader.string("path")?,
                data: reader.buffer("data")?,
                acl: Acl::decode_list(reader)?,
                lifetime: Lifetime::from_owner(reader.i64("owner")?),
            },
            2 => Change::Delete { path: reader.string("path")? },
            3 => Change::SetData {
                path: reader.string("path")?,
                data: reader.buffer("data")?,
                version: reader.i32("version")?,
            },
            4 => Change::SetAcl {
                path: reader.string("path")?,
                acl: Acl::decode_list(reader)?,
                version: reader.i32("version")?,
            },
            5 => Change::Check,
            6 => Change::OpenSession {
                id: reader.i64("id")?,
                timeout_ms: reader.i32("timeout")?,
                password: reader.buffer("password")?.unwrap_or_default(),
            },
            7 => Change::CloseSession { id: reader.i64("id")? },
            value => {
                return Err(DecodeError::BadValue { field: "change", value });
            }
        })
    }
}
