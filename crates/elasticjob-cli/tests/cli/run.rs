//! `elasticjob run`, with a registry in this process.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use elasticjob::{
    job::Job,
    registry::{self, ExpectedVersion, Registry},
};
use serde_json::Value;
use tempfile::TempDir;
use testbed::free_port;
use tinykeeper::server::{Config, Server};

use crate::{
    process::{PATIENCE, Process, binary, elasticjob},
    scene::Scene,
};

async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Accepts one request, answers 200 and returns the request.
fn answer_request(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        request.push(byte[0]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    String::from_utf8(request).unwrap()
}

/// The content of the node of a job's only instance.
async fn instance_of(url: &str, job: &str) -> String {
    let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
    let path = registry.namespace().path().join(format!("{job}/instances")).unwrap();
    let names = registry.children(&path).await.unwrap().unwrap();
    let [name] = &names[..] else { panic!("{names:?}") };
    let node = registry.get(&path.join(name).unwrap()).await.unwrap().unwrap();
    String::from_utf8(node.data.to_vec()).unwrap()
}

/// Status and body of a GET request.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn script_and_http_jobs_run_until_sigterm() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let jobs = format!(
        "    hello:\n      elasticJobType: SCRIPT\n      cron: '* * * * * ?'\n      props:\n        script.command.line: sh FOLDER/hello.sh\n    \
         ping:\n      elasticJobType: HTTP\n      cron: '* * * * * ?'\n      props:\n        http.uri: http://{}/ping\n        http.method: GET\n",
        listener.local_addr().unwrap()
    );
    let scene = Scene::with(&jobs).await;
    let output_file = scene.folder.path().join("output");
    fs::write(
        scene.folder.path().join("hello.sh"),
        format!(
            "echo \"$ELASTICJOB_JOB_NAME under $(tr '\\0' ' ' < /proc/$PPID/cmdline)\" >> {}\necho script-output\n",
            output_file.display()
        ),
    )
    .unwrap();

    let mut process = scene.start_worker(&["--health-listen", "0", "--labels", "weight=3,zone=a"]);
    let address: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = address["address"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    process.wait_for_log("node started");
    let request = on_a_thread(move || answer_request(&listener)).await;
    process.wait_for_log("script-output");

    assert!(instance_of(&scene.url, "hello").await.contains("labels: weight=3,zone=a"));
    assert!(
        request.starts_with("GET /ping ") && request.to_lowercase().contains("shardingcontext")
    );
    assert!(
        fs::read_to_string(&output_file).unwrap().starts_with("hello under elasticjob-supervisor")
    );
    assert_eq!(get(&address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(get(&address, "/readyz"), (200, "ready\n".to_owned()));
    process.terminate();
    let (status, stdout) = process.wait();
    assert_eq!((status.code(), &*stdout), (Some(0), ""), "{}", process.log());
    for line in process.log().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_shard_may_finish_after_sigterm() {
    let scene = Scene::with(
        "    slow:\n      cron: '* * * * * ?'\n      props:\n        script.command.line: sh FOLDER/slow.sh\n",
    )
    .await;
    let folder = scene.folder.path().display().to_string();
    // It runs until the test creates the file, which is after SIGTERM.
    let script = "echo begun\nwhile [ ! -e FOLDER/go ]; do sleep 0.05; done\necho finished\ntouch FOLDER/done\n";
    fs::write(scene.folder.path().join("slow.sh"), script.replace("FOLDER", &folder)).unwrap();

    let mut process = scene.start_worker(&[]);
    process.wait_for_log("begun");
    process.terminate();
    process.wait_for_log("node stopping");
    fs::write(scene.folder.path().join("go"), "").unwrap();

    let (status, _) = process.wait();
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(scene.folder.path().join("done").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_stops_at_once() {
    let scene = Scene::with(
        "    slow: {cron: '* * * * * ?', props: {script.command.line: sh FOLDER/slow.sh}}\n",
    )
    .await;
    fs::write(scene.folder.path().join("slow.sh"), "echo begun\nsleep 600\n").unwrap();

    let mut process = scene.start_worker(&[]);
    process.wait_for_log("begun");
    process.terminate();
    process.wait_for_log("node stopping");
    process.terminate();

    let (status, _) = process.wait();
    assert_eq!(status.code(), Some(1), "{}", process.log());
    assert!(
        process
            .log()
            .ends_with("error: stopped by a second signal without waiting for running shards")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn command_line_changed_in_the_registry_does_not_run() {
    let scene = Scene::with(
        "    hello:\n      cron: '* * * * * ?'\n      props:\n        script.command.line: echo from-the-file\n",
    )
    .await;
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("from-the-file");

    let registry = registry::connect(&scene.url.parse().unwrap()).await.unwrap();
    change_command_line(&*registry, "echo from-the-registry").await;

    let line = process.wait_for_log("--scripts-from");
    assert!(line.contains("the registry sets"), "{line}");
    assert!(!process.log().contains("\"from-the-registry\""), "{}", process.log());
}

async fn change_command_line(registry: &dyn Registry, line: &str) {
    let path = registry.namespace().path().join("hello/config").unwrap();
    let found = registry.get(&path).await.unwrap().unwrap();
    let job = Job::read(&"hello".parse().unwrap(), &found.data).unwrap();
    let job = job.prop("script.command.line", line).unwrap();
    registry.set(&path, job.to_yaml().into(), ExpectedVersion::Any).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_waits_for_the_registry_at_the_start() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let port = free_port();
    let url = format!("zookeeper://127.0.0.1:{port}/shop?maxRetries=0&connectionTimeout=1s");
    let mut process = Process::start(&["run", "-f", &scene.file(), "--registry", &url]);
    process.wait_for_log("registry unreachable, retrying");

    let mut config = Config::in_memory();
    config.listen = ([127, 0, 0, 1], port).into();
    let _late = Server::start(config).await.unwrap();

    process.wait_for_log("node started");
}

#[test]
fn missing_certificate_authority_is_bad_input_that_names_the_file() {
    let url = "zookeepers://jane:hunter2@127.0.0.1:1/shop?tls.ca=/nowhere/ca.pem";
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("jobs.yml");
    std::fs::write(&file, "elasticjob: {jobs: {hello: {props: {script.command.line: echo}}}}")
        .unwrap();

    for arguments in [
        &["run", "-f", file.to_str().unwrap(), "--registry", url][..],
        &["job", "list", "--registry", url],
    ] {
        let output = elasticjob(arguments);

        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{}", output.stderr);
        assert!(output.stderr.contains("/nowhere/ca.pem"), "{}", output.stderr);
        assert!(
            output
                .stderr
                .ends_with("hint: check tls.ca, tls.cert and tls.key in the registry URL\n"),
            "{}",
            output.stderr
        );
        assert!(!output.stderr.contains("hunter2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_gives_up_after_the_connect_timeout() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let url = format!("zookeeper://jane:hunter2@127.0.0.1:{}/shop", free_port());

    let output =
        elasticjob(&["run", "-f", &scene.file(), "--registry", &url, "--connect-timeout", "500ms"]);

    assert_eq!((output.code, &*output.stdout), (Some(3), ""), "{}", output.stderr);
    assert!(output.stderr.contains("\nerror: cannot reach the registry at "), "{}", output.stderr);
    assert!(output.stderr.ends_with("hint: is ZooKeeper listening there?\n"), "{}", output.stderr);
    assert!(!output.stderr.contains("hunter2"));
}

#[test]
fn registry_flag_precedes_environment_and_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("jobs.yml");
    let (flag, variable, file_port) = (free_port(), free_port(), free_port());
    let center = format!("regCenter: {{serverLists: '127.0.0.1:{file_port}', namespace: shop}}");
    let job = "jobs: {hello: {props: {script.command.line: echo}}}";
    fs::write(&file, format!("elasticjob:\n  {center}\n  {job}\n")).unwrap();
    let tried = |flagged: bool, environment: bool| {
        let url = |port: u16| format!("zookeeper://127.0.0.1:{port}/shop");
        let mut command = binary();
        command.args(["run", "--connect-timeout", "1ms", "-f"]).arg(&file);
        if flagged {
            command.args(["--registry", &url(flag)]);
        }
        command.env("ELASTICJOB_REGISTRY", if environment { url(variable) } else { String::new() });
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };

    assert!(tried(true, true).contains(&format!("127.0.0.1:{flag}/shop")));
    assert!(tried(false, true).contains(&format!("127.0.0.1:{variable}/shop")));
    assert!(tried(false, false).contains(&format!("127.0.0.1:{file_port}/shop")));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_port_in_use_is_reported_before_jobs_are_joined() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let output = elasticjob(&[
        "run",
        "-f",
        &scene.file(),
        "--registry",
        &scene.url,
        "--health-listen",
        &address,
    ]);

    assert_eq!((output.code, &*output.stdout), (Some(2), ""));
    assert!(
        output.stderr.contains(&format!("error: cannot listen on {address}")),
        "{}",
        output.stderr
    );
    let registry = registry::connect(&scene.url.parse().unwrap()).await.unwrap();
    let job = registry.namespace().path().join("hello").unwrap();
    assert!(registry.exists(&job).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn job_of_another_handler_is_a_conflict() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let registry = registry::connect(&scene.url.parse().unwrap()).await.unwrap();
    let root = registry.namespace().path().join("hello").unwrap();
    registry.create(registry::Create::persistent(&root, "com.acme.Hello")).await.unwrap();

    let output = elasticjob(&["run", "-f", &scene.file(), "--registry", &scene.url]);

    assert_eq!(output.code, Some(6), "{}", output.stderr);
    assert!(
        output.stderr.contains("\nerror: job hello belongs to the Java class com.acme.Hello"),
        "{}",
        output.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_waits_for_an_unreadable_configuration_and_keeps_it() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let registry = registry::connect(&scene.url.parse().unwrap()).await.unwrap();
    let root = registry.namespace().path().join("hello").unwrap();
    let config = root.join("config").unwrap();
    registry.create(registry::Create::persistent(&root, "SCRIPT")).await.unwrap();
    registry.create(registry::Create::persistent(&config, "jobName: [")).await.unwrap();

    let mut worker = scene.start_worker(&[]);
    let line = worker.wait_for_log("job not joined until its configuration is valid");
    worker.wait_for_log("node started");

    assert!(line.contains("job hello: the stored config cannot be read, line 1"), "{line}");
    assert_eq!(registry.get(&config).await.unwrap().unwrap().data, "jobName: [");
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_with_other_credentials_is_not_opened() {
    let scene = Scene::with("    hello: {props: {script.command.line: echo}}\n").await;
    let theirs = scene.url.replace("zookeeper://", "zookeeper://jane:secret@");
    registry::connect(&theirs.parse().unwrap()).await.unwrap();

    for url in [&scene.url, &theirs.replace("secret", "wrong")] {
        let output = elasticjob(&["run", "-f", &scene.file(), "--registry", url]);

        assert_eq!(output.code, Some(4), "{}", output.stderr);
        assert!(output.stderr.contains("hint: check user and password in the registry URL"));
    }
}
