//! Keeps other users of the machine away from the data: the log contains session passwords, with which a session can be taken
//! over, and data that access lists protect.
//!
//! What the store creates has these modes from the start. Files and directories of earlier versions, or of an operator, are
//! tightened by every open. A directory is tightened only if it contains nothing but the store's files: other programs may need
//! one that is shared, such as `/var/lib`. Its files are private even then.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use rustix::fs::OFlags;

use super::files;

pub(super) const DIR_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;

const ACCESS_FOR_OTHERS: u32 = 0o077;
/// Mode bits with which others can replace files in a directory.
const WRITE_FOR_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Takes the access of other users to an existing data directory away. A file that belongs to another user is only reported: it
/// may be readable all the same.
pub(super) fn tighten(dir: &Path) {
    // If it fails, the recovery reports the error: it reads the directory too.
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut is_exclusive = true;
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(files::is_store_name) {
            let path = entry.path();
            report(&path, tighten_file(&path));
        } else {
            is_exclusive = false;
        }
    }
    if is_exclusive {
        report(dir, tighten_dir(dir));
    } else if fs::metadata(dir).is_ok_and(|dir| is_open_for_writing(dir.permissions().mode())) {
        tracing::warn!(
            folder = %dir.display(),
            hint = "use a folder of its own for the data",
            "other users may replace files in the data folder"
        );
    }
}

fn is_open(mode: u32) -> bool {
    mode & ACCESS_FOR_OTHERS != 0
}

fn is_open_for_writing(mode: u32) -> bool {
    mode & WRITE_FOR_OTHERS != 0 && mode & STICKY == 0
}

fn tighten_dir(dir: &Path) -> io::Result<()> {
    if is_open(fs::metadata(dir)?.permissions().mode()) {
        fs::set_permissions(dir, Permissions::from_mode(DIR_MODE))?;
    }
    Ok(())
}

fn tighten_file(path: &Path) -> io::Result<()> {
    // A link could name any file of the machine. Opening a pipe must not wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && is_open(metadata.permissions().mode()) {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}

fn report(path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(
            file = %path.display(),
            %error,
            hint = "the user that runs the server must own the data folder and its files",
            "cannot make data private"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{
        super::{Options, Store},
        *,
    };

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Everything in the directory, with its mode.
    fn modes(dir: &Path) -> Vec<(String, u32)> {
        let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
        let mut modes: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())))
            .collect();
        modes.sort();
        modes
    }

    /// Writes a log and a snapshot.
    fn write(dir: &Path) {
        let (mut store, _) = Store::open(dir, Options::default()).unwrap();
        store.append(1, b"a session password");
        store.commit().unwrap();
        store.begin_snapshot(1).unwrap().write([b"the same"]).unwrap();
        store.append(2, b"another");
        store.commit().unwrap();
    }

    #[test]
    fn data_is_created_private() {
        let parent = tempfile::tempdir().unwrap();
        set_mode(parent.path(), 0o755);
        let dir = parent.path().join("registry/of/tests/data");

        write(&dir);

        let found = modes(&dir);
        assert_eq!(found.len(), 4, "a lock, two logs and a snapshot: {found:?}");
        assert!(found.iter().all(|(_, mode)| *mode == FILE_MODE), "{found:?}");
        for created in ["registry", "registry/of", "registry/of/tests", "registry/of/tests/data"] {
            assert_eq!(mode(&parent.path().join(created)), DIR_MODE, "{created}");
        }
        assert_eq!(mode(parent.path()), 0o755, "a folder that existed is left alone");
    }

    #[test]
    fn open_tightens_data_of_an_earlier_version() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        for name in ["log.00000000000000ff.torn", "snapshot.00000000000000ff.bad"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        for (name, _) in modes(dir.path()) {
            set_mode(&dir.path().join(name), 0o644);
        }
        set_mode(dir.path(), 0o755);

        drop(Store::open(dir.path(), Options::default()).unwrap());

        let found = modes(dir.path());
        assert!(found.iter().all(|(_, mode)| *mode == FILE_MODE), "{found:?}");
        assert_eq!(mode(dir.path()), DIR_MODE);
    }

    #[test]
    fn shared_directory_keeps_its_mode_and_its_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let foreign = dir.path().join("other-program");
        fs::write(&foreign, "").unwrap();
        set_mode(&foreign, 0o644);
        set_mode(dir.path(), 0o755);

        write(dir.path());
        drop(Store::open(dir.path(), Options::default()).unwrap());

        assert_eq!((mode(dir.path()), mode(&foreign)), (0o755, 0o644));
        let found = modes(dir.path()).into_iter().filter(|(name, _)| name != "other-program");
        assert!(found.clone().all(|(_, mode)| mode == FILE_MODE), "{:?}", modes(dir.path()));
    }

    #[test]
    fn link_in_the_directory_does_not_change_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let target = tempfile::NamedTempFile::new().unwrap();
        set_mode(target.path(), 0o644);
        symlink(target.path(), dir.path().join("log.00000000000000ff.torn")).unwrap();

        tighten(dir.path());

        assert_eq!(mode(target.path()), 0o644);
    }
}
