//! The lock that ensures that only one console uses a data folder: each keeps the files in memory and would overwrite the other's changes, so that
//! tokens which were revoked in one would come back with the next change in the other.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::error::{ConsoleError, ConsoleErrorKind};

/// An exclusive lock on a data folder, held until dropped; the system releases it when the process dies.
///
/// The lock file itself stays: if it were deleted, two processes could lock two files of the same name.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    pub(super) fn acquire(folder: &Path) -> Result<Self, ConsoleError> {
        let path = folder.join("lock");
        let failed = |error: io::Error| {
            ConsoleError::setting(format!(
                "cannot lock the data folder {}: {error}",
                folder.display()
            ))
            .with_hint(
                "the folder must be writable and support locks; or choose another with --data",
            )
        };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self::with_process_id(file)),
            Err(TryLockError::WouldBlock) => Err(in_use(folder, file)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Writes the process id into a locked file. It is for operators only: a console whose disk is full starts without it.
    fn with_process_id(mut file: File) -> Self {
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the process id into the lock file of the data folder");
        }
        Self { _file: file }
    }
}

fn in_use(folder: &Path, file: File) -> ConsoleError {
    let mut text = String::new();
    let holder =
        file.take(16).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    let holder = holder.map(|process: u32| format!(" (process {process})")).unwrap_or_default();
    ConsoleError::new(
        ConsoleErrorKind::Refused,
        format!("the data folder {} is in use by another console{holder}", folder.display()),
    )
    .with_hint(
        "stop that one, or choose another folder with --data; the lock ends with its process",
    )
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn folder_is_locked_once_at_a_time() {
        let folder = TempDir::new().unwrap();
        let lock = FolderLock::acquire(folder.path()).unwrap();

        let error = FolderLock::acquire(folder.path()).unwrap_err();
        assert_eq!(error.kind, ConsoleErrorKind::Refused);
        assert!(error.problem.message.contains(&std::process::id().to_string()), "{error}");

        drop(lock);
        FolderLock::acquire(folder.path()).unwrap();
    }

    #[test]
    fn folder_is_locked_even_if_the_process_id_cannot_be_written() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let read_only = File::open(&path).unwrap();
        read_only.try_lock().unwrap();

        let _lock = FolderLock::with_process_id(read_only);

        let error = FolderLock::acquire(folder.path()).unwrap_err();
        assert_eq!(error.kind, ConsoleErrorKind::Refused);
        assert!(!error.problem.message.contains("process"), "it is not known: {error}");
    }
}
