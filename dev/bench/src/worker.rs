//! The binary `elasticjob` as people run it: how large it is, how long `run` takes from its start until it is ready, and what it takes to keep when
//! nothing is due.
//!
//! The registry is tinykeeper, in memory, on the same machine. Each start is a new worker in a new namespace, so it stores its job, is elected and deals.
//! The median of the starts counts.

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
    BoxError,
    process::{resident, threads},
    registry::{Keeping, Tinykeeper, beside_us},
    say,
    statistics::median,
    stopwatch::Stopwatch,
};

const STARTS: usize = 15;
/// In milliseconds.
const READY_BAR: f64 = 100.0;
/// In megabytes.
const SIZE_BAR: f64 = 40.0;
/// Resident, in megabytes.
const IDLE_BAR: f64 = 25.0;
/// How long it has been left alone when it counts as idle.
const IDLE: Duration = Duration::from_secs(3);
/// How long one start may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// A job that is not due while this runs.
const JOBS: &str = "elasticjob: {jobs: {hello: {cron: '0 0 0 1 1 ? 2199', shardingTotalCount: 3, props: {script.command.line: echo}}}}";

/// Runs it; `true` when every bar was met.
pub(crate) fn run() -> Result<bool, BoxError> {
    let program = beside_us("elasticjob", "elasticjob-console")?;
    #[expect(clippy::cast_precision_loss, reason = "a file is far smaller than 2^52")]
    let size = fs::metadata(&program)?.len() as f64 / 1e6;
    let registry = Tinykeeper::start(Keeping::InMemory)?;
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
    thread::sleep(IDLE);
    let (idle, threads) = (resident(worker.0.id())?, threads(worker.0.id())?);

    let ready = median(starts.iter().copied());
    let slowest = starts.iter().copied().fold(0.0, f64::max);
    say("elasticjob run with one job of three shards, on tinykeeper in memory\n");
    say(&format!("{:<34}{size:>10.1} MB", "the binary"));
    say(&format!(
        "{:<34}{ready:>10.1} ms   the slowest of {STARTS} {slowest:.1} ms",
        "from start to ready"
    ));
    say(&format!("{:<34}{idle:>10.1} MB   {threads} threads", "resident when idle"));
    let bars = [
        (size < SIZE_BAR, format!("{size:.1} MB, less than {SIZE_BAR} expected")),
        (ready < READY_BAR, format!("ready in {ready:.1} ms, less than {READY_BAR} expected")),
        (idle < IDLE_BAR, format!("{idle:.1} MB resident, less than {IDLE_BAR} expected")),
    ];
    let missed: Vec<&String> = bars.iter().filter(|bar| !bar.0).map(|bar| &bar.1).collect();
    for missed in &missed {
        say(&format!("MISSED  {missed}"));
    }
    Ok(missed.is_empty())
}

/// A worker; dropping it kills it.
struct Worker(Child);

impl Worker {
    /// Starts one; how many milliseconds later it was ready.
    fn start(program: &Path, file: &Path, url: &str) -> Result<(Self, f64), BoxError> {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(program);
        command.args(["run", "--registry", url, "--health-listen", &address, "-f"]).arg(file);
        let stopwatch = Stopwatch::start();
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let worker = Self(child);
        while !is_ready(&address) {
            if stopwatch.elapsed() > PATIENCE {
                return Err("the worker was never ready".into());
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok((worker, stopwatch.elapsed().as_secs_f64() * 1e3))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended by itself at worst.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_ready(address: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200 "))
    };
    ask().unwrap_or(false)
}
