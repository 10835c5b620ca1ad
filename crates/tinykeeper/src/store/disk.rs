//! All operations that change the disk. Their errors name the action and the file. Tests can record the steps, fail one of them,
//! or simulate a crash after any of them (`step_recorder`).

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

#[cfg(test)]
use super::step_recorder::{self, Step};
use super::{
    Error,
    privacy::{DIR_MODE, FILE_MODE},
};

/// A file that is written sequentially.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: File,
    path: PathBuf,
    position: u64,
}

impl OutputFile {
    /// Creates an empty file, or truncates an existing one. Only this user can read it.
    pub(super) fn create(path: PathBuf) -> Result<OutputFile, Error> {
        let file = with_context("create", &path, || {
            #[cfg(test)]
            step_recorder::record(|| Step::Create(path.clone()))?;
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(FILE_MODE);
            let file = options.open(&path)?;
            // An existing file keeps its mode.
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
            Ok(file)
        })?;
        Ok(OutputFile { file, path, position: 0 })
    }

    /// Opens a file to truncate or sync it, positioned at `end`.
    pub(super) fn reopen(path: PathBuf, end: u64) -> Result<OutputFile, Error> {
        let file = with_context("open", &path, || File::options().write(true).open(&path))?;
        Ok(OutputFile { file, path, position: end })
    }

    /// Number of bytes written.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        with_context("write to", &self.path, || {
            #[cfg(test)]
            step_recorder::record(|| Step::Write {
                path: self.path.clone(),
                offset: self.position,
                bytes: bytes.to_vec(),
            })?;
            self.file.write_all(bytes)
        })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Sets the length of the file; if it grows, the new part is a hole that reads as zeros.
    pub(super) fn set_len(&mut self, len: u64) -> Result<(), Error> {
        with_context("change the length of", &self.path, || {
            #[cfg(test)]
            step_recorder::record(|| Step::SetLen { path: self.path.clone(), len })?;
            self.file.set_len(len)
        })
    }

    /// Waits until the contents, and the length needed to read them, are on disk.
    pub(super) fn sync_data(&mut self) -> Result<(), Error> {
        with_context("sync", &self.path, || {
            #[cfg(test)]
            if step_recorder::is_recording() {
                return step_recorder::record(|| Step::Sync(self.path.clone()));
            }
            self.file.sync_data()
        })
    }

    /// Waits until the contents and all metadata of the file are on disk.
    pub(super) fn sync_all(&mut self) -> Result<(), Error> {
        with_context("sync", &self.path, || {
            #[cfg(test)]
            if step_recorder::is_recording() {
                return step_recorder::record(|| Step::Sync(self.path.clone()));
            }
            self.file.sync_all()
        })
    }

    /// Gives the file its final name, replacing an existing file.
    pub(super) fn rename(&mut self, to: PathBuf) -> Result<(), Error> {
        rename(&self.path, &to)?;
        self.path = to;
        Ok(())
    }
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    with_context("rename", from, || {
        #[cfg(test)]
        step_recorder::record(|| Step::Rename { from: from.to_owned(), to: to.to_owned() })?;
        fs::rename(from, to)
    })
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    with_context("remove", path, || {
        #[cfg(test)]
        step_recorder::record(|| Step::Remove(path.to_owned()))?;
        fs::remove_file(path)
    })
}

/// Waits until the file names in `dir` are on disk.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    with_context("sync", dir, || {
        #[cfg(test)]
        if step_recorder::is_recording() {
            return step_recorder::record(|| Step::SyncDir);
        }
        // On other systems a directory cannot be opened as a file, and names need no separate sync.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    })
}

/// Creates `dir` and its missing parents durably. Only this user can access what is created.
pub(super) fn create_dir(dir: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = dir
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
        .collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIR_MODE);
    with_context("create", dir, || builder.create(dir))?;
    for ancestor in missing {
        match ancestor.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent)?,
            Some(_) => sync_dir(Path::new("."))?,
            None => {}
        }
    }
    Ok(())
}

/// Runs one step; adds the action and the path to its error.
pub(super) fn with_context<T>(
    action: &'static str,
    path: &Path,
    step: impl FnOnce() -> io::Result<T>,
) -> Result<T, Error> {
    step().map_err(|source| Error::Io { action, path: path.to_owned(), source })
}
