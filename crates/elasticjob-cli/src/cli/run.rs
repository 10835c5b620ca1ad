//! `elasticjob run`

use std::{
    env,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use elasticjob::{
    execution::Supervisor, job::Job, problem::Problem, registry::RegistryUrl, schedule::Cron,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Global, history_args::HistoryArgs};
use crate::{
    error::{Code, Error},
    logs,
    observe::Observer,
    output::{self, Format, Table},
    worker::{Permissions, SecretGrant, WatchedFiles, Worker, runnable, secrets},
};
use elasticjob_jobfile::{Entry, Jobs};

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Job files: Spring Boot's application.yml, or .json, .toml, .properties, .xml
    #[arg(
        short,
        long = "file",
        value_name = "FILE",
        num_args = 1..,
        required_unless_present_any = ["scripts_from", "http_allow", "observe"]
    )]
    files: Vec<PathBuf>,
    /// Check the files and print the jobs that would run, then exit
    #[arg(long)]
    check: bool,
    /// When a job is removed from the files, also remove it from the registry, unless other instances run it
    #[arg(long, requires = "files")]
    prune: bool,
    /// Join nothing and write nothing: log what happens to the jobs of the namespace, or of the files
    #[arg(
        long,
        conflicts_with_all = ["check", "prune", "skip_java", "labels", "scripts_from", "http_allow", "health_listen", "dump_listen"]
    )]
    observe: bool,
    /// Skip jobs that are Java classes and run the others
    #[arg(long)]
    skip_java: bool,
    /// Labels of this instance, for example weight=3,zone=a
    #[arg(long, value_name = "K=V,…")]
    labels: Option<String>,
    /// Folders with programs that jobs may run if their command line is set in the registry and not in the files
    #[arg(long, value_name = "DIR", num_args = 1..)]
    scripts_from: Vec<PathBuf>,
    /// Hosts that requests and alerts may go to if they are set in the registry and not in the files
    #[arg(long, value_name = "HOST", num_args = 1.., value_parser = parse_host)]
    http_allow: Vec<String>,
    /// Folder with the secrets that jobs refer to as secret:NAME, one file for each [default: the credentials of systemd]
    #[arg(long, value_name = "DIR", env = "ELASTICJOB_SECRETS_DIR")]
    secrets_dir: Option<PathBuf>,
    /// Secrets that jobs of the registry may use, each for one target: shop=https://shop.example
    #[arg(long, value_name = "NAME=ORIGIN", num_args = 1.., value_parser = SecretGrant::parse)]
    secrets_for: Vec<SecretGrant>,
    /// How long to retry at the start while the registry is unreachable
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    connect_timeout: Duration,
    /// Serve /healthz, /readyz and /metrics: an address, or a port on 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    health_listen: Option<SocketAddr>,
    /// Serve dump@JOB as Java ElasticJob's dump service does: an address, or a port on 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    dump_listen: Option<SocketAddr>,
    #[command(flatten)]
    history_args: HistoryArgs,
}

impl Run {
    pub(super) fn run(self, global: &Global, supervisor: Supervisor) -> Result<(), Error> {
        let (files, jobs) = if self.files.is_empty() {
            (None, Jobs::default())
        } else {
            let (files, jobs) = WatchedFiles::read(&self.files, self.skip_java)?;
            (Some(files), jobs)
        };
        let registry = global.registry(jobs.registry.as_ref().map(|(_, url)| url.as_str()));
        let url: RegistryUrl = registry.parse()?;
        let file_history = jobs.history.as_ref().map(|(_, url)| url.as_str());
        let history = self.history_args.history(file_history, Some(&registry))?;
        let permissions = Permissions::new(&self.scripts_from, &self.http_allow)?;
        let systemd = env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let (folder, grants) = (self.secrets_dir.as_deref(), self.secrets_for.clone());
        let secrets = secrets(folder, systemd, grants, &permissions)?;
        check_labels(self.labels.as_deref())?;
        if !self.check {
            logs::start(global.log_format, global.no_color, "info");
        }
        for note in &jobs.notes {
            self.note(note);
        }
        if self.observe {
            let (entries, connect_timeout) = (jobs.entries, self.connect_timeout);
            let max_shards = global.max_shards;
            return block_on(
                Observer { registry: url, entries, connect_timeout, max_shards }.run(),
            );
        }
        let entries = if files.is_some() {
            runnable(jobs, &self.files, self.skip_java, |note| self.note(note))?
        } else {
            Vec::new()
        };
        for Entry { job, location, .. } in &entries {
            if let Err(error) = job.check(global.max_shards) {
                let location = format!("{location}: job {}", job.name);
                return Err(Error::bad_input(Problem::of(&error).at(location)));
            }
        }
        if self.check {
            return print_check(global.output, &entries);
        }
        let history_url = history.as_ref().map_or("none", |history| &history.display_url);
        tracing::info!(registry = %url, history = history_url, jobs = entries.len(), "node starting");
        block_on(async {
            let health = match self.health_listen {
                Some(address) => Some(listen(address, "--health-listen").await?),
                None => None,
            };
            let dump = match self.dump_listen {
                Some(address) => Some(listen(address, "--dump-listen").await?),
                None => None,
            };
            let worker = Worker {
                registry,
                entries,
                files,
                prune: self.prune,
                permissions,
                secrets,
                labels: self.labels,
                supervisor,
                history: history.map(|history| history.recorder),
                connect_timeout: self.connect_timeout,
                max_shards: global.max_shards,
                health,
                dump,
            };
            worker.run().await
        })
    }

    /// Reports an ignored setting or job: printed with `--check`, else logged.
    fn note(&self, note: &str) {
        if self.check {
            output::print_message(&format!("note: {note}"));
        } else {
            tracing::warn!(note, "job files partly ignored");
        }
    }
}

/// A host with or without a port, not a URL: a right is for all requests to a host.
fn parse_host(text: &str) -> Result<String, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_name = |host: &str| {
        host.chars().all(|each| each.is_alphanumeric() || matches!(each, '-' | '_' | '.'))
    };
    let is_host = !host.is_empty() && (bare.parse::<IpAddr>().is_ok() || is_name(host));
    if is_host && port.is_none_or(|port| port.parse::<u16>().is_ok()) {
        return Ok(text.to_owned());
    }
    Err("a host, for example shop.example, shop.example:8080 or [::1]:8080; not a URL".to_owned())
}

/// Runs a future to completion on a multi-threaded runtime.
pub(super) fn block_on(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| {
        Error::new(Code::Internal, format!("cannot start the runtime: {error}"))
    })?;
    let ended = runtime.block_on(work);
    // After a second signal, blocking tasks are not waited for.
    runtime.shutdown_background();
    ended
}

/// Prints the jobs that would run.
fn print_check(format: Format, entries: &[Entry]) -> Result<(), Error> {
    let cron = |job: &Job| job.cron.as_ref().map(ToString::to_string);
    let mut table = Table::new(["JOB", "TYPE", "CRON", "SHARDS", "FROM"]);
    let mut values = Vec::new();
    for Entry { job, kind, location } in entries {
        for warning in job.cron.iter().flat_map(Cron::warnings) {
            output::print_message(&format!("note: {location}: job {}: cron: {warning}", job.name));
        }
        table.row([
            job.name.to_string(),
            kind.to_string(),
            cron(job).unwrap_or_else(|| "-".to_owned()),
            job.shards.to_string(),
            location.to_string(),
        ]);
        values.push(json!({
            "jobName": job.name.as_str(),
            "elasticJobType": kind.to_string(),
            "cron": cron(job),
            "shardingTotalCount": job.shards.get(),
            "file": &*location.file,
            "line": location.line,
        }));
    }
    output::print(format, &table, &Value::Array(values))
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::bad_input(format!("cannot listen on {address}: {error}"))
            .with_hint(format!("give {flag} another address, or port 0 for a free one"))
    })
}

fn check_labels(text: Option<&str>) -> Result<(), Error> {
    let Some(text) = text else { return Ok(()) };
    for pair in text.split(',') {
        if pair.split_once('=').is_none_or(|(key, _)| key.trim().is_empty()) {
            return Err(Error::bad_input(format!("label {pair:?} is not KEY=VALUE"))
                .with_hint("for example weight=3,zone=a"));
        }
    }
    Ok(())
}

/// A duration: a number and `ms`, `s`, `m` or `h`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration =
        text.parse::<jiff::SignedDuration>().ok().and_then(|duration| duration.try_into().ok());
    duration
        .filter(|duration: &Duration| !duration.is_zero())
        .ok_or_else(|| "a number and ms, s, m or h, for example 30s".to_owned())
}

/// An address and a port; a port alone means 127.0.0.1.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "an address and a port, for example 127.0.0.1:8900".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_http_allow_is_a_name_or_an_address() {
        for host in
            ["shop", "shop.example:8080", "10.0.0.1", "10.0.0.1:80", "::1", "[::1]", "[::1]:80"]
        {
            assert_eq!(parse_host(host).as_deref(), Ok(host));
        }
        for host in
            ["", ":80", "shop:", "shop:http", "shop:99999", "http://shop", "shop/x", "*", "a b"]
        {
            assert!(parse_host(host).is_err(), "{host}");
        }
    }
}
