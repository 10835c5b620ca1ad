//! Java ElasticJob's dump service: the client sends one command line, receives a job's nodes as text, and the connection is closed.
//!
//! The command is `dump@JOB` as in 3.x, or `dump` as in 2.1.5, where a process has one job. Commands that Java does not answer get an error line here.

use std::{sync::Arc, time::Duration};

use elasticjob::{admin::Admin, job::JobName, runtime::Tasks};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::shared_node::SharedNode;
use crate::error::Error;
use elasticjob::problem::Problem;

/// Longer than any job name that a registry accepts.
const MAX_LINE: usize = 1_024;
/// Further clients wait.
const MAX_CLIENTS: usize = 8;
/// How long a client may take to send its command, and then to read the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves clients until `tasks` end.
pub(super) fn serve(
    listener: TcpListener,
    admin: Admin,
    shared_node: SharedNode,
    tasks: &mut Tasks,
) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "dump service listening");
    }
    tasks.spawn(async move {
        let (mut clients, permits) = (Tasks::new(), Arc::new(Semaphore::new(MAX_CLIENTS)));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of a resource, usually file descriptors: wait for some to be freed.
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            let (admin, shared_node) = (admin.clone(), shared_node.clone());
            clients.spawn(async move {
                serve_client(stream, &admin, &shared_node).await;
                drop(permit);
            });
        }
    });
}

async fn serve_client(mut stream: TcpStream, admin: &Admin, shared_node: &SharedNode) {
    let answer = match timeout(CLIENT_TIMEOUT, read_line(&mut stream)).await {
        Ok(Some(line)) => answer(&line, admin, shared_node).await,
        Ok(None) => format!("error: a command is one line of at most {MAX_LINE} bytes\n"),
        Err(_) => format!("error: {}\n", Problem::new("no command received").with_hint("dump@JOB")),
    };
    // A client that stops reading needs no answer.
    let _ = timeout(CLIENT_TIMEOUT, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

/// Reads up to the end of the line or of the stream; `None` if that is too long or not UTF-8.
async fn read_line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    let mut piece = [0; 256];
    while line.len() <= MAX_LINE {
        let read = stream.read(&mut piece).await.ok()?;
        let end = piece[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&piece[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            return String::from_utf8(line).ok();
        }
    }
    None
}

async fn answer(line: &str, admin: &Admin, shared_node: &SharedNode) -> String {
    let error_line = |problem: String| format!("error: {problem}\n");
    let job = match parse_command(line.trim(), &shared_node.jobs()) {
        Ok(job) => job,
        Err(problem) => return error_line(problem),
    };
    match admin.dump(&job).await {
        Ok(text) => text,
        Err(error) => error_line(Error::from(error).line()),
    }
}

/// Parses a command; returns the job to dump.
fn parse_command(line: &str, jobs: &[JobName]) -> Result<JobName, String> {
    const USAGE: &str = "hint: dump@JOB";
    let (command, job) = match line.split_once('@') {
        Some((command, job)) => (command, Some(job)),
        None => (line, None),
    };
    if !command.eq_ignore_ascii_case("dump") {
        return Err(format!(
            "{:?} is not a command; {USAGE}",
            line.chars().take(40).collect::<String>()
        ));
    }
    match (job, jobs) {
        (Some(job), _) => job.parse().map_err(|error| format!("{error}; {USAGE}")),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(format!("no job runs here; {USAGE}")),
        (None, several) => {
            Err(format!("{} jobs run here, and the command names none; {USAGE}", several.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_a_job_or_means_the_only_one() {
        let jobs: Vec<JobName> = ["settle", "ping"].map(|name| name.parse().unwrap()).into();

        assert_eq!(parse_command("dump@other", &jobs).unwrap().as_str(), "other");
        assert_eq!(parse_command("DUMP", &jobs[..1]).unwrap().as_str(), "settle");
        for (line, expected) in [
            ("dump", "2 jobs run here, and the command names none; hint: dump@JOB"),
            ("ruok", "\"ruok\" is not a command; hint: dump@JOB"),
            ("", "\"\" is not a command; hint: dump@JOB"),
        ] {
            assert_eq!(parse_command(line, &jobs).unwrap_err(), expected);
        }
        assert!(parse_command("dump@a/b", &jobs).is_err());
    }
}
