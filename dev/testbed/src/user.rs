//! Databases refuse to run as root, so there they run as somebody else.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// Whom a server runs as, where we are root.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
}

impl User {
    /// The start of a command line that runs `program` as somebody who is not root.
    pub(crate) fn unprivileged(&self, program: &Path) -> Vec<OsString> {
        let mut command = Vec::new();
        if is_root() {
            let user = [format!("--reuid={}", self.name), format!("--regid={}", self.group)];
            command.push("setpriv".into());
            command.extend(user.map(OsString::from));
            command.push("--clear-groups".into());
        }
        command.push(program.into());
        command
    }

    /// Gives the folder to whoever the server runs as.
    pub(crate) fn own(&self, folder: &Path) {
        if is_root() {
            let owner = format!("{}:{}", self.name, self.group);
            run(&["chown".into(), owner.into(), folder.into()]);
        }
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id starts");
    output.stdout.trim_ascii() == b"0"
}

/// Runs a command to its end, which has to be a good one.
pub(crate) fn run(command: &[OsString]) {
    let output = Command::new(&command[0]).args(&command[1..]).current_dir("/").output();
    let Output { status, stdout, stderr } = output.unwrap_or_else(|error| {
        panic!("cannot start {}: {error}; hint: make test installs it", command[0].display())
    });
    let said = [stdout, stderr].concat();
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&said));
}
