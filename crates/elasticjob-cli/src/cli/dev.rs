//! `elasticjob dev`, and the workers of its demo.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use elasticjob::{
    execution::{Secrets, Supervisor},
    job::ShardLimit,
};

use super::{
    DEFAULT_REGISTRY, Global,
    history_args::HistoryArgs,
    run::{address, block_on},
};
use crate::{
    dev,
    error::Error,
    logs, output,
    worker::{Permissions, WatchedFiles, Worker, runnable},
};

#[derive(Debug, clap::Args)]
pub(super) struct Dev {
    /// Start three workers, as processes that you may kill, with jobs of every kind
    #[arg(long)]
    demo: bool,
    /// Data folder of registry and console [default: everything in memory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of the registry, or a port on 127.0.0.1; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2181", value_parser = address)]
    registry_listen: SocketAddr,
    #[cfg(feature = "console")]
    /// Loopback address of the console [default: 127.0.0.1:8899, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Job files that this process runs, as `run` does
    #[arg(short, long = "file", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    history_args: HistoryArgs,
}

impl Dev {
    pub(super) fn run(self, global: &Global, supervisor: Supervisor) -> Result<(), Error> {
        let worker = if self.files.is_empty() {
            None
        } else {
            Some(worker(&self.files, supervisor, &self.history_args, global.max_shards)?)
        };
        let history = self.history_args.history(None, None)?.map(|history| history.display_url);
        logs::start(global.log_format, global.no_color, "warn");
        let dev = dev::Dev {
            listen: self.registry_listen,
            data: self.data,
            demo: self.demo,
            #[cfg(feature = "console")]
            console: self.listen,
            worker,
            max_shards: global.max_shards,
            history: history.zip(self.history_args.url(None, None)?),
            retention: self.history_args.retention_env(),
        };
        block_on(dev.run())
    }
}

/// The worker of `-f`. It uses the registry of this process, whichever one the files name.
fn worker(
    files: &[PathBuf],
    supervisor: Supervisor,
    history_args: &HistoryArgs,
    max_shards: ShardLimit,
) -> Result<Worker, Error> {
    let note = |note: &str| output::print_message(&format!("note: {note}"));
    let (watched, jobs) = WatchedFiles::read(files, false)?;
    for text in &jobs.notes {
        note(text);
    }
    if jobs.registry.is_some() {
        note("the registry of the files is ignored: dev starts its own");
    }
    let history = history_args.history(None, None)?.map(|history| history.recorder);
    Ok(Worker {
        history,
        registry: String::new(),
        entries: runnable(jobs, files, false, note)?,
        files: Some(watched),
        prune: false,
        permissions: Permissions::default(),
        secrets: Secrets::default(),
        labels: Some("name=dev".to_owned()),
        supervisor,
        connect_timeout: Duration::from_secs(30),
        max_shards,
        health: None,
        dump: None,
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct DemoWorker {
    /// Name in the commentary
    #[arg(long, default_value = "worker")]
    name: String,
    /// URL of the job ping; without it this worker does not join that job
    #[arg(long)]
    endpoint: Option<String>,
    /// Die with the parent process
    #[arg(long)]
    child: bool,
    #[command(flatten)]
    history_args: HistoryArgs,
}

impl DemoWorker {
    pub(super) fn run(self, global: &Global, supervisor: Supervisor) -> Result<(), Error> {
        logs::start(global.log_format, global.no_color, "error");
        let registry = global.registry.clone().unwrap_or_else(|| DEFAULT_REGISTRY.to_owned());
        let worker = dev::DemoWorker {
            registry,
            name: self.name,
            endpoint: self.endpoint,
            is_child: self.child,
            supervisor,
            history: self.history_args.history(None, None)?.map(|history| history.recorder),
        };
        block_on(worker.run())
    }
}
