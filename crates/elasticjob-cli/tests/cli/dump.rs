//! `--dump-listen`: Java ElasticJob's dump service.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use serde_json::Value;

use crate::{
    process::{PATIENCE, Process, elasticjob},
    scene::Scene,
};

const HELLO: &str = "    hello: {cron: '0 0 2 1 1 ?', props: {script.command.line: echo}}\n";

fn listening(process: &mut Process) -> String {
    let line: Value =
        serde_json::from_str(&process.wait_for_log("dump service listening")).unwrap();
    line["address"].as_str().unwrap().to_owned()
}

/// Sends a command and returns the answer.
fn send(address: &str, what: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(what).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn dump_has_the_format_of_java() {
    let scene = Scene::with(HELLO).await;
    let mut process = scene.start_worker(&["--dump-listen", "0"]);
    let address = listening(&mut process);
    assert!(address.starts_with("127.0.0.1:"), "{address}");

    let named = send(&address, b"dump@hello\n");
    let only = send(&address, b"dump\r\n");

    assert!(named.contains("/hello/config | "), "{named}");
    assert!(named.contains("/hello/servers/ip1 | ENABLED\n") && named.ends_with('\n'), "{named}");
    assert!(!named.contains("127.0.0.1"), "{named}");
    assert_eq!(named, scene.run(&["job", "dump", "hello"]).stdout);
    assert_eq!(only, named);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_commands_get_one_error_line() {
    let scene = Scene::with(&format!("{HELLO}{}", HELLO.replace("hello", "howdy"))).await;
    let mut process = scene.start_worker(&["--dump-listen", "0"]);
    let address = listening(&mut process);

    for (command, expected) in [
        (&b"dump@missing\n"[..], "error: there is no job missing in "),
        (b"dump\n", "error: 2 jobs run here, and the command names none; hint: dump@JOB"),
        (b"ruok\n", "error: \"ruok\" is not a command; hint: dump@JOB"),
        (b"dump@a/b\n", "error: "),
        (b"\xff\n", "error: a command is one line of at most 1024 bytes"),
        (&[b'x'; 1_300], "error: a command is one line of at most 1024 bytes"),
    ] {
        let answer = send(&address, command);

        assert!(answer.starts_with(expected) && answer.lines().count() == 1, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dump_port_in_use_is_reported_before_jobs_are_joined() {
    let scene = Scene::with(HELLO).await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let output = elasticjob(&[
        "run",
        "-f",
        &scene.file(),
        "--registry",
        &scene.url,
        "--dump-listen",
        &address,
    ]);

    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(
        output.stderr.contains(&format!("error: cannot listen on {address}")),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("hint: give --dump-listen another address"),
        "{}",
        output.stderr
    );
    assert_eq!(scene.get("hello").await, None);
}
