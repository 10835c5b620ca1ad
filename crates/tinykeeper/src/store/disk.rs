//! Every step that changes the disk, in one place: each says what was tried on which file, and a
//! test can record the steps, fail one of them, or cut the power after any (`tape`).

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::Error;
#[cfg(test)]
use super::tape::{self, Step};

/// A file being written from its start to its end.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    path: PathBuf,
    position: u64,
}

impl Output {
    /// Makes an empty file, or empties the one that is there.
    pub(super) fn create(path: PathBuf) -> Result<Output, Error> {
        let file = attempt("create", &path, || {
            #[cfg(test)]
            tape::record(|| Step::Create(path.clone()))?;
            File::create(&path)
        })?;
        Ok(Output { file, path, position: 0 })
    }

    /// Opens a file to shorten or sync it, positioned at `end`.
    pub(super) fn reopen(path: PathBuf, end: u64) -> Result<Output, Error> {
        let file = attempt("open", &path, || File::options().write(true).open(&path))?;
        Ok(Output { file, path, position: end })
    }

    /// How many bytes were written.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        attempt("write to", &self.path, || {
            #[cfg(test)]
            tape::record(|| Step::Write {
                path: self.path.clone(),
                offset: self.position,
                bytes: bytes.to_vec(),
            })?;
            self.file.write_all(bytes)
        })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Makes the file `len` bytes long: zeros, as a hole, when it grows.
    pub(super) fn set_len(&mut self, len: u64) -> Result<(), Error> {
        attempt("change the length of", &self.path, || {
            #[cfg(test)]
            tape::record(|| Step::SetLen { path: self.path.clone(), len })?;
            self.file.set_len(len)
        })
    }

    /// Waits until the contents, and a length that is needed to read them, are on the disk.
    pub(super) fn sync_data(&mut self) -> Result<(), Error> {
        attempt("sync", &self.path, || {
            #[cfg(test)]
            if tape::is_recording() {
                return tape::record(|| Step::Sync(self.path.clone()));
            }
            self.file.sync_data()
        })
    }

    /// Waits until the contents and everything about the file are on the disk.
    pub(super) fn sync_all(&mut self) -> Result<(), Error> {
        attempt("sync", &self.path, || {
            #[cfg(test)]
            if tape::is_recording() {
                return tape::record(|| Step::Sync(self.path.clone()));
            }
            self.file.sync_all()
        })
    }

    /// Gives the file its final name, replacing what has it.
    pub(super) fn rename(&mut self, to: PathBuf) -> Result<(), Error> {
        rename(&self.path, &to)?;
        self.path = to;
        Ok(())
    }
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    attempt("rename", from, || {
        #[cfg(test)]
        tape::record(|| Step::Rename { from: from.to_owned(), to: to.to_owned() })?;
        fs::rename(from, to)
    })
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    attempt("remove", path, || {
        #[cfg(test)]
        tape::record(|| Step::Remove(path.to_owned()))?;
        fs::remove_file(path)
    })
}

/// Waits until the names in `dir` are on the disk.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    attempt("sync", dir, || {
        #[cfg(test)]
        if tape::is_recording() {
            return tape::record(|| Step::SyncDir);
        }
        // Elsewhere a folder cannot be opened as a file, and names need no sync of their own.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    })
}

/// Makes `dir` and its missing parents, durably.
pub(super) fn create_dir(dir: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = dir
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        .collect();
    attempt("create", dir, || fs::create_dir_all(dir))?;
    for folder in missing {
        match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent)?,
            Some(_) => sync_dir(Path::new("."))?,
            None => {}
        }
    }
    Ok(())
}

/// Runs one step on `path`; its error says what was tried.
pub(super) fn attempt<T>(
    action: &'static str,
    path: &Path,
    step: impl FnOnce() -> io::Result<T>,
) -> Result<T, Error> {
    step().map_err(|source| Error::Io { action, path: path.to_owned(), source })
}
