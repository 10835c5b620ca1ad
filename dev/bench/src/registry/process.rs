//! tinykeeper as users run it: the released program in a separate process.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use super::server_under_test::Durability;
use crate::BoxError;

/// A tinykeeper process. Dropping it kills it and removes its folder.
pub(crate) struct Tinykeeper {
    child: Child,
    address: SocketAddr,
    // Kept open, because writing to a closed pipe would end the process.
    _stdout: BufReader<ChildStdout>,
    // Declared after the child, which writes there.
    _folder: TempDir,
}

impl Tinykeeper {
    pub(crate) fn start(durability: Durability) -> Result<Self, BoxError> {
        let program = sibling_program("tinykeeper", "tinykeeper")?;
        // The servers of the testbed have their folders in the same parent folder, so both are on one file system.
        let folder = tempfile::Builder::new().prefix("bench-tinykeeper-").tempdir()?;
        let log = folder.path().join("log");
        let mut command = Command::new(&program);
        command.args(["--listen", "127.0.0.1:0"]);
        if durability != Durability::InMemory {
            command.arg("--data").arg(folder.path().join("data"));
        }
        if durability == Durability::Unsynced {
            command.arg("--no-fsync");
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let Some(address) = address_in(&line) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("tinykeeper did not start: {}", last_line(&log)).into());
        };
        Ok(Self { child, address, _stdout: stdout, _folder: folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Tinykeeper {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of the program `name` of the crate `package`. Cargo puts the programs of a workspace into one folder.
pub(crate) fn sibling_program(name: &str, package: &str) -> Result<PathBuf, BoxError> {
    let program = env::current_exe()?.with_file_name(name);
    if program.is_file() {
        return Ok(program);
    }
    let (path, profile) = (program.display(), profile_of(&program));
    Err(format!(
        "no {path}; hint: cargo build --profile {profile} -p {package} (make bench does it)"
    )
    .into())
}

/// The profile that builds into the folder of this program.
fn profile_of(program: &Path) -> &str {
    match program.parent().and_then(Path::file_name).and_then(OsStr::to_str) {
        None | Some("debug") => "dev",
        Some(profile) => profile,
    }
}

/// `tinykeeper is ready on 127.0.0.1:2181, in memory`
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(" is ready on ")?;
    rest.split_once(',')?.0.parse().ok()
}

fn last_line(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines().last().unwrap_or("it printed nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_line_contains_the_address() {
        let line = "tinykeeper is ready on 127.0.0.1:4711, in /tmp/data\n";

        assert_eq!(address_in(line), Some(([127, 0, 0, 1], 4711).into()));
        assert_eq!(address_in(""), None);
    }
}
