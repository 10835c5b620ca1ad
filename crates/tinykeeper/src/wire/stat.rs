//! Metadata of a node.

use bytes::BytesMut;

use super::jute::{DecodeError, Reader, Writer};

/// A node's metadata, as every read returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// The transaction that created the node.
    pub czxid: i64,
    /// The transaction that last changed its data.
    pub mzxid: i64,
    /// Time of creation, in milliseconds since 1970.
    pub ctime: i64,
    /// Time of the last change of its data, in milliseconds since 1970.
    pub mtime: i64,
    /// Number of changes of its data.
    pub version: i32,
    /// Number of changes of its list of children.
    pub cversion: i32,
    /// Number of changes of its access list.
    pub aversion: i32,
    /// The session that owns an ephemeral node; zero for other nodes.
    pub ephemeral_owner: i64,
    pub data_length: i32,
    pub num_children: i32,
    /// The transaction that last changed its list of children.
    pub pzxid: i64,
}

impl Stat {
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
