//! Errors of users: one line, one hint, a specific exit code.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use crate::{process::elasticjob, scene::Scene};

/// `addWatch`, new in 3.6.
const ADD_WATCH: i32 = 106;
const UNIMPLEMENTED: i32 = -6;

/// A proxy that behaves as a ZooKeeper before 3.6: it answers `addWatch` with "unimplemented" and closes the connection. Everything else goes to the
/// registry.
fn older(registry: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(registry).unwrap();
            thread::spawn(move || pass(client, server));
        }
    });
    address
}

fn pass(mut client: TcpStream, mut server: TcpStream) -> io::Result<()> {
    let answers = Arc::new(Mutex::new(client.try_clone()?));
    let (to_client, mut from_server) = (Arc::clone(&answers), server.try_clone()?);
    thread::spawn(move || -> io::Result<()> {
        loop {
            let answer = frame(&mut from_server)?;
            to_client.lock().unwrap().write_all(&answer)?;
        }
    });
    // The first frame opens the session.
    let mut request = frame(&mut client)?;
    loop {
        server.write_all(&request)?;
        request = frame(&mut client)?;
        if request[8..12] == ADD_WATCH.to_be_bytes() {
            let mut answer = 16_i32.to_be_bytes().to_vec();
            answer.extend_from_slice(&request[4..8]);
            answer.extend_from_slice(&0_i64.to_be_bytes());
            answer.extend_from_slice(&UNIMPLEMENTED.to_be_bytes());
            answers.lock().unwrap().write_all(&answer)?;
            return client.shutdown(Shutdown::Both);
        }
    }
}

/// Reads a message, including its length prefix.
fn frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = length.to_vec();
    frame.resize(4 + u32::from_be_bytes(length) as usize, 0);
    stream.read_exact(&mut frame[4..])?;
    Ok(frame)
}

#[tokio::test(flavor = "multi_thread")]
async fn zookeeper_older_than_3_6_is_refused() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let old = older(scene.registry.as_ref().unwrap().address());
    let url = format!("zookeeper://{old}/shop");

    for more in [&["-f", &scene.file()][..], &["--observe"]] {
        let output = elasticjob(&[&["run", "--registry", &url], more].concat());

        assert_eq!(output.code, Some(7), "{}", output.stderr);
        let error =
            "the server does not support recursive watches: ZooKeeper 3.6 or newer is required\n";
        assert!(output.stderr.contains(error), "{}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_or_non_executable_script_fails_with_a_hint() {
    let scene = Scene::with(
        "    missing: {props: {script.command.line: FOLDER/missing.sh}}\n    \
         text: {props: {script.command.line: FOLDER/text.sh}}\n",
    )
    .await;
    scene.write("text.sh", "#!/bin/sh\n");
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("node started");

    for (job, expected) in [
        ("missing", "missing.sh: No such file or directory"),
        ("text", "text.sh: Permission denied"),
    ] {
        scene.wait_until(&["shard", "list", job], |shards| shards[0]["status"] == "PENDING");
        let output = scene.run(&["job", "trigger", job, "--wait"]);
        let line = process.wait_for_log(expected);

        assert_eq!(output.code, Some(20), "{}", output.stderr);
        assert!(line.contains("cannot start ") && line.contains("; hint: "), "{line}");
    }
}

#[test]
fn cron_that_never_fires_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.yml");
    let job = "hello: {cron: '0 0 0 30 2 ?', props: {script.command.line: echo}}";
    fs::write(&file, format!("elasticjob:\n  jobs:\n    {job}\n")).unwrap();

    let output = elasticjob(&["run", "-f", file.to_str().unwrap()]);

    assert_eq!((output.code, &*output.stdout), (Some(2), ""));
    assert!(output.stderr.contains("jobs.yml:3: job hello: cron"), "{}", output.stderr);
    assert!(
        output
            .stderr
            .contains("never fires\nhint: a job without cron runs only when it is triggered"),
        "{}",
        output.stderr
    );
}

#[test]
fn worker_without_jobs_is_bad_input() {
    let nothing = elasticjob(&["run"]);
    let alone = elasticjob(&["run", "--prune", "--http-allow", "shop"]);
    let both = elasticjob(&["run", "--observe", "--http-allow", "shop"]);

    for output in [&nothing, &alone, &both] {
        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{}", output.stderr);
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
    assert!(nothing.stderr.contains("--file"), "{}", nothing.stderr);
}
