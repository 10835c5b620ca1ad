//! `elasticjob dev`, and the workers of its demonstration.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use elasticjob::execution::Supervisor;

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
    /// Adds three workers, as processes of their own that may be killed, and jobs of every kind
    #[arg(long)]
    demo: bool,
    /// Where to keep what must survive a restart; without it everything is in memory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the registry listens: an address, or a port of this machine alone; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2181", value_parser = address)]
    registry_listen: SocketAddr,
    #[cfg(feature = "console")]
    /// Where the console listens, on this machine alone [default: 127.0.0.1:8899, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Jobs that this process runs, too, as `run` does
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
            Some(worker(&self.files, supervisor, &self.history_args)?)
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
            history: history.zip(self.history_args.url(None, None)),
            retention: self.history_args.retention_env(),
        };
        block_on(dev.run())
    }
}

/// The worker of `-f`. It meets the others at the registry of this process, whatever the files say.
fn worker(
    files: &[PathBuf],
    supervisor: Supervisor,
    history_args: &HistoryArgs,
) -> Result<Worker, Error> {
    let note = |note: &str| output::say(&format!("note: {note}"));
    let (watched, jobs) = WatchedFiles::read(files, false)?;
    for text in &jobs.notes {
        note(text);
    }
    if jobs.registry.is_some() {
        note("the registry in the files is left alone: dev brings its own");
    }
    let history = history_args.history(None, None)?.map(|history| history.recorder);
    Ok(Worker {
        history,
        registry: String::new(),
        entries: runnable(jobs, files, false, note)?,
        files: Some(watched),
        prune: false,
        permissions: Permissions::default(),
        labels: Some("name=dev".to_owned()),
        supervisor,
        connect_timeout: Duration::from_secs(30),
        health: None,
        dump: None,
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct DemoWorker {
    /// What it is called in the commentary
    #[arg(long, default_value = "worker")]
    name: String,
    /// What the HTTP job asks; without, this worker has none
    #[arg(long)]
    endpoint: Option<String>,
    /// Ends with the process that started it
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
