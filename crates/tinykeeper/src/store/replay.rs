//! Reads a log and describes its contents; `recovery` decides what to do with them.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use bytes::Bytes;

use super::{
    Error,
    batch::{self, FRAME_HEADER_LEN, FrameHeader},
    disk::with_context,
    header::{HEADER_LEN, Header, Kind},
};

static ZEROS: [u8; 1 << 12] = [0; 1 << 12];

/// The contents of a log, as far as it can be read.
#[derive(Debug)]
pub(super) struct LogContents {
    /// The last zxid before this log, from its header.
    pub(super) follows: i64,
    /// The records after the requested zxid.
    pub(super) records: Vec<(i64, Bytes)>,
    /// Zxid of the first record, if there is one.
    pub(super) first: Option<i64>,
    /// Zxid of the last record, or `follows` if there is none.
    pub(super) last: i64,
    /// Bytes of the batches after the requested zxid.
    pub(super) bytes: u64,
    /// Offset of the end of the last complete batch.
    pub(super) end: u64,
    /// What follows the last complete batch.
    pub(super) tail: Tail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or preallocated zeros.
    Clean,
    /// Bytes that are not a complete batch and have no later batch after them, as a crash leaves them.
    Torn { bytes: u64, problem: &'static str },
    /// Bytes that no crash can leave: they were durable once, or were never valid.
    Damaged { problem: &'static str },
}

/// The header of a log, without its records.
pub(super) fn header(path: &Path) -> Result<Header, Error> {
    let file = with_context("open", path, || File::open(path))?;
    read_header(&file, path)
}

/// Reads the log at `path`, keeping records after `after`.
pub(super) fn contents(path: &Path, after: i64) -> Result<LogContents, Error> {
    let mut file = with_context("open", path, || File::open(path))?;
    let length = with_context("read", path, || file.metadata())?.len();
    let header = read_header(&file, path)?;
    let mut contents = LogContents {
        follows: header.zxid,
        records: Vec::new(),
        first: None,
        last: header.zxid,
        bytes: 0,
        end: HEADER_LEN as u64,
        tail: Tail::Clean,
    };
    let mut reader = BufReader::with_capacity(1 << 16, &file);
    let problem = loop {
        match with_context("read", path, || next_batch(&mut reader, &header, contents.end, length))?
        {
            NextBatch::Complete(body) => {
                let size = (FRAME_HEADER_LEN + body.len()) as u64;
                let records = match batch::records(body, contents.last) {
                    Ok(records) => records,
                    Err(problem) => {
                        contents.tail = Tail::Damaged { problem };
                        return Ok(contents);
                    }
                };
                contents.first = contents.first.or(records.first().map(|(zxid, _)| *zxid));
                contents.last = records.last().map_or(contents.last, |(zxid, _)| *zxid);
                contents.end += size;
                if contents.last > after {
                    contents.bytes += size;
                    contents.records.extend(records.into_iter().filter(|(zxid, _)| *zxid > after));
                }
            }
            NextBatch::None(problem) => break problem,
        }
    };
    contents.tail =
        with_context("read", path, || classify_tail(&mut file, &header, contents.end, problem))?;
    Ok(contents)
}

fn read_header(file: &File, path: &Path) -> Result<Header, Error> {
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    with_context("read", path, || file.take(HEADER_LEN as u64).read_to_end(&mut bytes))?;
    Header::decode(Kind::Log, path, &bytes)
}

enum NextBatch {
    Complete(Bytes),
    /// There is no complete batch, for this reason.
    None(&'static str),
}

fn next_batch(
    reader: &mut impl Read,
    header: &Header,
    offset: u64,
    length: u64,
) -> io::Result<NextBatch> {
    let left = length.saturating_sub(offset);
    if left < FRAME_HEADER_LEN as u64 {
        return Ok(NextBatch::None("a batch is truncated"));
    }
    let mut bytes = [0; FRAME_HEADER_LEN];
    reader.read_exact(&mut bytes)?;
    let Some(frame) = FrameHeader::parse(&bytes, header.salt, offset) else {
        return Ok(NextBatch::None("neither a batch nor the end of the log"));
    };
    // Checked against the file size before anything is allocated.
    if frame.body_len() as u64 > left - FRAME_HEADER_LEN as u64 {
        return Ok(NextBatch::None("a batch is truncated"));
    }
    let mut body = Vec::new();
    body.try_reserve_exact(frame.body_len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    reader.take(frame.body_len() as u64).read_to_end(&mut body)?;
    if frame.matches(&body) {
        Ok(NextBatch::Complete(Bytes::from(body)))
    } else {
        Ok(NextBatch::None("the checksum of a batch does not match"))
    }
}

/// Distinguishes a clean end of a log from a torn one, and a torn one from damage.
///
/// A batch is written only after the previous one is durable. If there is a valid frame of this log anywhere after the invalid
/// bytes, these were valid once, and no crash can have damaged them.
fn classify_tail(
    file: &mut File,
    header: &Header,
    end: u64,
    problem: &'static str,
) -> io::Result<Tail> {
    file.seek(SeekFrom::Start(end))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut window: Vec<u8> = Vec::new();
    let mut start = end;
    let mut dirty_end = end;
    loop {
        let read = (&mut reader).take(1 << 16).read_to_end(&mut window)?;
        if read == 0 {
            break;
        }
        // Megabytes of zeros are usual here, and comparing whole chunks is much faster than checking each byte.
        let dirty = window.chunks(ZEROS.len()).any(|chunk| *chunk != ZEROS[..chunk.len()]);
        if dirty && let Some(last) = window.iter().rposition(|byte| *byte != 0) {
            dirty_end = dirty_end.max(start + last as u64 + 1);
            let candidates = window.windows(FRAME_HEADER_LEN).zip(start..);
            for (bytes, offset) in candidates.filter(|(_, offset)| *offset > end) {
                if !header.unsynced && FrameHeader::parse(bytes, header.salt, offset).is_some() {
                    return Ok(Tail::Damaged { problem });
                }
            }
        }
        // Keeps the last bytes, because a frame may cross the edge of two windows.
        let done = window.len().saturating_sub(FRAME_HEADER_LEN - 1);
        window.drain(..done);
        start += done as u64;
    }
    Ok(if dirty_end == end { Tail::Clean } else { Tail::Torn { bytes: dirty_end - end, problem } })
}
