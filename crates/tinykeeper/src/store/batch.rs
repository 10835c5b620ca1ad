//! Records that become durable together, and the frame that holds them in a log.
//!
//! ```text
//! frame    length of the body u32 · crc32 of the body u32 · seal u32 · body              big-endian
//! seal     crc32 of (salt of the log, offset of this frame, length, crc32 of the body)
//! body     records: zxid i64 · length u32 · payload
//! ```
//!
//! The commit is the unit of durability, so it is the unit of the checksum: a batch is there whole
//! or not at all. The seal makes a frame recognisable where it stands, whatever lies before it;
//! that is how a torn end is told from damage in the middle. A length of zero ends the log.

use bytes::Bytes;

use super::header::{u32_at, u64_at};

/// Bytes of a frame before its body.
pub(super) const FRAME_LEN: usize = 12;
/// The most a body may have, so that a damaged length cannot ask for more memory than that.
pub(super) const MAX_BODY: usize = 1 << 30;
const RECORD_LEN: usize = 12;
/// Keep the buffer for the next batch unless an unusual one has made it larger than this.
const KEEP_CAPACITY: usize = 1 << 20;

/// The batch being built. The buffer starts with room for the frame, so that one write does.
#[derive(Debug)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    records: u64,
    first: i64,
    last: i64,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { buffer: vec![0; FRAME_LEN], records: 0, first: 0, last: 0 }
    }
}

impl Batch {
    /// Adds a record, or answers `false` when the batch would become too large.
    pub(super) fn push(&mut self, zxid: i64, payload: &[u8]) -> bool {
        let body = self.buffer.len() - FRAME_LEN;
        if payload.len() > MAX_BODY - RECORD_LEN || body > MAX_BODY - RECORD_LEN - payload.len() {
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

    /// The frame as it is written at `offset` of the log with `salt`.
    pub(super) fn seal(&mut self, salt: u64, offset: u64) -> &[u8] {
        let body = &self.buffer[FRAME_LEN..];
        let frame = Frame { length: body.len() as u32, crc: crc32fast::hash(body) };
        self.buffer[..4].copy_from_slice(&frame.length.to_be_bytes());
        self.buffer[4..8].copy_from_slice(&frame.crc.to_be_bytes());
        self.buffer[8..FRAME_LEN].copy_from_slice(&frame.seal(salt, offset).to_be_bytes());
        &self.buffer
    }

    pub(super) fn clear(&mut self) {
        self.records = 0;
        self.buffer.truncate(FRAME_LEN);
        self.buffer.shrink_to(KEEP_CAPACITY);
    }
}

/// What precedes a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    length: u32,
    crc: u32,
}

impl Frame {
    /// The frame at `offset` of the log with `salt`, if these [`FRAME_LEN`] bytes are one.
    pub(super) fn parse(bytes: &[u8], salt: u64, offset: u64) -> Option<Frame> {
        let frame = Frame { length: u32_at(bytes, 0), crc: u32_at(bytes, 4) };
        let plausible = frame.length != 0 && frame.length as usize <= MAX_BODY;
        (plausible && frame.seal(salt, offset) == u32_at(bytes, 8)).then_some(frame)
    }

    pub(super) fn body_len(self) -> usize {
        self.length as usize
    }

    pub(super) fn fits(self, body: &[u8]) -> bool {
        body.len() == self.body_len() && crc32fast::hash(body) == self.crc
    }

    fn seal(self, salt: u64, offset: u64) -> u32 {
        let mut sealed = [0; 24];
        sealed[..8].copy_from_slice(&salt.to_be_bytes());
        sealed[8..16].copy_from_slice(&offset.to_be_bytes());
        sealed[16..20].copy_from_slice(&self.length.to_be_bytes());
        sealed[20..].copy_from_slice(&self.crc.to_be_bytes());
        crc32fast::hash(&sealed)
    }
}

/// The records of a body, each sharing its memory; an error if they do not follow `previous` in
/// order or do not fill the body exactly.
pub(super) fn records(mut body: Bytes, previous: i64) -> Result<Vec<(i64, Bytes)>, &'static str> {
    let mut records = Vec::new();
    let mut newest = previous;
    while !body.is_empty() {
        if body.len() < RECORD_LEN {
            return Err("a record is cut short inside a whole batch");
        }
        let head = body.split_to(RECORD_LEN);
        let (zxid, length) = (u64_at(&head, 0) as i64, u32_at(&head, 8) as usize);
        if length > body.len() {
            return Err("a record is longer than its batch");
        }
        if zxid <= newest {
            return Err("a zxid does not come after the one before it");
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
    fn a_batch_is_read_as_it_is_written() {
        let mut batch = Batch::default();
        assert!(batch.push(5, b"five"));
        assert!(batch.push(6, b""));
        assert!(batch.push(i64::MAX, &[0; 1000]));

        let bytes = Bytes::copy_from_slice(batch.seal(42, 36));
        let frame = Frame::parse(&bytes, 42, 36).unwrap();
        let body = bytes.slice(FRAME_LEN..);

        assert!(frame.fits(&body));
        let read = records(body, 4).unwrap();
        assert_eq!((batch.first(), batch.last(), batch.records()), (5, i64::MAX, 3));
        assert_eq!(read[0], (5, Bytes::from_static(b"five")));
        assert_eq!(read[1], (6, Bytes::new()));
        assert_eq!(read[2], (i64::MAX, Bytes::from(vec![0; 1000])));
    }

    #[test]
    fn a_frame_is_only_a_frame_in_its_own_log_at_its_own_place() {
        let mut batch = Batch::default();
        batch.push(5, b"five");
        let bytes = batch.seal(42, 36).to_vec();

        assert!(Frame::parse(&bytes, 42, 37).is_none());
        assert!(Frame::parse(&bytes, 43, 36).is_none());
        assert!(Frame::parse(&[0; FRAME_LEN], 42, 36).is_none());
    }

    #[test]
    fn a_batch_takes_no_more_than_a_frame_holds() {
        let mut batch = Batch::default();
        let large = vec![0; MAX_BODY - RECORD_LEN + 1];

        assert!(!batch.push(1, &large));
        assert!(batch.push(1, b""));
        assert!(!batch.push(2, &large[..=MAX_BODY - 2 * RECORD_LEN]));
        assert_eq!((batch.records(), batch.last()), (1, 1));
    }

    #[test]
    fn a_body_that_contradicts_itself_is_an_error() {
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
