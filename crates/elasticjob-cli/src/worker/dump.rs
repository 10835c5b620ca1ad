//! The ancestor's dump service: a line with a command, a job's nodes as text, and the connection ends.
//!
//! `dump@JOB` as in 3.x, or `dump` as in 2.1.5, where a process has one job. What the ancestor leaves without an answer gets a line here.

use std::{sync::Arc, time::Duration};

use elasticjob::{admin::Admin, job::JobName, runtime::Tasks};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::Shown;
use crate::error::Error;

/// How long a line may be: longer than any job's name that a registry takes.
const LONGEST: usize = 1_024;
/// How many may ask at once; the others wait their turn.
const AT_ONCE: usize = 8;
/// How long somebody may take to ask, and then to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long after an accept that failed the next one is tried.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until `tasks` end.
pub(super) fn serve(listener: TcpListener, admin: Admin, shown: Shown, tasks: &mut Tasks) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "dumps are told");
    }
    tasks.spawn(async move {
        let (mut visitors, seats) = (Tasks::new(), Arc::new(Semaphore::new(AT_ONCE)));
        while let Ok(seat) = Arc::clone(&seats).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of something, usually of file descriptors: there is no hurry.
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (admin, shown) = (admin.clone(), Arc::clone(&shown));
            visitors.spawn(async move {
                attend(stream, &admin, &shown).await;
                drop(seat);
            });
        }
    });
}

async fn attend(mut stream: TcpStream, admin: &Admin, shown: &Shown) {
    let answer = match timeout(PATIENCE, line(&mut stream)).await {
        Ok(Some(line)) => answer(&line, admin, shown).await,
        Ok(None) => format!("error: a command is one line of at most {LONGEST} bytes\n"),
        Err(_) => "error: nobody asked anything; hint: dump@JOB\n".to_owned(),
    };
    // Whoever does not listen to the end does not want to know.
    let _ = timeout(PATIENCE, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

/// What is asked, up to the end of the line or of what is sent; nothing if that is too long, or no text.
async fn line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    let mut piece = [0; 256];
    while line.len() <= LONGEST {
        let read = stream.read(&mut piece).await.ok()?;
        let end = piece[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&piece[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            return String::from_utf8(line).ok();
        }
    }
    None
}

async fn answer(line: &str, admin: &Admin, shown: &Shown) -> String {
    let told = |problem: String| format!("error: {problem}\n");
    let job = match asked(line.trim(), &super::jobs(shown)) {
        Ok(job) => job,
        Err(problem) => return told(problem),
    };
    match admin.dump(&job).await {
        Ok(text) => text,
        Err(error) => told(Error::from(error).line()),
    }
}

/// Which job is meant.
fn asked(line: &str, jobs: &[JobName]) -> Result<JobName, String> {
    const USAGE: &str = "hint: dump@JOB";
    let (command, job) = match line.split_once('@') {
        Some((command, job)) => (command, Some(job)),
        None => (line, None),
    };
    if !command.eq_ignore_ascii_case("dump") {
        return Err(format!(
            "{:?} is no command; {USAGE}",
            line.chars().take(40).collect::<String>()
        ));
    }
    match (job, jobs) {
        (Some(job), _) => job.parse().map_err(|error| format!("{error}; {USAGE}")),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(format!("no job runs here; {USAGE}")),
        (None, several) => Err(format!(
            "{} jobs run here, and nothing says which one is meant; {USAGE}",
            several.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_or_it_is_the_only_one() {
        let jobs: Vec<JobName> = ["settle", "ping"].map(|name| name.parse().unwrap()).into();

        assert_eq!(asked("dump@other", &jobs).unwrap().as_str(), "other");
        assert_eq!(asked("DUMP", &jobs[..1]).unwrap().as_str(), "settle");
        for (line, told) in [
            ("dump", "2 jobs run here, and nothing says which one is meant; hint: dump@JOB"),
            ("ruok", "\"ruok\" is no command; hint: dump@JOB"),
            ("", "\"\" is no command; hint: dump@JOB"),
        ] {
            assert_eq!(asked(line, &jobs).unwrap_err(), told);
        }
        assert!(asked("dump@a/b", &jobs).is_err());
    }
}
