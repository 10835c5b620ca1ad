//! A batch of records that become durable together, and its frame in the log.
//!
//! ```text
//! frame        length of the body u32 · crc32 of the body u32 · header crc u32 · body    big-endian
//! header crc   crc32 of (salt of the log, offset of this frame, length, crc32 of the body)
//! body         records: zxid i64 · length u32 · payload
//! ```
//!
//! The commit is the unit of durability, so it is also the unit of the checksum: a batch is complete or absent. The header crc
//! identifies a frame at its position, whatever precedes it; this distinguishes a torn end from damage in the middle of a log. A
//! length of zero ends the log.

use bytes::Bytes;

use super::header::{u32_at, u64_at};

/// Length of a frame without its body.
pub(super) const FRAME_HEADER_LEN: usize = 12;
/// Maximum length of a body, which bounds the memory that a damaged length can request.
pub(super) const MAX_BODY: usize = 1 << 30;
const RECORD_HEADER_LEN: usize = 12;
/// Capacity that the buffer keeps for the next batch after a larger one.
const KEEP_CAPACITY: usize = 1 << 20;

/// The current batch. The buffer begins with room for the frame header, so that one write suffices.
#[derive(Debug)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    records: u64,
    first: i64,
    last: i64,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { buffer: vec![0; FRAME_HEADER_LEN], records: 0, first: 0, last: 0 }
    }
}

impl Batch {
    /// Adds a record; returns `false` if the batch would become too large.
    pub(super) fn push(&mut self, zxid: i64, payload: &[u8]) -> bool {
        let body = self.buffer.len() - FRAME_HEADER_LEN;
        if payload.len() > MAX_BODY - RECORD_HEADER_LEN
            || body > MAX_BODY - RECORD_HEADER_LEN - payload.len()
        {
            return false;
        }
        if self.records == 0 {
            self.first = zxid;
        }
        self.last = zxid;
        self.records += 1;
        self.buffer.extend_from_slice(&zxid.to_be_bytes());
        self.buffer.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        self.buffer.extend_from_slice(payload);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Zxid of the first record; meaningless when empty.
    pub(super) fn first(&self) -> i64 {
        self.first
    }

    /// Zxid of the last record; meaningless when empty.
    pub(super) fn last(&self) -> i64 {
        self.last
    }

    /// The frame for position `offset` of the log with `salt`.
    pub(super) fn encode(&mut self, salt: u64, offset: u64) -> &[u8] {
        let body = &self.buffer[FRAME_HEADER_LEN..];
        let frame = FrameHeader { length: body.len() as u32, crc: crc32fast::hash(body) };
        self.buffer[..4].copy_from_slice(&frame.length.to_be_bytes());
        self.buffer[4..8].copy_from_slice(&frame.crc.to_be_bytes());
        self.buffer[8..FRAME_HEADER_LEN]
            .copy_from_slice(&frame.header_crc(salt, offset).to_be_bytes());
        &self.buffer
    }

    pub(super) fn clear(&mut self) {
        self.records = 0;
        self.buffer.truncate(FRAME_HEADER_LEN);
        self.buffer.shrink_to(KEEP_CAPACITY);
    }
}

/// The part of a frame before its body, without the header crc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    length: u32,
    crc: u32,
}

impl FrameHeader {
    /// The frame at `offset` of the log with `salt`, if these [`FRAME_HEADER_LEN`] bytes are one.
    pub(super) fn parse(bytes: &[u8], salt: u64, offset: u64) -> Option<FrameHeader> {
        let frame = FrameHeader { length: u32_at(bytes, 0), crc: u32_at(bytes, 4) };
        let is_plausible = frame.length != 0 && frame.length as usize <= MAX_BODY;
        (is_plausible && frame.header_crc(salt, offset) == u32_at(bytes, 8)).then_some(frame)
    }

    pub(super) fn body_len(self) -> usize {
        self.length as usize
    }

    pub(super) fn matches(self, body: &[u8]) -> bool {
        body.len() == self.body_len() && crc32fast::hash(body) == self.crc
    }

    fn header_crc(self, salt: u64, offset: u64) -> u32 {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&salt.to_be_bytes());
        bytes[8..16].copy_from_slice(&offset.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_be_bytes());
        bytes[20..].copy_from_slice(&self.crc.to_be_bytes());
        crc32fast::hash(&bytes)
    }
}

/// Decodes the records of a body, which share its memory. Fails if they do not follow `previous` in order or do not fill the body
/// exactly.
pub(super) fn records(mut body: Bytes, previous: i64) -> Result<Vec<(i64, Bytes)>, &'static str> {
    let mut records = Vec::new();
    let mut newest = previous;
    while !body.is_empty() {
        if body.len() < RECORD_HEADER_LEN {
            return Err("a record is truncated inside a complete batch");
        }
        let head = body.split_to(RECORD_HEADER_LEN);
        let (zxid, length) = (u64_at(&head, 0) as i64, u32_at(&head, 8) as usize);
        if length > body.len() {
            return Err("a record is longer than its batch");
        }
        if zxid <= newest {
            return Err("a zxid is not greater than the previous one");
        }
        newest = zxid;
        records.push((zxid, body.split_to(length)));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_round_trips() {
        let mut batch = Batch::default();
        assert!(batch.push(5, b"five"));
        assert!(batch.push(6, b""));
        assert!(batch.push(i64::MAX, &[0; 1000]));

        let bytes = Bytes::copy_from_slice(batch.encode(42, 36));
        let frame = FrameHeader::parse(&bytes, 42, 36).unwrap();
        let body = bytes.slice(FRAME_HEADER_LEN..);

        assert!(frame.matches(&body));
        let read = records(body, 4).unwrap();
        assert_eq!((batch.first(), batch.last(), batch.records()), (5, i64::MAX, 3));
        assert_eq!(read[0], (5, Bytes::from_static(b"five")));
        assert_eq!(read[1], (6, Bytes::new()));
        assert_eq!(read[2], (i64::MAX, Bytes::from(vec![0; 1000])));
    }

    #[test]
    fn frame_is_valid_only_in_its_own_log_and_position() {
        let mut batch = Batch::default();
        batch.push(5, b"five");
        let bytes = batch.encode(42, 36).to_vec();

        assert!(FrameHeader::parse(&bytes, 42, 37).is_none());
        assert!(FrameHeader::parse(&bytes, 43, 36).is_none());
        assert!(FrameHeader::parse(&[0; FRAME_HEADER_LEN], 42, 36).is_none());
    }

    #[test]
    fn batch_refuses_records_beyond_the_maximum_body() {
        let mut batch = Batch::default();
        let large = vec![0; MAX_BODY - RECORD_HEADER_LEN + 1];

        assert!(!batch.push(1, &large));
        assert!(batch.push(1, b""));
        assert!(!batch.push(2, &large[..=MAX_BODY - 2 * RECORD_HEADER_LEN]));
        assert_eq!((batch.records(), batch.last()), (1, 1));
    }

    #[test]
    fn inconsistent_body_is_an_error() {
        let body = |records: &[(i64, u32, &[u8])]| {
            let mut body = Vec::new();
            for (zxid, length, payload) in records {
                body.extend_from_slice(&zxid.to_be_bytes());
                body.extend_from_slice(&length.to_be_bytes());
                body.extend_from_slice(payload);
            }
            Bytes::from(body)
        };

        assert!(records(body(&[(5, 1, b"a"), (6, 1, b"b")]), 4).is_ok());
        assert!(records(body(&[(5, 1, b"a"), (5, 1, b"b")]), 4).is_err());
        assert!(records(body(&[(5, 1, b"a")]), 5).is_err());
        assert!(records(body(&[(-5, 1, b"a")]), 0).is_err());
        assert!(records(body(&[(5, 2, b"a")]), 4).is_err());
        assert!(records(body(&[(5, u32::MAX, b"a")]), 4).is_err());
        assert!(records(body(&[(5, 0, b"a")]), 4).is_err());
    }
}
