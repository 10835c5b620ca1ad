//! The console's data folder and its small JSON files: readable only by its own user; a file is always replaced as a whole.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use serde::Serialize;

use crate::http::problem::{Code, Problem};

/// Creates the data folder, or takes the access of other users to the files in an existing one away: they contain hashes of
/// passwords and tokens, passwords of registries, and the audit. A folder that other programs use, too, keeps its mode.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut is_exclusive = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_none_or(|name| !is_console_file(name)) {
            is_exclusive = false;
        } else if entry.file_type()?.is_file() {
            tighten(&entry.path(), 0o600);
        }
    }
    if is_exclusive {
        tighten(folder, 0o700);
    }
    Ok(())
}

fn is_console_file(name: &str) -> bool {
    let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
    match stem {
        "accounts" | "familiar" | "registries" | "histories" => matches!(rest, "json" | "new"),
        "audit" => rest.ends_with("jsonl"),
        "lock" => rest.is_empty(),
        _ => false,
    }
}

fn tighten(path: &Path, mode: u32) {
    let is_open = |file: fs::Metadata| file.permissions().mode() & 0o077 != 0;
    if !fs::metadata(path).is_ok_and(is_open) {
        return;
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode)) {
        tracing::warn!(
            path = %path.display(),
            %error,
            hint = "the user that runs the console must own its data folder",
            "cannot make console data private"
        );
    }
}

/// Replaces a file atomically: a reader sees either the old or the new content.
pub(crate) fn replace(path: &Path, content: &impl Serialize) -> Result<(), Problem> {
    write(path, content).map_err(|error| {
        tracing::error!(%error, path = %path.display(), "cannot write console file");
        Problem::new(Code::Internal, format!("cannot store the change on the server: {error}"))
            .with_hint("the data folder must be writable")
    })
}

fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    // A temporary file left behind by a crash may have other permissions.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(&serde_json::to_vec_pretty(content)?)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn data_folder_is_created_private() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("state/console");

        create_private_folder(&folder).unwrap();

        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn existing_data_is_tightened_and_foreign_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let own = ["accounts.json", "audit.jsonl", "audit.000000000017.jsonl", "registries.new"];
        let set_mode = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for name in own {
            fs::write(path(name), "").unwrap();
            set_mode(&path(name), 0o644);
        }
        set_mode(folder.path(), 0o755);

        create_private_folder(folder.path()).unwrap();
        assert_eq!((mode(folder.path()), own.map(|name| mode(&path(name)))), (0o700, [0o600; 4]));

        fs::write(path("accounts.json"), "").unwrap();
        fs::write(path("notes.json"), "").unwrap();
        for file in [path("accounts.json"), path("notes.json")] {
            set_mode(&file, 0o644);
        }
        set_mode(folder.path(), 0o755);

        create_private_folder(folder.path()).unwrap();
        assert_eq!((mode(&path("accounts.json")), mode(&path("notes.json"))), (0o600, 0o644));
        assert_eq!(mode(folder.path()), 0o755, "another program may need it");
    }
}
