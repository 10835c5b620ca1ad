//! ZooKeeper's four-letter commands.

use std::time::Duration;

use tinykeeper::{
    server::{Config, FourLetterWords, Server},
    wire::{CreateMode, Request},
};

use super::{
    log::Log,
    raw::{RawClient, create_as, set},
    send_word, serve,
};

/// A server that executes every word.
async fn serve_all(adjust: impl FnOnce(&mut Config)) -> Server {
    serve(|config| {
        config.four_letter_words = FourLetterWords::all();
        adjust(config);
    })
    .await
}

/// The value in a line `name<separator>value`.
fn value<'a>(text: &'a str, name: &str, separator: &str) -> &'a str {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(separator))
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .trim()
}

#[tokio::test]
async fn ruok_and_isro_report_a_healthy_writable_server() {
    let server = serve(|_| {}).await;

    assert_eq!(send_word(server.address(), "ruok").await, "imok");
    assert_eq!(send_word(server.address(), "ruok\n").await, "imok", "as `echo ruok | nc` sends it");
    assert_eq!(send_word(server.address(), "isro").await, "rw");
}

#[tokio::test]
async fn srvr_and_stat_show_statistics_and_clients() {
    let server = serve_all(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    let zxid = client.request(&create_as("/a", CreateMode::Persistent)).await.zxid;

    let srvr = send_word(server.address(), "srvr").await;
    let stat = send_word(server.address(), "stat").await;

    for text in [&srvr, &stat] {
        assert!(text.starts_with("Zookeeper version: 3."), "{text}");
        assert!(text.contains("Latency min/avg/max: "), "{text}");
        assert_eq!(value(text, "Received", ": "), "2", "one hello, one create");
        assert_eq!(value(text, "Sent", ": "), "2");
        assert_eq!(value(text, "Connections", ": "), "1");
        assert_eq!(value(text, "Outstanding", ": "), "0");
        assert_eq!(value(text, "Zxid", ": "), format!("{zxid:#x}"));
        assert_eq!(value(text, "Mode", ": "), "standalone");
        assert_eq!(value(text, "Node count", ": "), "5");
    }
    assert!(!srvr.contains("Clients:"));
    assert!(stat.contains("Clients:\n /127.0.0.1:"), "{stat}");
}

#[tokio::test]
async fn mntr_shows_counters() {
    let server = serve(|_| {}).await;
    let mut client = RawClient::connect(server.address()).await;
    client.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();
    client.call(&set("/mine", vec![b'x'; 1000])).await.unwrap();
    client.call(&Request::GetData { path: "/mine".into(), watch: true }).await.unwrap();

    let text = send_word(server.address(), "mntr").await;

    for (name, expected) in [
        ("zk_server_state", "standalone"),
        ("zk_packets_received", "4"),
        ("zk_packets_sent", "4"),
        ("zk_num_alive_connections", "1"),
        ("zk_outstanding_requests", "0"),
        ("zk_znode_count", "5"),
        ("zk_watch_count", "1"),
        ("zk_ephemerals_count", "1"),
        ("zk_global_sessions", "1"),
    ] {
        assert_eq!(value(&text, name, "\t"), expected, "{name}");
    }
    let size: usize = value(&text, "zk_approximate_data_size", "\t").parse().unwrap();
    assert!((1000..1100).contains(&size), "{size}");
    assert!(value(&text, "zk_version", "\t").starts_with("3."), "{text}");
}

#[tokio::test]
async fn conf_shows_the_configuration() {
    let server = serve_all(|config| {
        config.min_session_timeout = Duration::from_millis(123);
        config.max_session_timeout = Duration::from_millis(45_678);
        config.max_frame = 9999;
        config.max_connections = 77;
    })
    .await;

    let text = send_word(server.address(), "conf").await;

    for (name, expected) in [
        ("clientPort", server.address().port().to_string()),
        ("clientPortAddress", "127.0.0.1".into()),
        ("dataDir", "(memory)".into()),
        ("minSessionTimeout", "123".into()),
        ("maxSessionTimeout", "45678".into()),
        ("jute.maxbuffer", "9999".into()),
        ("maxConnections", "77".into()),
        ("maxWatchBytes", "536870912".into()),
    ] {
        assert_eq!(value(&text, name, "="), expected, "{name}");
    }
}

#[tokio::test]
async fn cons_dump_and_wchs_show_connections_sessions_and_watches() {
    let server = serve_all(|_| {}).await;
    let mut one = RawClient::connect(server.address()).await;
    let mut other = RawClient::connect(server.address()).await;
    one.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();
    for client in [&mut one, &mut other] {
        client.call(&Request::GetData { path: "/mine".into(), watch: true }).await.unwrap();
        client.call(&Request::GetChildren { path: "/".into(), watch: true }).await.unwrap();
    }

    let cons = send_word(server.address(), "cons").await;
    let dump = send_word(server.address(), "dump").await;
    let wchs = send_word(server.address(), "wchs").await;

    for (client, received) in [(&one, 4), (&other, 3)] {
        let session = format!("sid={:#x}", client.session);
        let line = cons.lines().find(|line| line.contains(&session)).expect("a line for each");
        assert!(line.starts_with(" /127.0.0.1:"), "{line}");
        assert!(line.contains(&format!("recved={received},sent={received}")), "{line}");
    }
    assert_eq!(cons.lines().count(), 2);
    assert!(dump.contains("Sessions (2):"), "{dump}");
    assert!(dump.contains("Sessions with Ephemerals (1):"), "{dump}");
    assert!(dump.contains(&format!("{:#x}:\n\t/mine\n", one.session)), "{dump}");
    assert_eq!(wchs, "2 connections watching 2 paths\nTotal watches:4\n");
}

#[tokio::test]
async fn envi_describes_the_machine() {
    let server = serve_all(|_| {}).await;

    let text = send_word(server.address(), "envi").await;

    assert!(text.starts_with("Environment:\nzookeeper.version=3."), "{text}");
    assert_eq!(value(&text, "os.name", "="), std::env::consts::OS);
}

#[tokio::test]
async fn words_that_tell_sessions_addresses_or_folders_are_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(|config| config.data = Some(folder.path().to_owned())).await;
    let mut client = RawClient::connect(server.address()).await;
    client.call(&create_as("/mine", CreateMode::Ephemeral)).await.unwrap();

    for word in ["stat", "cons", "dump", "conf", "envi", "wchs"] {
        let refusal = format!("{word} is not executed because it is not in the whitelist.\n");
        assert_eq!(send_word(server.address(), word).await, refusal);
    }
    for word in ["ruok", "srvr", "mntr", "isro"] {
        let text = send_word(server.address(), word).await;
        let session = format!("{:x}", client.session);
        for secret in [&session, "127.0.0.1", "/mine", folder.path().to_str().unwrap()] {
            assert!(!text.contains(secret), "{word}: {text}");
        }
        assert!(!text.contains("not executed"), "{word}: {text}");
    }
}

#[tokio::test]
async fn unknown_four_letters_are_an_oversized_frame_length() {
    let log = Log::capture();
    let server = serve(|_| {}).await;

    for word in ["kill", "RUOK", "help", "xyzw"] {
        assert_eq!(send_word(server.address(), word).await, "", "{word}");
    }

    let length = i32::from_be_bytes(*b"kill");
    log.wait_for_line(&["connection closed", &format!("a frame of {length} bytes")]).await;
    assert_eq!(send_word(server.address(), "ruok").await, "imok");
}
