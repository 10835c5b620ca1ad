//! A temporary folder that cannot outlive us, even in a static, which nobody drops.
//!
//! As with a child (see `child.rs`), a small shell holds a pipe from us and acts when it ends. A
//! server's folder is left to the keeper of the server, who knows when it no longer writes there.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

const KEEPER: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
rm -rf -- "$1"
"#;

/// A folder that is removed when it is dropped, or when the process ends, however that ends.
pub(crate) struct Folder {
    keeper: Child,
    folder: TempDir,
}

impl Folder {
    /// Makes a new folder whose name begins with `prefix`.
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
        // Closes the pipe first.
        let _ = self.keeper.wait();
    }
}

/// A new folder in the system's own for such things.
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
    fn a_folder_is_gone_when_it_is_dropped() {
        let folder = Folder::new("testbed-folder-");
        let file = folder.join("file");
        fs::write(&file, "content").unwrap();

        drop(folder);

        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn a_folder_that_nobody_drops_is_gone_when_the_pipe_ends() {
        let mut folder = Folder::new("testbed-folder-");
        let path = folder.join("");

        let pipe = folder.keeper.stdin.take();
        mem::forget(folder);
        drop(pipe);

        let gone = poll::until(Duration::from_secs(30), || (!path.exists()).then_some(()));
        assert!(gone.is_some());
    }
}
