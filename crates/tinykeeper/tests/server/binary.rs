//! The binary `tinykeeper`: one line when it is ready, one line when it cannot be, and a clean end.

use std::net::TcpListener;

use tempfile::TempDir;

use super::{
    process::{Process, refused},
    raw::{Raw, create, exists},
};

#[tokio::test]
async fn it_says_one_line_when_it_is_ready_and_ends_well_when_told_to() {
    let mut process = Process::start(&[]).await;
    let mut client = Raw::connect(process.address).await;
    client.call(&create("/a")).await.expect("it is ready");
    let mut silent = Raw::dial(process.address).await;

    process.terminate().await;

    let (status, rest) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
    let expected = format!("tinykeeper is ready on {}, in memory\n", process.address);
    assert_eq!((&process.ready, &*rest), (&expected, ""));
    client.ended().await;
    silent.ended().await;
}

#[tokio::test]
async fn it_keeps_what_it_took_when_it_is_told_to_end() {
    let folder = TempDir::new().unwrap();
    let mut process = Process::start_in(folder.path(), &["--no-fsync"]).await;
    assert!(process.ready.ends_with(&format!(", in {}\n", folder.path().display())));
    let mut client = Raw::connect(process.address).await;
    client.call(&create("/a")).await.unwrap();

    process.terminate().await;

    assert!(process.ended().await.0.success());
    let again = Process::start_in(folder.path(), &[]).await;
    let mut back = client.resume(again.address).await;
    assert_eq!(back.session, client.session);
    assert!(back.call(&exists("/a")).await.is_ok());
}

#[tokio::test]
async fn its_log_is_plain_text_when_nobody_looks_at_it() {
    let process = Process::start(&[]).await;
    let mut stranger = Raw::dial(process.address).await;
    stranger.send_bytes(b"nonsense").await;
    stranger.ended().await;

    let said = process.stderr();

    assert!(said.contains("WARN") && said.contains("connection closed"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[tokio::test]
async fn a_folder_in_use_is_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    let first = Process::start_in(folder.path(), &[]).await;
    let data = folder.path().to_str().unwrap();

    let (status, stdout, stderr) = refused(&["--listen", "127.0.0.1:0", "--data", data]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with(&format!("tinykeeper: {data} is in use by process ")), "{stderr}");
    assert!(stderr.contains("hint: stop that server"), "{stderr}");
    Raw::connect(first.address).await.call(&create("/a")).await.expect("the first goes on");
}

#[tokio::test]
async fn a_port_in_use_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let (status, stdout, stderr) = refused(&["--listen", &address]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let expected = format!("tinykeeper: cannot listen on {address}: Address already in use");
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert!(stderr.contains("hint:"), "{stderr}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let data = file.join("data");

    let (status, _, stderr) =
        refused(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]).await;

    assert_eq!(status.code(), Some(1));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("tinykeeper: cannot create "), "{stderr}");
}
