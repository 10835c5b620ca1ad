//! Keeps other users of the machine away from an SQLite file: parameters, output and errors of jobs may be confidential.
//!
//! SQLite creates a file that everyone may read, unless the umask forbids it, and gives `-wal` and `-shm` the mode of the file. So
//! the file is created before SQLite opens it, and existing files are tightened. A file that its group may write is shared on
//! purpose, by a worker and a console of different users, and stays so.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::process::geteuid;

const OWN: u32 = 0o600;
const GROUP: u32 = 0o060;
const GROUP_WRITE: u32 = 0o020;
/// The files that SQLite keeps beside its own.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Creates a missing file so that only this user can read it, and takes the access of others to existing files away.
///
/// An existing file is not opened: closing it would release the locks that other connections of this process hold on it.
/// Errors are left to SQLite, which opens the same file and reports why it cannot.
pub(super) fn make_private(file: &Path) {
    if !file.exists() && create(file).is_ok() {
        return;
    }
    for path in
        std::iter::once(file.to_owned()).chain(COMPANIONS.map(|suffix| beside(file, suffix)))
    {
        if let Err(error) = tighten(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                file = %path.display(),
                %error,
                hint = "set its mode to 0600",
                "cannot make the history file private"
            );
        }
    }
}

/// Creates an empty file under another name, and gives it its own once it is closed. Fails if there is one.
fn create(file: &Path) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unnamed = beside(file, &format!("-new-{}-{number}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).mode(OWN).open(&unnamed)?;
    let named = fs::hard_link(&unnamed, file);
    fs::remove_file(&unnamed)?;
    named
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}

fn tighten(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    // Only its owner may change the mode; a pipe or a device has no content to protect.
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let mode = metadata.permissions().mode();
    let shared = if mode & GROUP_WRITE == 0 { 0 } else { mode & GROUP };
    if mode & 0o077 == shared {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & OWN | shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn missing_file_is_created_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");

        make_private(&file);

        assert_eq!(mode(&file), 0o600);
    }

    #[test]
    fn existing_files_lose_the_access_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let all = [file.clone(), beside(&file, "-wal"), beside(&file, "-shm")];
        for (before, after) in [(0o644, 0o600), (0o666, 0o660), (0o660, 0o660), (0o600, 0o600)] {
            for path in &all {
                fs::write(path, "content").unwrap();
                fs::set_permissions(path, Permissions::from_mode(before)).unwrap();
            }

            make_private(&file);

            for path in &all {
                assert_eq!(mode(path), after, "{} was {before:o}", path.display());
                assert_eq!(fs::read(path).unwrap(), b"content");
            }
        }
    }
}
