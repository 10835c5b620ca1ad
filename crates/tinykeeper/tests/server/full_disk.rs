//! A disk that is full: nothing is acknowledged that could not be kept, and the server says why it ends.

use std::{
    io::{self, Write},
    path::Path,
    process::Command,
};

use tempfile::TempDir;
use tinykeeper::wire::Response;

use super::{
    process::Process,
    raw::{Incoming, Raw, create, get, set},
};

/// A file system in memory, unmounted when dropped.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// One of this size, if we may mount it.
    fn mount(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        mount(folder.path(), &format!("size={size}")).then_some(Self { folder })
    }

    fn resize(&self, size: &str) {
        assert!(mount(self.folder.path(), &format!("remount,size={size}")));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that was killed a moment ago may still hold a file.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "cannot unmount the disk");
    }
}

fn mount(folder: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder);
    command.output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_write_that_does_not_fit_on_the_disk_is_not_acknowledged_and_ends_the_server() {
    let Some(disk) = Disk::mount("1m") else {
        // Not with `eprintln!`: the output of a test that passes is not shown.
        let why = "only root may mount the small disk this test fills";
        writeln!(io::stderr(), "NOT RUN: full_disk: {why}").unwrap();
        return;
    };
    let mut process = Process::start_in(disk.folder.path(), &[]).await;
    let mut client = Raw::connect(process.address).await;
    client.call(&create("/a")).await.unwrap();
    let mut acknowledged = 0;

    // One at a time: while nobody else says anything, the server has to notice by itself.
    loop {
        client.submit(&set("/a", vec![b'x'; 100_000])).await;
        match client.incoming().await {
            Some(Incoming::Answer(answer)) => answer.result.map(|_| acknowledged += 1).unwrap(),
            Some(Incoming::Event(event)) => panic!("nobody watches, yet {event:?}"),
            None => break,
        }
    }

    let (status, _) = process.ended().await;
    assert_eq!(status.code(), Some(1));
    let said = process.stderr();
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("tinykeeper: ") && last.contains("No space left on device"), "{said}");
    assert!((1..11).contains(&acknowledged), "{acknowledged} of 100 kB on 1 MB");
    disk.resize("8m");
    let again = Process::start_in(disk.folder.path(), &[]).await;
    let Ok(Response::Data { stat, .. }) = Raw::connect(again.address).await.call(&get("/a")).await
    else {
        panic!("/a was acknowledged")
    };
    assert!(stat.version >= acknowledged, "{} of {acknowledged}", stat.version);
    again.kill().await;
}
