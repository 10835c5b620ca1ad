//! A snapshot: the state up to a zxid in one file, which replaces the logs up to that zxid.
//!
//! ```text
//! header · body · length of the body u64 · crc32 of all before u32                        big-endian
//! ```
//!
//! The store keeps two snapshots. If the newer one is unreadable, open uses the older one and the logs since then; only files that
//! neither snapshot needs are deleted.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use bytes::Bytes;

use super::{
    Error,
    disk::{self, OutputFile, with_context},
    files::{self, Listing},
    header::{HEADER_LEN, Header, Kind, u32_at, u64_at},
    lock::DirLock,
    replay,
};

const TRAILER_LEN: usize = 12;
const SNAPSHOTS_TO_KEEP: usize = 2;
const WRITE_SIZE: usize = 1 << 18;

/// A snapshot that was begun with [`Store::begin_snapshot`](super::Store::begin_snapshot).
///
/// Another thread may write it while the store continues. If it is dropped unwritten, its only effect is a new log file. It keeps
/// the directory locked until it is dropped.
#[derive(Debug)]
pub struct SnapshotWriter {
    dir: PathBuf,
    zxid: i64,
    guard: Arc<WriterGuard>,
}

/// Exists as long as its writer, so that the store can see whether there is one.
#[derive(Debug)]
pub(super) struct WriterGuard {
    _lock: Arc<DirLock>,
}

impl SnapshotWriter {
    pub(super) fn new(dir: PathBuf, zxid: i64, lock: Arc<DirLock>) -> SnapshotWriter {
        SnapshotWriter { dir, zxid, guard: Arc::new(WriterGuard { _lock: lock }) }
    }

    pub(super) fn guard(&self) -> Weak<WriterGuard> {
        Arc::downgrade(&self.guard)
    }

    /// Writes the snapshot from `chunks` and deletes files that are no longer needed.
    ///
    /// `Ok` means that the snapshot is durable. After an error nothing has changed: the store continues with its logs, and a later
    /// snapshot may succeed.
    pub fn write<C: AsRef<[u8]>>(self, chunks: impl IntoIterator<Item = C>) -> Result<(), Error> {
        let path = files::snapshot_path(&self.dir, self.zxid);
        let unfinished = files::with_suffix(&path, "tmp");
        if let Err(error) = write_file(&self.dir, &unfinished, path, self.zxid, chunks) {
            // The unfinished file may be what fills the disk. If this fails too, the next open deletes it.
            let _ = disk::remove(&unfinished);
            return Err(error);
        }
        if let Err(error) = prune(&self.dir) {
            let cause = &error as &dyn std::error::Error;
            tracing::warn!(folder = %self.dir.display(), error = cause, "old files not deleted");
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
    let mut file = OutputFile::create(unfinished.to_owned())?;
    let mut crc = crc32fast::Hasher::new();
    let mut write = |file: &mut OutputFile, bytes: &[u8]| {
        crc.update(bytes);
        file.write(bytes)
    };
    write(&mut file, &Header::new(Kind::Snapshot, zxid).encode())?;
    // Small chunks are buffered, large ones written directly.
    let mut buffered: Vec<u8> = Vec::with_capacity(WRITE_SIZE);
    let mut length = 0;
    for chunk in chunks {
        let chunk = chunk.as_ref();
        length += chunk.len() as u64;
        if buffered.len() + chunk.len() > WRITE_SIZE {
            write(&mut file, &buffered)?;
            buffered.clear();
        }
        if chunk.len() > WRITE_SIZE {
            write(&mut file, chunk)?;
        } else {
            buffered.extend_from_slice(chunk);
        }
    }
    buffered.extend_from_slice(&length.to_be_bytes());
    write(&mut file, &buffered)?;
    file.write(&crc.finalize().to_be_bytes())?;
    file.sync_all()?;
    file.rename(path)?;
    disk::sync_dir(dir)
}

/// Deletes the snapshots before the newest two, and the logs that the older of these two does not need.
fn prune(dir: &Path) -> Result<(), Error> {
    let Listing { logs, snapshots, .. } = Listing::of(dir)?;
    let Some(oldest_kept) = snapshots.len().checked_sub(SNAPSHOTS_TO_KEEP) else {
        return Ok(());
    };
    let needed_after = snapshots[oldest_kept].0;
    for (_, path) in &snapshots[..oldest_kept] {
        disk::remove(path)?;
    }
    for pair in logs.windows(2) {
        // The newest log always stays: it marks the end of the chain.
        let [(_, path), (_, next)] = pair else { break };
        if replay::header(next)?.zxid > needed_after {
            break;
        }
        disk::remove(path)?;
    }
    disk::sync_dir(dir)
}

/// A snapshot file after its checks.
#[derive(Debug)]
pub(super) enum SnapshotFile {
    Intact(Bytes),
    Damaged(&'static str),
}

/// Reads and checks the snapshot at `path`. A file of a newer version, or one that the system cannot read, is an error and not
/// damage: using an older snapshot instead would lose its data.
pub(super) fn read(path: &Path, zxid: i64) -> Result<SnapshotFile, Error> {
    let mut file = with_context("open", path, || File::open(path))?;
    let mut header = Vec::with_capacity(HEADER_LEN);
    with_context("read", path, || (&file).take(HEADER_LEN as u64).read_to_end(&mut header))?;
    match Header::decode(Kind::Snapshot, path, &header) {
        Ok(decoded) if decoded.zxid == zxid => {}
        Ok(_) => return Ok(SnapshotFile::Damaged("its zxid differs from the one in its name")),
        Err(Error::BadHeader { problem, .. }) => return Ok(SnapshotFile::Damaged(problem)),
        Err(error) => return Err(error),
    }
    with_context("read", path, || read_body(&mut file, &header))
}

fn read_body(file: &mut File, header: &[u8]) -> io::Result<SnapshotFile> {
    let overhead = (HEADER_LEN + TRAILER_LEN) as u64;
    let Some(length) = file.metadata()?.len().checked_sub(overhead) else {
        return Ok(SnapshotFile::Damaged("it is truncated"));
    };
    let mut trailer = [0; TRAILER_LEN];
    file.seek(SeekFrom::End(-(TRAILER_LEN as i64)))?;
    file.read_exact(&mut trailer)?;
    // Checked before anything is allocated for the body.
    if u64_at(&trailer, 0) != length {
        return Ok(SnapshotFile::Damaged("its length differs from the recorded one"));
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
        Ok(SnapshotFile::Intact(Bytes::from(body)))
    } else {
        Ok(SnapshotFile::Damaged("its checksum does not match"))
    }
}
