//! The binary `tinykeeper`: one line when it is ready, one line when it cannot start, and a clean exit.

use std::{net::TcpListener, time::Duration};

use tempfile::TempDir;

use super::{
    process::{Process, run_refused},
    raw::{RawClient, create, exists, new_session_request},
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

#[tokio::test]
async fn limits_are_set_on_the_command_line() {
    let limits = [
        ("--max-connections", "50", "maxConnections"),
        ("--max-connections-per-address", "20", "maxClientCnxns"),
        ("--max-sessions", "30", "maxSessions"),
        ("--max-sessions-per-address", "2", "maxSessionsPerAddress"),
        ("--max-watch-bytes", "1000000", "maxWatchBytes"),
        ("--max-frame", "5000", "jute.maxbuffer"),
    ];
    let flags = limits.iter().flat_map(|(flag, value, _)| [*flag, *value]);
    let options: Vec<&str> = ["--four-letter-words", "conf"].into_iter().chain(flags).collect();
    let process = Process::start(&options).await;

    let mut operator = RawClient::open(process.address).await;
    operator.send_bytes(b"conf").await;
    let conf = operator.text().await;

    for (_, value, name) in limits {
        assert!(conf.contains(&format!("{name}={value}\n")), "{name}: {conf}");
    }
    let _sessions =
        [RawClient::connect(process.address).await, RawClient::connect(process.address).await];
    let mut third = RawClient::open(process.address).await;
    let request = new_session_request(Duration::from_secs(1));
    assert_eq!(third.handshake(&request).await, None, "a third session of this address");
}

#[tokio::test]
async fn limit_out_of_bounds_is_refused_by_name() {
    for (flag, value) in [
        ("--max-connections", "0"),
        ("--max-connections-per-address", "0"),
        ("--max-sessions", "0"),
        ("--max-sessions", "-1"),
        ("--max-sessions-per-address", "0"),
        ("--max-watch-bytes", "65535"),
        ("--max-frame", "4095"),
        ("--max-frame", "2147483648"),
    ] {
        let option = format!("{flag}={value}");
        let (status, stdout, stderr) = run_refused(&[&option]).await;

        assert_eq!((status.code(), &*stdout), (Some(2), ""), "{option}");
        let expected = format!("invalid value '{value}' for '{flag} <");
        assert!(stderr.contains(&expected), "{option}: {stderr}");
    }
}
