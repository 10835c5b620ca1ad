//! A worker with jobs that fire every second or two, and the metrics it tells.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use elasticjob::history::HistoryUrl;
use rustix::process::{Pid, Signal, kill_process};
use testbed::free_port;

use crate::{BoxError, registry::sibling_program, stopwatch::Stopwatch};

/// How long a worker may take to become ready, and to stop.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Every second and every other second, with and without failover, one that fails, and one that prints much.
const JOBS: &str = "\
elasticjob:
  jobs:
    every-second: {cron: '0/1 * * * * ?', shardingTotalCount: 3, failover: true, props: {script.command.line: 'true'}}
    every-other-second: {cron: '0/2 * * * * ?', shardingTotalCount: 6, props: {script.command.line: 'sleep 0.2'}}
    failing: {cron: '1/2 * * * * ?', shardingTotalCount: 1, props: {script.command.line: 'exit 3', elasticjob.retry.max.attempts: '2', elasticjob.retry.backoff: 100ms..100ms}}
    printing: {cron: '0/2 * * * * ?', shardingTotalCount: 2, props: {script.command.line: 'seq 200'}}
    triggered: {shardingTotalCount: 3, props: {script.command.line: 'true'}}
";

/// Dropping it kills the process.
pub(super) struct WorkerProcess {
    child: Child,
    health: String,
}

impl WorkerProcess {
    /// Starts worker `number` and waits until it is ready.
    pub(super) fn start(
        number: usize,
        url: &str,
        history: &HistoryUrl,
        folder: &Path,
    ) -> Result<Self, BoxError> {
        let program = sibling_program("elasticjob", "elasticjob-cli")?;
        let file = folder.join("jobs.yml");
        fs::write(&file, JOBS)?;
        let health = format!("127.0.0.1:{}", free_port());
        let history = history.to_string();
        let log = folder.join(format!("worker-{number}.log"));
        let child = Command::new(program)
            .args([
                "run",
                "--registry",
                url,
                "--history",
                &history,
                "--health-listen",
                &health,
                "-f",
            ])
            .arg(&file)
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut worker = Self { child, health };
        let stopwatch = Stopwatch::start();
        while !get(&worker.health, "/readyz")
            .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
        {
            if stopwatch.elapsed() > TIMEOUT || worker.child.try_wait()?.is_some() {
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("worker {number} is not ready: {log}").into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(worker)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn health_address(&self) -> &str {
        &self.health
    }

    /// Number of fires so far.
    pub(super) fn fires(&self) -> Result<u64, BoxError> {
        Ok(metric(&self.health, "elasticjob_fires_total")? as u64)
    }

    /// Stops the worker as an operator does, and waits for its exit.
    pub(super) fn stop(mut self) -> Result<(), BoxError> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).ok_or("the worker has no pid")?;
        kill_process(pid, Signal::TERM)?;
        let stopwatch = Stopwatch::start();
        while self.child.try_wait()?.is_none() {
            if stopwatch.elapsed() > TIMEOUT {
                return Err("the worker does not stop".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of a metric over all of its labels.
pub(super) fn metric(address: &str, name: &str) -> Result<f64, BoxError> {
    let answer = get(address, "/metrics")?;
    sum(&answer, name).ok_or_else(|| format!("{address} has no metric {name}").into())
}

fn sum(exposition: &str, name: &str) -> Option<f64> {
    let values = exposition.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        if !rest.starts_with([' ', '{']) {
            return None;
        }
        rest.rsplit_once(' ')?.1.parse::<f64>().ok()
    });
    values.reduce(|one, other| one + other)
}

fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_is_summed_over_its_labels() {
        let text = "# HELP a x\na{job=\"b c\"} 3\na{job=\"d\"} 4\nab 9\ntasks 7\n";

        assert_eq!(
            (sum(text, "a"), sum(text, "tasks"), sum(text, "b")),
            (Some(7.0), Some(7.0), None)
        );
    }
}
