//! The header of every log and snapshot.
//!
//! ```text
//! magic 8 · version u32 · flags u32 · salt u64 · zxid i64 · crc32 of all that u32        big-endian
//! ```

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::Path,
};

use super::Error;

pub(super) const HEADER_LEN: usize = 36;
const VERSION: u32 = 1;
const UNSYNCED: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Batches were acknowledged without a sync, so a power loss can cause any damage.
    pub(super) unsynced: bool,
    /// Random for each file, so that no payload can contain a valid frame of this file.
    pub(super) salt: u64,
    /// In a snapshot, the last zxid it contains. In a log, the last zxid before it, 0 in the first log.
    pub(super) zxid: i64,
}

impl Header {
    pub(super) fn new(kind: Kind, zxid: i64) -> Header {
        // Seeded by the system; a salt only has to be unpredictable, so no crate is needed.
        let salt = RandomState::new().build_hasher().finish();
        Header { kind, unsynced: false, salt, zxid }
    }

    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        let flags = if self.unsynced { UNSYNCED } else { 0 };
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(self.kind.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_be_bytes());
        bytes[12..16].copy_from_slice(&flags.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.zxid.to_be_bytes());
        let crc = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Decodes the first bytes of `path`, which may be fewer than a header has.
    pub(super) fn decode(kind: Kind, path: &Path, bytes: &[u8]) -> Result<Header, Error> {
        let bad = |problem| Error::BadHeader { path: path.to_owned(), problem };
        let bytes: &[u8; HEADER_LEN] = bytes.try_into().map_err(|_| bad("it is too short"))?;
        if bytes[..8] != *kind.magic() {
            return Err(bad("the magic bytes do not match"));
        }
        // Checked before the checksum: a later version may have a different layout.
        let found = u32_at(bytes, 8);
        if found > VERSION {
            return Err(Error::NewerVersion { path: path.to_owned(), found, known: VERSION });
        }
        let flags = u32_at(bytes, 12);
        if crc32fast::hash(&bytes[..32]) != u32_at(bytes, 32) {
            return Err(bad("its checksum does not match"));
        }
        let zxid = u64_at(bytes, 24) as i64;
        if found != VERSION || flags & !UNSYNCED != 0 || zxid < 0 {
            return Err(bad("it has values that no version writes"));
        }
        Ok(Header { kind, unsynced: flags & UNSYNCED != 0, salt: u64_at(bytes, 16), zxid })
    }
}

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Kind::Log => b"tinykLOG",
            Kind::Snapshot => b"tinykSNP",
        }
    }
}

/// The integer at `at`. Panics if it is outside the slice.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The integer at `at`. Panics if it is outside the slice.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        for kind in [Kind::Log, Kind::Snapshot] {
            let header = Header { unsynced: true, ..Header::new(kind, 0x66_0000_0001) };

            let read = Header::decode(kind, Path::new("file"), &header.encode()).unwrap();

            assert_eq!(read, header);
        }
    }

    #[test]
    fn any_changed_byte_of_a_header_is_detected() {
        let header = Header::new(Kind::Log, 5).encode();
        for at in 0..HEADER_LEN {
            let mut changed = header;
            changed[at] ^= 0x10;

            assert!(Header::decode(Kind::Log, Path::new("file"), &changed).is_err(), "byte {at}");
        }
        for len in 0..HEADER_LEN {
            assert!(Header::decode(Kind::Log, Path::new("file"), &header[..len]).is_err());
        }
    }

    #[test]
    fn newer_version_is_distinguished_from_damage() {
        let mut bytes = Header::new(Kind::Log, 5).encode();
        bytes[11] = 2;

        let error = Header::decode(Kind::Log, Path::new("file"), &bytes).unwrap_err();

        assert!(matches!(error, Error::NewerVersion { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn snapshot_header_is_refused_for_a_log() {
        let bytes = Header::new(Kind::Snapshot, 5).encode();

        let error = Header::decode(Kind::Log, Path::new("file"), &bytes).unwrap_err();

        assert!(matches!(error, Error::BadHeader { .. }), "{error}");
    }
}
