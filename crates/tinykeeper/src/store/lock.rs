//! One process, one folder.

use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    path::Path,
};

use super::{Error, disk::attempt};

/// The right to write in a folder, until dropped; the system takes it back when the process dies.
///
/// The file itself stays: deleting it would let two processes lock two files of the same name.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(dir: &Path) -> Result<Lock, Error> {
        let path = dir.join("lock");
        let mut file = attempt("open", &path, || {
            File::options().read(true).write(true).create(true).truncate(false).open(&path)
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { dir: dir.to_owned(), holder: holder(file) });
            }
            Err(TryLockError::Error(source)) => {
                return Err(Error::Io { action: "lock", path, source });
            }
        }
        // Only for people to read; whether it reaches the disk does not matter.
        attempt("write to", &path, || {
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())
        })?;
        Ok(Lock { _file: file })
    }
}

fn holder(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
