//! A full disk: the server acknowledges no write that it could not store, and reports why it stops.

use std::{
    io::{self, Write},
    path::Path,
    process::Command,
};

use tempfile::TempDir;
use tinykeeper::wire::Response;

use super::{
    process::Process,
    raw::{Incoming, RawClient, create, get, set},
};

/// A file system in memory, unmounted when dropped.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// Mounts a file system of this size; `None` without the permission to mount.
    fn mount(size: &str) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        mount(dir.path(), &format!("size={size}")).then_some(Self { dir })
    }

    fn resize(&self, size: &str) {
        assert!(mount(self.dir.path(), &format!("remount,size={size}")));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy, because a server that was just killed may still have an open file.
        let unmounted = Command::new("umount").arg("--lazy").arg(self.dir.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "cannot unmount the disk");
    }
}

fn mount(dir: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir);
    command.output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn write_to_a_full_disk_is_not_acknowledged_and_stops_the_server() {
    let Some(disk) = Disk::mount("1m") else {
        // Not with `eprintln!`: the output of a test that passes is not shown.
        let why = "only root may mount the small disk this test fills";
        writeln!(io::stderr(), "NOT RUN: full_disk: {why}").unwrap();
        return;
    };
    let mut process = Process::start_in(disk.dir.path(), &[]).await;
    let mut client = RawClient::connect(process.address).await;
    client.call(&create("/a")).await.unwrap();
    let mut acknowledged = 0;

    // One request at a time, so that no other traffic wakes the server when the disk fails.
    loop {
        client.submit(&set("/a", vec![b'x'; 100_000])).await;
        match client.incoming().await {
            Some(Incoming::Reply(reply)) => reply.result.map(|_| acknowledged += 1).unwrap(),
            Some(Incoming::Event(event)) => panic!("unexpected notification: {event:?}"),
            None => break,
        }
    }

    let (status, _) = process.wait().await;
    assert_eq!(status.code(), Some(1));
    let log = process.stderr();
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("tinykeeper: ") && last.contains("No space left on device"), "{log}");
    assert!((1..11).contains(&acknowledged), "{acknowledged} of 100 kB on 1 MB");
    disk.resize("8m");
    let again = Process::start_in(disk.dir.path(), &[]).await;
    let Ok(Response::Data { stat, .. }) =
        RawClient::connect(again.address).await.call(&get("/a")).await
    else {
        panic!("/a was acknowledged")
    };
    assert!(stat.version >= acknowledged, "{} of {acknowledged}", stat.version);
    again.kill().await;
}
