//! Writes the console's small JSON files: readable only by its own user, always replaced as a whole.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use serde::Serialize;

use crate::http::problem::{Code, Problem};

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
