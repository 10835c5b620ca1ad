//! Reading a log. What is found is described here and judged in `recovery`.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use bytes::Bytes;

use super::{
    Error,
    batch::{self, FRAME_LEN, Frame},
    disk::attempt,
    header::{HEADER_LEN, Header, Kind},
};

static ZEROS: [u8; 1 << 12] = [0; 1 << 12];

/// What a log contains, as far as it can be read.
#[derive(Debug)]
pub(super) struct Contents {
    /// The last zxid before this log, as its header says.
    pub(super) follows: i64,
    /// The records after the zxid asked for.
    pub(super) records: Vec<(i64, Bytes)>,
    /// Zxid of the first record, if there is any.
    pub(super) first: Option<i64>,
    /// Zxid of the last record, or `follows` if there is none.
    pub(super) last: i64,
    /// Bytes of the batches after that zxid.
    pub(super) bytes: u64,
    /// Where the last whole batch ends.
    pub(super) end: u64,
    /// What follows there.
    pub(super) tail: Tail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or zeros allocated ahead.
    Clean,
    /// So many bytes that are no whole batch, with no later batch behind them: what a crash leaves.
    Torn { bytes: u64, what: &'static str },
    /// What no crash leaves: it was durable once, or it never was right.
    Damaged { what: &'static str },
}

/// The header of a log, without its records.
pub(super) fn header(path: &Path) -> Result<Header, Error> {
    let file = attempt("open", path, || File::open(path))?;
    read_header(&file, path)
}

/// Reads the log at `path`, keeping records after `after`.
pub(super) fn contents(path: &Path, after: i64) -> Result<Contents, Error> {
    let mut file = attempt("open", path, || File::open(path))?;
    let length = attempt("read", path, || file.metadata())?.len();
    let header = read_header(&file, path)?;
    let mut contents = Contents {
        follows: header.zxid,
        records: Vec::new(),
        first: None,
        last: header.zxid,
        bytes: 0,
        end: HEADER_LEN as u64,
        tail: Tail::Clean,
    };
    let mut reader = BufReader::with_capacity(1 << 16, &file);
    let what = loop {
        match attempt("read", path, || next_batch(&mut reader, &header, contents.end, length))? {
            Next::Batch(body) => {
                let size = (FRAME_LEN + body.len()) as u64;
                let records = match batch::records(body, contents.last) {
                    Ok(records) => records,
                    Err(what) => {
                        contents.tail = Tail::Damaged { what };
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
            Next::Nothing(what) => break what,
        }
    };
    contents.tail = attempt("read", path, || judge(&mut file, &header, contents.end, what))?;
    Ok(contents)
}

fn read_header(file: &File, path: &Path) -> Result<Header, Error> {
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    attempt("read", path, || file.take(HEADER_LEN as u64).read_to_end(&mut bytes))?;
    Header::decode(Kind::Log, path, &bytes)
}

enum Next {
    Batch(Bytes),
    /// No whole batch here, and why.
    Nothing(&'static str),
}

fn next_batch(
    reader: &mut impl Read,
    header: &Header,
    offset: u64,
    length: u64,
) -> io::Result<Next> {
    let left = length.saturating_sub(offset);
    if left < FRAME_LEN as u64 {
        return Ok(Next::Nothing("a batch is cut short"));
    }
    let mut bytes = [0; FRAME_LEN];
    reader.read_exact(&mut bytes)?;
    let Some(frame) = Frame::parse(&bytes, header.salt, offset) else {
        return Ok(Next::Nothing("there is no batch, and no end of the log"));
    };
    // Bounded by the file before anything is allocated for it.
    if frame.body_len() as u64 > left - FRAME_LEN as u64 {
        return Ok(Next::Nothing("a batch is cut short"));
    }
    let mut body = Vec::new();
    body.try_reserve_exact(frame.body_len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    reader.take(frame.body_len() as u64).read_to_end(&mut body)?;
    if frame.fits(&body) {
        Ok(Next::Batch(Bytes::from(body)))
    } else {
        Ok(Next::Nothing("the checksum of a batch does not match"))
    }
}

/// Tells the clean end of a log from a torn one, and a torn one from damage.
///
/// A batch is written only after the one before it is durable. So if a frame of this log stands
/// anywhere behind the bad bytes, these were whole once, and no crash of ours has made them bad.
fn judge(file: &mut File, header: &Header, end: u64, what: &'static str) -> io::Result<Tail> {
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
        // Megabytes of zeros are usual here, and comparing is much faster than looking at each.
        let dirty = window.chunks(ZEROS.len()).any(|chunk| *chunk != ZEROS[..chunk.len()]);
        if dirty && let Some(last) = window.iter().rposition(|byte| *byte != 0) {
            dirty_end = dirty_end.max(start + last as u64 + 1);
            let candidates = window.windows(FRAME_LEN).zip(start..);
            for (bytes, offset) in candidates.filter(|(_, offset)| *offset > end) {
                if !header.unsynced && Frame::parse(bytes, header.salt, offset).is_some() {
                    return Ok(Tail::Damaged { what });
                }
            }
        }
        // What a frame across the edge of two windows needs of the first.
        let done = window.len().saturating_sub(FRAME_LEN - 1);
        window.drain(..done);
        start += done as u64;
    }
    Ok(if dirty_end == end { Tail::Clean } else { Tail::Torn { bytes: dirty_end - end, what } })
}
