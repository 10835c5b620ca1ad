//! The binary `elasticjob` as users run it: its size, the time until `run` is ready, and its memory when nothing is due.
//!
//! The registry is tinykeeper, in memory, on the same machine. Each start is a new worker in a new namespace, so that it stores its job, is elected
//! leader and assigns the shards. The median of the starts counts.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use testbed::free_port;

use crate::{
    BoxError, print_line,
    process::{resident, threads},
    registry::{Durability, Tinykeeper, sibling_program},
    statistics::median,
    stopwatch::Stopwatch,
};

const STARTS: usize = 15;
/// In milliseconds.
const MAX_READY: f64 = 100.0;
/// In megabytes.
const MAX_SIZE: f64 = 40.0;
/// Resident memory, in megabytes.
const MAX_IDLE: f64 = 25.0;
/// How long the worker waits before it counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(3);
/// How long one start may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A job that is not due during the benchmark.
const JOBS: &str = "elasticjob: {jobs: {hello: {cron: '0 0 0 1 1 ? 2199', shardingTotalCount: 3, props: {script.command.line: echo}}}}";

/// Runs the benchmark. Returns whether every target was met.
pub(crate) fn run() -> Result<bool, BoxError> {
    let program = sibling_program("elasticjob", "elasticjob-cli")?;
    #[expect(clippy::cast_precision_loss, reason = "a file is far smaller than 2^52")]
    let size = fs::metadata(&program)?.len() as f64 / 1e6;
    let registry = Tinykeeper::start(Durability::InMemory)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("jobs.yml");
    fs::write(&file, JOBS)?;
    let mut starts = Vec::new();
    for number in 0..STARTS {
        let url = format!("zookeeper://{}/start-{number}", registry.address());
        starts.push(Worker::start(&program, &file, &url)?.1);
    }
    let url = format!("zookeeper://{}/idle", registry.address());
    let (worker, _) = Worker::start(&program, &file, &url)?;
    thread::sleep(IDLE_AFTER);
    let (idle, threads) = (resident(worker.0.id())?, threads(worker.0.id())?);

    let ready = median(starts.iter().copied());
    let slowest = starts.iter().copied().fold(0.0, f64::max);
    print_line("elasticjob run with one job of three shards, on tinykeeper in memory\n");
    print_line(&format!("{:<34}{size:>10.1} MB", "size of the binary"));
    print_line(&format!(
        "{:<34}{ready:>10.1} ms   slowest of {STARTS}: {slowest:.1} ms",
        "from start to ready"
    ));
    print_line(&format!("{:<34}{idle:>10.1} MB   {threads} threads", "resident when idle"));
    let targets = [
        (size < MAX_SIZE, format!("{size:.1} MB, less than {MAX_SIZE} expected")),
        (ready < MAX_READY, format!("ready in {ready:.1} ms, less than {MAX_READY} expected")),
        (idle < MAX_IDLE, format!("{idle:.1} MB resident, less than {MAX_IDLE} expected")),
    ];
    let missed: Vec<&String> =
        targets.iter().filter(|target| !target.0).map(|target| &target.1).collect();
    for missed in &missed {
        print_line(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// A worker process. Dropping it kills it.
struct Worker(Child);

impl Worker {
    /// Starts a worker. Returns the time until it was ready, in milliseconds.
    fn start(program: &Path, file: &Path, url: &str) -> Result<(Self, f64), BoxError> {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(program);
        command.args(["run", "--registry", url, "--health-listen", &address, "-f"]).arg(file);
        let stopwatch = Stopwatch::start();
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let worker = Self(child);
        while !is_ready(&address) {
            if stopwatch.elapsed() > TIMEOUT {
                return Err("the worker was never ready".into());
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok((worker, stopwatch.elapsed().as_secs_f64() * 1e3))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_ready(address: &str) -> bool {
    let request = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200 "))
    };
    request().unwrap_or(false)
}
