//! Secrets that jobs refer to: a worker sends them only where its operator lets it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::mpsc::{self, Receiver},
    thread,
};

use crate::{
    process::{PATIENCE, Process},
    scene::Scene,
};

/// An HTTP server that answers 200 and records the first line of each request.
struct Endpoint {
    address: SocketAddr,
    requests: Receiver<String>,
}

impl Endpoint {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(mut socket) = socket else { return };
                let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let _ = socket.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
                if sender.send(first).is_err() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    fn next(&self) -> String {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }

    fn props(&self) -> String {
        let uri = format!("http://{}/?key=secret:shop", self.address);
        format!("{{http.uri: '{uri}', http.method: GET}}")
    }
}

fn secrets_folder(scene: &Scene) -> String {
    let folder = scene.folder.path().join("secrets");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("shop"), "hunter2\n").unwrap();
    folder.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_cannot_have_the_secret_of_a_file_job_sent_elsewhere() {
    let (shop, attacker) = (Endpoint::start(), Endpoint::start());
    let jobs = format!(
        "    ping: {{cron: '* * * * * ?', props: {}}}\n    bystander: {{cron: '* * * * * ?', props: {{script.command.line: echo still-here}}}}\n    absent: {{cron: '* * * * * ?', props: {{http.uri: 'http://{}/secret:absent', http.method: GET}}}}\n",
        shop.props(),
        shop.address
    );
    let scene = Scene::with(&jobs).await;
    let folder = secrets_folder(&scene);
    let mut process = scene.start_worker(&["--http-allow", "127.0.0.1", "--secrets-dir", &folder]);
    assert_eq!(shop.next(), "GET /?key=hunter2 HTTP/1.1");
    let missing = process.wait_for_log("cannot read secret");
    assert!(missing.contains(&folder) && missing.contains("absent"), "{missing}");
    let failed = process.wait_for_log("this worker has no secret:absent");
    assert!(!failed.contains(&folder), "what is recorded does not name the folder: {failed}");

    let stored = scene.get("ping/config").await.unwrap();
    let moved = stored.replace(&shop.address.to_string(), &attacker.address.to_string());
    assert_ne!(stored, moved);
    scene.put("ping/config", &moved).await;

    let refused = process.wait_for_log("secret:shop may not be sent to");
    assert!(refused.contains(&attacker.address.to_string()), "{refused}");
    process.wait_for_log("still-here");
    assert!(attacker.requests.try_recv().is_err());
    process.terminate();
    process.wait();
    let log = process.log();
    assert!(!log.contains("hunter2"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn job_of_the_registry_uses_a_secret_only_for_its_granted_target() {
    let (shop, attacker) = (Endpoint::start(), Endpoint::start());
    let scene = Scene::with("").await;
    let folder = secrets_folder(&scene);
    let jobs = format!(
        "elasticjob:\n  jobs:\n    near: {{cron: '* * * * * ?', props: {}}}\n    far: {{cron: '* * * * * ?', props: {}}}\n",
        shop.props(),
        attacker.props()
    );
    let file = scene.write("apply.yml", &jobs);
    assert_eq!(scene.run(&["job", "apply", "-f", &file, "--yes"]).code, Some(0));
    let grant = format!("shop=http://{}", shop.address);

    let mut process = Process::start(&[
        "run",
        "--registry",
        &scene.url,
        "--http-allow",
        "127.0.0.1",
        "--secrets-dir",
        &folder,
        "--secrets-for",
        &grant,
    ]);

    assert_eq!(shop.next(), "GET /?key=hunter2 HTTP/1.1");
    let refused = process.wait_for_log("secret:shop may not be sent to");
    assert!(refused.contains("--secrets-for"), "{refused}");
    assert!(attacker.requests.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn shown_configuration_has_no_secrets() {
    let scene = Scene::with("").await;
    let job = "elasticjob:\n  jobs:\n    ping:\n      jobParameter: --password hunter2 --all\n      shardingItemParameters: 0=ftp://jane:hunter2@files/x\n      props: {http.uri: 'https://jane:hunter2@shop/x?access_token=hunter2', http.method: GET, db.passwd: hunter2, apiKey: hunter2}\n";
    let file = scene.write("apply.yml", job);
    let applied = scene.run(&["job", "apply", "-f", &file, "--yes"]);
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);

    for arguments in [
        &["job", "show", "ping"][..],
        &["job", "show", "ping", "-o", "json"],
        &["job", "list", "-o", "json"],
        &["shard", "list", "ping", "-o", "json"],
        &["job", "explain", "ping"],
        &["doctor"],
    ] {
        let output = scene.run(arguments);
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(!shown.contains("hunter2"), "{arguments:?}: {shown}");
    }
    let shown = scene.data(&["job", "show", "ping"])["config"]["properties"].clone();
    assert_eq!(shown["jobParameter"], "--password *** --all");
    assert_eq!(shown["props"]["http.uri"], "https://jane:***@shop/x?access_token=***");
    let changed = scene.write("changed.yml", &job.replace("hunter2", "hunter3"));
    let plan = scene.run(&["job", "apply", "-f", &changed, "--dry-run", "-o", "json"]);
    assert_eq!(plan.code, Some(10));
    assert!(!plan.stdout.contains("hunter"), "{}", plan.stdout);
}
