//! What the console keeps on disk: small files that only it may read, replaced whole.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use serde::Serialize;

use crate::http::problem::{Code, Problem};

/// Replaces a file: whoever reads it finds the old or the new one.
pub(crate) fn replace(path: &Path, content: &impl Serialize) -> Result<(), Problem> {
    write(path, content).map_err(|error| {
        tracing::error!(%error, path = %path.display(), "a file of the console cannot be written");
        Problem::new(
            Code::Internal,
            format!(
                "cannot keep that on the server: {error}; hint: its data folder has to be writable"
            ),
        )
    })
}

fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    // One that was left behind may have had other rights.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(&serde_json::to_vec_pretty(content)?)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
