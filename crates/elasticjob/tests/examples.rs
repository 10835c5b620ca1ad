//! Every example, started as a reader would start it, on a registry in this process. What it prints is looked at; then it is asked to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::LazyLock,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tinykeeper::server::{Config, Server};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStderr},
};

const PATIENCE: Duration = Duration::from_mins(1);

/// Where each example's program is. They are built here, because not every way to run this test builds them; and with the options of `make test`, which has
/// them built already.
static PROGRAMS: LazyLock<BTreeMap<String, PathBuf>> = LazyLock::new(|| {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    for (name, _) in std::env::vars_os() {
        // What cargo tells this test about itself would make build scripts run again that look at it.
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            build.env_remove(name);
        }
    }
    let built = build
        .args([
            "build",
            "--workspace",
            "--exclude",
            "interop",
            "--all-features",
            "--examples",
            "--message-format=json",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(built.status.success(), "the examples do not build");
    let told = String::from_utf8(built.stdout).expect("JSON");
    let messages = told.lines().filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter(|message: &serde_json::Value| message["target"]["kind"][0] == "example")
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, message["executable"].as_str()?.into()))
        })
        .collect()
});

/// An example that runs.
struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
    _registry: Server,
}

impl Example {
    async fn start(name: &str) -> Self {
        let registry = Server::start(Config::ephemeral()).await.unwrap();
        let program = PROGRAMS.get(name).unwrap_or_else(|| panic!("no example is called {name}"));
        let mut child = tokio::process::Command::new(program)
            .env("ELASTICJOB_REGISTRY", format!("zookeeper://{}/examples", registry.address()))
            .env("LISTEN", "127.0.0.1:0")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines, said: Vec::new(), _registry: registry }
    }

    /// Waits until it has printed a line with each of these in it, in any order; lines it printed before count.
    async fn says(&mut self, wanted: &[&str]) {
        let all = async {
            loop {
                let missing =
                    wanted.iter().find(|part| !self.said.iter().any(|line| line.contains(**part)));
                let Some(missing) = missing else { return };
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| {
                    panic!("ended without {missing:?}; it said {:#?}", self.said)
                });
                self.said.push(line);
            }
        };
        let over = tokio::time::timeout(PATIENCE, all).await;
        assert!(over.is_ok(), "waited {PATIENCE:?} for {wanted:?}; it said {:#?}", self.said);
    }

    /// Asks it to end as an operator does.
    fn is_asked_to_end(&self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    async fn ends_when_asked(mut self) {
        self.is_asked_to_end();
        self.ends().await;
    }

    /// It must end, and well.
    async fn ends(&mut self) {
        let over: Result<ExitStatus, _> = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                self.said.push(line);
            }
            self.child.wait().await.unwrap()
        })
        .await;
        let code = over.ok().and_then(|status| status.code());
        assert_eq!(code, Some(0), "it said {:#?}", self.said);
    }

    /// What follows `prefix` in the line that begins with it.
    fn said_after(&self, prefix: &str) -> &str {
        self.said.iter().find_map(|line| line.strip_prefix(prefix)).expect("it was waited for")
    }
}

#[test]
fn every_example_has_a_test_and_says_how_to_run_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let start = format!("Example::start(\"{name}\")");
        assert!(include_str!("examples.rs").contains(&start), "no test starts the example {name}");
        let main = if path.is_dir() { path.join("main.rs") } else { path };
        let how = format!("//! cargo run -p elasticjob --example {name}");
        let text = std::fs::read_to_string(&main).unwrap();
        assert!(text.contains(&how), "{} does not say how to run it: {how}", main.display());
    }
}

#[tokio::test]
async fn four_systems_example_runs_one_shard_per_system() {
    let mut example = Example::start("four_systems").await;

    let shards = ["0 of 4: RDP", "1 of 4: CORE", "2 of 4: SIMS", "3 of 4: ECIF"];
    example
        .says(&shards.map(|shard| format!("shard {shard}")).each_ref().map(String::as_str))
        .await;

    example.ends_when_asked().await;
}

#[tokio::test]
async fn annotated_example_finds_and_runs_its_functions() {
    let mut example = Example::start("annotated").await;

    example.says(&["RDP", "CORE", "SIMS", "ECIF"]).await;
    example.says(&["Z  1", "Z  2", "Z  3"]).await;

    example.ends_when_asked().await;
}

#[tokio::test]
async fn simple_example_keeps_its_count_across_runs() {
    let mut example = Example::start("simple").await;

    example.says(&["Beijing settled", "Shanghai settled", "Guangzhou settled"]).await;
    example.says(&["settled, 1 in all", "settled, 4 in all"]).await;

    example.ends_when_asked().await;
}

#[tokio::test]
async fn dataflow_example_processes_all_batches_in_one_fire() {
    let mut example = Example::start("dataflow").await;

    example.says(&["10 orders settled", "5 orders settled", ", 0 are open"]).await;

    assert_eq!(example.said.len(), 6, "two shards, three batches each: {:#?}", example.said);
    let due = |line: &String| line.split_once("  ").map(|(due, _)| due.to_owned());
    let fires: BTreeSet<_> = example.said.iter().map(due).collect();
    assert_eq!(fires.len(), 1, "all in one fire: {:#?}", example.said);
    example.ends_when_asked().await;
}

#[tokio::test]
async fn script_example_gets_its_context_and_logs_its_output() {
    let mut example = Example::start("script").await;

    example.says(&["settling Beijing", "settling Shanghai", "shardingParameter"]).await;

    example.ends_when_asked().await;
}

#[tokio::test]
async fn http_example_calls_the_service_for_each_shard() {
    let mut example = Example::start("http").await;

    example.says(&["\"shardingItem\":0", "\"shardingItem\":1"]).await;

    assert!(example.said.iter().all(|line| line.starts_with("asked to settle")));
    example.ends_when_asked().await;
}

#[tokio::test]
async fn embedded_example_serves_and_drains_service_and_jobs() {
    let mut example = Example::start("embedded").await;
    example.says(&["listening on", "shard 0 settled", "shard 1 settled"]).await;

    let address = example.said_after("listening on http://").to_owned();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    socket.write_all(b"GET /settled HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();

    assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.contains("orders settled"), "{answer}");
    example.is_asked_to_end();
    example.says(&["the service is drained", "the jobs are drained"]).await;
    example.ends().await;
}

#[tokio::test]
async fn one_off_example_runs_when_triggered_and_exits() {
    let mut example = Example::start("one_off").await;

    let years = ["2024", "2025", "2026"].map(|year| format!("the orders of {year} are archived"));
    example.says(&years.each_ref().map(String::as_str)).await;
    example.says(&["done"]).await;

    example.ends().await;
    assert_eq!(example.said.len(), 4, "each once: {:#?}", example.said);
}

#[tokio::test]
async fn splitting_example_scans_as_many_rows_as_documented() {
    let mut example = Example::start("splitting").await;

    example.ends().await;

    let looked_at = |way: &str| -> u32 {
        let told = example.said.iter().filter_map(|line| line.strip_prefix(&format!("{way}: ")));
        let mut counts = told.filter_map(|told| told.split_once(" rows looked at"));
        counts.next().and_then(|(count, _)| count.parse().ok()).expect("it is told for every way")
    };
    // What docs/splitting-data.md says.
    assert_eq!((looked_at("modulo"), looked_at("modulo-of-few")), (40_000, 4_004));
    assert_eq!((looked_at("buckets"), looked_at("by-parameter")), (1_001, 1_001));
}
