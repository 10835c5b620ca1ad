//! A snapshot: everything up to a zxid, in one file that replaces the logs up to there.
//!
//! ```text
//! header · body · length of the body u64 · crc32 of all before u32                        big-endian
//! ```
//!
//! Two are kept. The older one and the logs since are what open falls back to when the newer one
//! turns out to be unreadable; only what neither needs is deleted.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use bytes::Bytes;

use super::{
    Error,
    disk::{self, Output, attempt},
    files::{self, Listing},
    header::{HEADER_LEN, Header, Kind, u32_at, u64_at},
    lock::Lock,
    replay,
};

const TRAILER_LEN: usize = 12;
const KEPT: usize = 2;
const WRITE_SIZE: usize = 1 << 18;

/// A snapshot that was begun with [`Store::begin_snapshot`](super::Store::begin_snapshot).
///
/// It may be written by another thread while the store goes on. Dropped unwritten, it has no effect
/// but a new log file. It keeps the folder locked as long as it lives.
#[derive(Debug)]
pub struct SnapshotWriter {
    dir: PathBuf,
    zxid: i64,
    ticket: Arc<Ticket>,
}

/// Lives as long as a writer, so that the store can see whether one does.
#[derive(Debug)]
pub(super) struct Ticket {
    _lock: Arc<Lock>,
}

impl SnapshotWriter {
    pub(super) fn new(dir: PathBuf, zxid: i64, lock: Arc<Lock>) -> SnapshotWriter {
        SnapshotWriter { dir, zxid, ticket: Arc::new(Ticket { _lock: lock }) }
    }

    pub(super) fn ticket(&self) -> Weak<Ticket> {
        Arc::downgrade(&self.ticket)
    }

    /// Writes the snapshot, the chunks one after the other, and deletes what is no longer needed.
    ///
    /// `Ok` means that it is durable. After an error nothing has changed: the store goes on with its
    /// logs, and a later snapshot may succeed.
    pub fn write<C: AsRef<[u8]>>(self, chunks: impl IntoIterator<Item = C>) -> Result<(), Error> {
        let path = files::snapshot_path(&self.dir, self.zxid);
        let unfinished = files::beside(&path, "tmp");
        if let Err(error) = write_file(&self.dir, &unfinished, path, self.zxid, chunks) {
            // It may be what fills the disk. The next open removes it if this fails too.
            let _ = disk::remove(&unfinished);
            return Err(error);
        }
        if let Err(error) = prune(&self.dir) {
            let cause = &error as &dyn std::error::Error;
            tracing::warn!(dir = %self.dir.display(), error = cause, "old files not deleted");
        }
        Ok(())
    }
}

fn write_file<C: AsRef<[u8]>>(
    dir: &Path,
    unfinished: &Path,
    path: PathBuf,
    zxid: i64,
    chunks: impl IntoIterator<Item = C>,
) -> Result<(), Error> {
    let mut file = Output::create(unfinished.to_owned())?;
    let mut crc = crc32fast::Hasher::new();
    let mut write = |file: &mut Output, bytes: &[u8]| {
        crc.update(bytes);
        file.write(bytes)
    };
    write(&mut file, &Header::new(Kind::Snapshot, zxid).encode())?;
    // Small chunks are gathered, large ones written as they are.
    let mut gathered: Vec<u8> = Vec::with_capacity(WRITE_SIZE);
    let mut length = 0;
    for chunk in chunks {
        let chunk = chunk.as_ref();
        length += chunk.len() as u64;
        if gathered.len() + chunk.len() > WRITE_SIZE {
            write(&mut file, &gathered)?;
            gathered.clear();
        }
        if chunk.len() > WRITE_SIZE {
            write(&mut file, chunk)?;
        } else {
            gathered.extend_from_slice(chunk);
        }
    }
    gathered.extend_from_slice(&length.to_be_bytes());
    write(&mut file, &gathered)?;
    file.write(&crc.finalize().to_be_bytes())?;
    file.sync_all()?;
    file.rename(path)?;
    disk::sync_dir(dir)
}

/// Deletes the snapshots before the newest two and the logs that the older of these has no use for.
fn prune(dir: &Path) -> Result<(), Error> {
    let Listing { logs, snapshots, .. } = Listing::of(dir)?;
    let Some(oldest_kept) = snapshots.len().checked_sub(KEPT) else {
        return Ok(());
    };
    let needed_after = snapshots[oldest_kept].0;
    for (_, path) in &snapshots[..oldest_kept] {
        disk::remove(path)?;
    }
    for pair in logs.windows(2) {
        // The newest log always stays: it says where the chain ends.
        let [(_, path), (_, next)] = pair else { break };
        if replay::header(next)?.zxid > needed_after {
            break;
        }
        disk::remove(path)?;
    }
    disk::sync_dir(dir)
}

/// What a snapshot file turned out to be.
#[derive(Debug)]
pub(super) enum Reading {
    Whole(Bytes),
    Damaged(&'static str),
}

/// Reads and checks the snapshot at `path`. A file of a newer version or one that the system cannot
/// read is an error, not damage: falling back to an older one would lose what it holds.
pub(super) fn read(path: &Path, zxid: i64) -> Result<Reading, Error> {
    let mut file = attempt("open", path, || File::open(path))?;
    let mut header = Vec::with_capacity(HEADER_LEN);
    attempt("read", path, || (&file).take(HEADER_LEN as u64).read_to_end(&mut header))?;
    match Header::decode(Kind::Snapshot, path, &header) {
        Ok(decoded) if decoded.zxid == zxid => {}
        Ok(_) => return Ok(Reading::Damaged("it is of another zxid than its name says")),
        Err(Error::BadHeader { what, .. }) => return Ok(Reading::Damaged(what)),
        Err(error) => return Err(error),
    }
    attempt("read", path, || read_body(&mut file, &header))
}

fn read_body(file: &mut File, header: &[u8]) -> io::Result<Reading> {
    let overhead = (HEADER_LEN + TRAILER_LEN) as u64;
    let Some(length) = file.metadata()?.len().checked_sub(overhead) else {
        return Ok(Reading::Damaged("it is cut short"));
    };
    let mut trailer = [0; TRAILER_LEN];
    file.seek(SeekFrom::End(-(TRAILER_LEN as i64)))?;
    file.read_exact(&mut trailer)?;
    // Before anything is allocated for the body.
    if u64_at(&trailer, 0) != length {
        return Ok(Reading::Damaged("its length is not what it was when written"));
    }
    let mut body = Vec::new();
    let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
    body.try_reserve_exact(usize::try_from(length).map_err(|_| out_of_memory())?)
        .map_err(|_| out_of_memory())?;
    file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
    file.take(length).read_to_end(&mut body)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(header);
    crc.update(&body);
    crc.update(&trailer[..8]);
    if crc.finalize() == u32_at(&trailer, 8) {
        Ok(Reading::Whole(Bytes::from(body)))
    } else {
        Ok(Reading::Damaged("its checksum does not match"))
    }
}
