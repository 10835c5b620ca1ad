//! The binary `tinykeeper`: one line when it is ready, one line when it cannot start, and a clean exit.

use std::net::TcpListener;

use tempfile::TempDir;

use super::{
    process::{Process, run_refused},
    raw::{RawClient, create, exists},
};

#[tokio::test]
async fn binary_prints_one_ready_line_and_exits_cleanly_on_sigterm() {
    let mut process = Process::start(&[]).await;
    let mut client = RawClient::connect(process.address).await;
    client.call(&create("/a")).await.expect("it is ready");
    let mut silent = RawClient::open(process.address).await;

    process.terminate().await;

    let (status, rest) = process.wait().await;
    assert_eq!(status.code(), Some(0), "{}", process.stderr());
    let expected = format!("tinykeeper is ready on {}, in memory\n", process.address);
    assert_eq!((&process.ready, &*rest), (&expected, ""));
    client.wait_closed().await;
    silent.wait_closed().await;
}

#[tokio::test]
async fn binary_keeps_its_data_on_sigterm() {
    let dir = TempDir::new().unwrap();
    let mut process = Process::start_in(dir.path(), &["--no-fsync"]).await;
    assert!(process.ready.ends_with(&format!(", in {}\n", dir.path().display())));
    let mut client = RawClient::connect(process.address).await;
    client.call(&create("/a")).await.unwrap();

    process.terminate().await;

    assert!(process.wait().await.0.success());
    let again = Process::start_in(dir.path(), &[]).await;
    let mut back = client.resume(again.address).await;
    assert_eq!(back.session, client.session);
    assert!(back.call(&exists("/a")).await.is_ok());
}

#[tokio::test]
async fn log_has_no_colors_if_stderr_is_not_a_terminal() {
    let process = Process::start(&[]).await;
    let mut stranger = RawClient::open(process.address).await;
    stranger.send_bytes(b"nonsense").await;
    stranger.wait_closed().await;

    let log = process.stderr();

    assert!(log.contains("WARN") && log.contains("connection closed"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
}

#[tokio::test]
async fn directory_in_use_is_refused_in_one_line() {
    let dir = TempDir::new().unwrap();
    let first = Process::start_in(dir.path(), &[]).await;
    let data = dir.path().to_str().unwrap();

    let (status, stdout, stderr) = run_refused(&["--listen", "127.0.0.1:0", "--data", data]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with(&format!("tinykeeper: {data} is in use by process ")), "{stderr}");
    assert!(stderr.contains("hint: stop that server"), "{stderr}");
    RawClient::connect(first.address)
        .await
        .call(&create("/a"))
        .await
        .expect("the first server continues");
}

#[tokio::test]
async fn port_in_use_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let (status, stdout, stderr) = run_refused(&["--listen", &address]).await;

    assert_eq!((status.code(), &*stdout), (Some(1), ""));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let expected = format!("tinykeeper: cannot listen on {address}: Address already in use");
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert!(stderr.contains("hint:"), "{stderr}");
}

#[tokio::test]
async fn directory_that_cannot_be_created_is_refused_in_one_line() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let data = file.join("data");

    let (status, _, stderr) =
        run_refused(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]).await;

    assert_eq!(status.code(), Some(1));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("tinykeeper: cannot create "), "{stderr}");
}

#[tokio::test]
async fn four_letter_words_are_chosen_on_the_command_line() {
    let process = Process::start(&["--four-letter-words", "cons, ruok"]).await;
    let client = RawClient::connect(process.address).await;

    for (word, expected) in [
        ("ruok", "imok"),
        ("cons", &*format!("sid={:#x}", client.session)),
        ("srvr", "not executed"),
    ] {
        let mut operator = RawClient::open(process.address).await;
        operator.send_bytes(word.as_bytes()).await;
        let text = operator.text().await;
        assert!(text.contains(expected), "{word}: {text}");
    }
    let (status, _, stderr) = run_refused(&["--four-letter-words", "srvr,help"]).await;
    assert_eq!(status.code(), Some(2));
    assert!(stderr.contains("\"help\" is not a four-letter word"), "{stderr}");
}
