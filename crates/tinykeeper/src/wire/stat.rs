//! What the server knows about a node besides its data.

use bytes::BytesMut;

use super::jute::{DecodeError, Reader, Writer};

/// A node's metadata, as every read returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// The transaction that created the node: its *creation id*.
    pub czxid: i64,
    /// The transaction that last changed its data.
    pub mzxid: i64,
    /// When it was created, in milliseconds since 1970.
    pub ctime: i64,
    /// When its data last changed, in milliseconds since 1970.
    pub mtime: i64,
    /// How often its data changed.
    pub version: i32,
    /// How often its children changed.
    pub cversion: i32,
    /// How often its ACL changed.
    pub aversion: i32,
    /// The session it lives with; zero if it does not live with one.
    pub ephemeral_owner: i64,
    /// Length of its data.
    pub data_length: i32,
    /// How many children it has.
    pub num_children: i32,
    /// The transaction that last changed its list of children.
    pub pzxid: i64,
}

impl Stat {
    /// Reads a stat.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            czxid: reader.i64("czxid")?,
            mzxid: reader.i64("mzxid")?,
            ctime: reader.i64("ctime")?,
            mtime: reader.i64("mtime")?,
            version: reader.i32("version")?,
            cversion: reader.i32("cversion")?,
            aversion: reader.i32("aversion")?,
            ephemeral_owner: reader.i64("ephemeralOwner")?,
            data_length: reader.i32("dataLength")?,
            num_children: reader.i32("numChildren")?,
            pzxid: reader.i64("pzxid")?,
        })
    }

    /// Writes a stat.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_long(self.czxid);
        out.put_long(self.mzxid);
        out.put_long(self.ctime);
        out.put_long(self.mtime);
        out.put_int(self.version);
        out.put_int(self.cversion);
        out.put_int(self.aversion);
        out.put_long(self.ephemeral_owner);
        out.put_int(self.data_length);
        out.put_int(self.num_children);
        out.put_long(self.pzxid);
    }
}
