//! The lock that ensures that only one process uses a data directory.

use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::{Error, disk::with_context, files, privacy::FILE_MODE};

/// An exclusive lock on a data directory, held until dropped; the system releases it when the process dies.
///
/// The lock file itself stays: if it were deleted, two processes could lock two files of the same name.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    pub(super) fn acquire(dir: &Path) -> Result<DirLock, Error> {
        let path = dir.join(files::LOCK);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = with_context("open", &path, || options.open(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { dir: dir.to_owned(), holder: holder(file) });
            }
            Err(TryLockError::Error(source)) => {
                return Err(Error::Io { action: "lock", path, source });
            }
        }
        // For operators only; it does not matter whether it reaches the disk.
        with_context("write to", &path, || {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())
        })?;
        Ok(DirLock { _file: file })
    }
}

fn holder(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
