//! The unprivileged user that database servers run as, because they refuse to run as root.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// The user that a server runs as if the test runs as root.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
}

impl User {
    /// The beginning of a command line that runs `program` as this user if the test runs as root.
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

    /// Makes this user the owner of the folder if the test runs as root.
    pub(crate) fn take_ownership(&self, folder: &Path) {
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

/// Runs a command and panics if it fails.
pub(crate) fn run(command: &[OsString]) {
    let output = Command::new(&command[0]).args(&command[1..]).current_dir("/").output();
    let Output { status, stdout, stderr } = output.unwrap_or_else(|error| {
        panic!("cannot start {}: {error}; hint: make test installs it", command[0].display())
    });
    let output = [stdout, stderr].concat();
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&output));
}
