//! A temporary folder that does not outlive the process, even in a static, which is never dropped.
//!
//! As with a child (see `child.rs`), a small shell, the keeper, reads a pipe from this process and removes the folder when the pipe closes. The
//! folder of a server is removed by the keeper of the server, which knows when the server no longer writes there.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

const KEEPER: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
rm -rf -- "$1"
"#;

/// A folder that is removed when this value is dropped or when the process ends, however it ends.
pub(crate) struct Folder {
    keeper: Child,
    folder: TempDir,
}

impl Folder {
    /// Creates a folder whose name begins with `prefix`.
    pub(crate) fn new(prefix: &str) -> Self {
        let folder = temporary(prefix);
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("/bin/sh starts");
        Self { keeper, folder }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // `wait` closes the pipe first.
        let _ = self.keeper.wait();
    }
}

/// Creates a folder in the system's temporary folder.
pub(crate) fn temporary(prefix: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(prefix)
        .tempdir()
        .expect("the system has a folder for temporary files")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem;
    use std::time::Duration;

    use crate::poll;

    use super::*;

    #[test]
    fn dropped_folder_is_removed() {
        let folder = Folder::new("testbed-folder-");
        let file = folder.join("file");
        fs::write(&file, "content").unwrap();

        drop(folder);

        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn folder_that_is_not_dropped_is_removed_when_the_pipe_closes() {
        let mut folder = Folder::new("testbed-folder-");
        let path = folder.join("");

        let pipe = folder.keeper.stdin.take();
        mem::forget(folder);
        drop(pipe);

        let gone = poll::until(Duration::from_secs(30), || (!path.exists()).then_some(()));
        assert!(gone.is_some());
    }
}
