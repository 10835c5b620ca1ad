//! Runs every example as a separate program, with a registry in this process; checks its output, then terminates it.

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

const TIMEOUT: Duration = Duration::from_mins(1);

/// Path of each example's executable. The examples are built here, because not every way to run this test builds them; with the options of
/// `make test`, which has built them already.
static PROGRAMS: LazyLock<BTreeMap<String, PathBuf>> = LazyLock::new(|| {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    for (name, _) in std::env::vars_os() {
        // Cargo sets these variables for this test; build scripts that depend on them would run again.
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
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
    let stdout = String::from_utf8(built.stdout).expect("JSON");
    let messages = stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    messages
        .filter(|message: &serde_json::Value| message["target"]["kind"][0] == "example")
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, message["executable"].as_str()?.into()))
        })
        .collect()
});

/// A running example.
struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    output: Vec<String>,
    _registry: Server,
}

impl Example {
    async fn start(name: &str) -> Self {
        let registry = Server::start(Config::in_memory()).await.unwrap();
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
        Self { child, lines, output: Vec::new(), _registry: registry }
    }

    /// Waits until each of these texts has occurred in a line of the output, in any order; earlier lines count.
    async fn wait_for_output(&mut self, expected: &[&str]) {
        let all = async {
            loop {
                let missing = expected
                    .iter()
                    .find(|part| !self.output.iter().any(|line| line.contains(**part)));
                let Some(missing) = missing else { return };
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| {
                    panic!("exited without printing {missing:?}; output: {:#?}", self.output)
                });
                self.output.push(line);
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, all).await;
        assert!(waited.is_ok(), "waited {TIMEOUT:?} for {expected:?}; output: {:#?}", self.output);
    }

    /// Sends SIGTERM, as an operator does.
    fn terminate(&self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    async fn stop(mut self) {
        self.terminate();
        self.wait_for_exit().await;
    }

    /// Waits until the example exits; the exit code must be 0.
    async fn wait_for_exit(&mut self) {
        let waited: Result<ExitStatus, _> = tokio::time::timeout(TIMEOUT, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                self.output.push(line);
            }
            self.child.wait().await.unwrap()
        })
        .await;
        let code = waited.ok().and_then(|status| status.code());
        assert_eq!(code, Some(0), "output: {:#?}", self.output);
    }

    /// The rest of the line that begins with `prefix`.
    fn output_after(&self, prefix: &str) -> &str {
        self.output.iter().find_map(|line| line.strip_prefix(prefix)).expect("the line was printed")
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
        let command = format!("//! cargo run -p elasticjob --example {name}");
        let text = std::fs::read_to_string(&main).unwrap();
        assert!(
            text.contains(&command),
            "{} does not show how to run it: {command}",
            main.display()
        );
    }
}

#[tokio::test]
async fn four_systems_example_runs_one_shard_per_system() {
    let mut example = Example::start("four_systems").await;

    let shards = ["0 of 4: RDP", "1 of 4: CORE", "2 of 4: SIMS", "3 of 4: ECIF"];
    example
        .wait_for_output(
            &shards.map(|shard| format!("shard {shard}")).each_ref().map(String::as_str),
        )
        .await;

    example.stop().await;
}

#[tokio::test]
async fn annotated_example_finds_and_runs_its_functions() {
    let mut example = Example::start("annotated").await;

    example.wait_for_output(&["RDP", "CORE", "SIMS", "ECIF"]).await;
    example.wait_for_output(&["Z  1", "Z  2", "Z  3"]).await;

    example.stop().await;
}

#[tokio::test]
async fn simple_example_keeps_its_count_across_runs() {
    let mut example = Example::start("simple").await;

    example.wait_for_output(&["Beijing settled", "Shanghai settled", "Guangzhou settled"]).await;
    example.wait_for_output(&["settled, 1 in all", "settled, 4 in all"]).await;

    example.stop().await;
}

#[tokio::test]
async fn dataflow_example_processes_all_batches_in_one_fire() {
    let mut example = Example::start("dataflow").await;

    example.wait_for_output(&["10 orders settled", "5 orders settled", ", 0 are open"]).await;

    assert_eq!(example.output.len(), 6, "two shards, three batches each: {:#?}", example.output);
    let due = |line: &String| line.split_once("  ").map(|(due, _)| due.to_owned());
    let fires: BTreeSet<_> = example.output.iter().map(due).collect();
    assert_eq!(fires.len(), 1, "all in one fire: {:#?}", example.output);
    example.stop().await;
}

#[tokio::test]
async fn script_example_gets_its_context_and_logs_its_output() {
    let mut example = Example::start("script").await;

    example.wait_for_output(&["settling Beijing", "settling Shanghai", "shardingParameter"]).await;

    example.stop().await;
}

#[tokio::test]
async fn http_example_calls_the_service_for_each_shard() {
    let mut example = Example::start("http").await;

    example.wait_for_output(&["\"shardingItem\":0", "\"shardingItem\":1"]).await;

    assert!(example.output.iter().all(|line| line.starts_with("asked to settle")));
    example.stop().await;
}

#[tokio::test]
async fn embedded_example_serves_and_drains_service_and_jobs() {
    let mut example = Example::start("embedded").await;
    example.wait_for_output(&["listening on", "shard 0 settled", "shard 1 settled"]).await;

    let address = example.output_after("listening on http://").to_owned();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    socket.write_all(b"GET /settled HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();

    assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.contains("orders settled"), "{answer}");
    example.terminate();
    example.wait_for_output(&["the service is drained", "the jobs are drained"]).await;
    example.wait_for_exit().await;
}

#[tokio::test]
async fn one_off_example_runs_when_triggered_and_exits() {
    let mut example = Example::start("one_off").await;

    let years = ["2024", "2025", "2026"].map(|year| format!("the orders of {year} are archived"));
    example.wait_for_output(&years.each_ref().map(String::as_str)).await;
    example.wait_for_output(&["done"]).await;

    example.wait_for_exit().await;
    assert_eq!(example.output.len(), 4, "each year once: {:#?}", example.output);
}

#[tokio::test]
async fn splitting_example_scans_as_many_rows_as_documented() {
    let mut example = Example::start("splitting").await;

    example.wait_for_exit().await;

    let scanned_rows = |method: &str| -> u32 {
        let lines =
            example.output.iter().filter_map(|line| line.strip_prefix(&format!("{method}: ")));
        let mut counts = lines.filter_map(|line| line.split_once(" rows read"));
        counts.next().and_then(|(count, _)| count.parse().ok()).expect("a count for every method")
    };
    // The numbers of docs/splitting-data.md.
    assert_eq!((scanned_rows("modulo"), scanned_rows("modulo-of-few")), (40_000, 4_004));
    assert_eq!((scanned_rows("buckets"), scanned_rows("by-parameter")), (1_001, 1_001));
}
