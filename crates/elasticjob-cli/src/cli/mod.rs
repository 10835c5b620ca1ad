//! The command line: one file for each command, and here the options that all of them share.

mod completions;
mod connection;
#[cfg(feature = "console")]
mod console;
mod cron;
mod default_history;
mod dev;
mod doctor;
#[cfg(test)]
mod golden;
mod history;
mod history_args;
mod job;
mod man;
mod run;
mod secret_file;
mod server;
mod shard;
mod trigger;

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use elasticjob::{execution::Supervisor, job::ShardLimit};

use crate::{error::Error, logs::LogFormat, output::Format};

/// Registry URL if neither a flag, the environment nor a file sets one.
const DEFAULT_REGISTRY: &str = "zookeeper://127.0.0.1:2181/elasticjob";

const REGISTRY_HELP: &str = "Registry URL [default: zookeeper://127.0.0.1:2181/elasticjob]";

/// A distributed job scheduler, compatible with Apache ElasticJob
#[derive(Debug, Parser)]
#[command(name = "elasticjob", version, after_help = EXIT_CODES)]
struct Options {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Data is printed on standard output, everything else on standard error.\n\
    Exit codes: 0 ok, 1 internal, 2 bad input, 3 unreachable, 4 not authorised, 5 not found, 6 conflict, 7 refused,\n\
    10 changes or problems found (apply --dry-run, doctor), 20 the run failed (trigger --wait)";

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    // The URL may hold a password, so the help does not show the value of the variable.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ELASTICJOB_REGISTRY",
        hide_env_values = true, help = REGISTRY_HELP
    )]
    registry: Option<String>,
    /// How many shards a job may have, at most 100000: one with more is invalid, and is neither stored nor run
    #[arg(long, global = true, value_name = "N", env = "ELASTICJOB_MAX_SHARDS", default_value_t)]
    max_shards: ShardLimit,
    /// File with the registry URL, which may hold a password
    #[arg(long, global = true, value_name = "FILE", env = "ELASTICJOB_REGISTRY_FILE")]
    registry_file: Option<OsString>,
    /// Output format of data
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Format of logs
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Do not color logs; the same as setting `NO_COLOR`
    #[arg(long, global = true)]
    no_color: bool,
}

impl Global {
    /// Reads the registry URL from its file or credential, if it is there.
    fn load_registry(&mut self) -> Result<(), Error> {
        let file = self.registry_file.take();
        self.registry = secret_file::url("registry", self.registry.as_deref(), file.as_deref())?;
        Ok(())
    }

    /// The registry URL of flag or environment, else of a file, else the default.
    fn registry(&self, file_url: Option<&str>) -> String {
        self.explicit_registry().or(file_url).unwrap_or(DEFAULT_REGISTRY).to_owned()
    }

    /// The registry URL of flag or environment.
    fn explicit_registry(&self) -> Option<&str> {
        self.registry.as_deref().filter(|url| !url.is_empty())
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a worker: the script and HTTP jobs of files and of the registry
    Run(run::Run),
    /// Starts a local registry for development, with `--demo` also workers to watch
    Dev(dev::Dev),
    /// Runs one worker of `dev --demo`
    #[command(hide = true)]
    DemoWorker(dev::DemoWorker),
    /// Serves the console: an HTTP API and web pages to view and manage registries
    #[cfg(feature = "console")]
    Console(console::Console),
    /// Shows and manages jobs
    #[command(subcommand)]
    Job(job::Job),
    /// Shows and manages the shards of a job
    #[command(subcommand)]
    Shard(shard::Shard),
    /// Shows and withdraws stored triggers of a job
    #[command(subcommand)]
    Trigger(trigger::Trigger),
    /// Shows and manages the servers that run jobs
    #[command(subcommand)]
    Server(server::Server),
    /// Shows past runs, their outcome and their output
    #[command(subcommand)]
    History(history::History),
    /// Checks a registry for problems and suggests fixes
    Doctor(doctor::Doctor),
    /// Evaluates cron expressions as Quartz does
    #[command(subcommand)]
    Cron(cron::Cron),
    /// Prints shell completions
    Completions(completions::Completions),
    /// Prints the manual page of a command
    Man(man::Man),
}

impl Command {
    /// Whether the command uses the registry of `--registry`. The console has a flag of that name for itself.
    fn uses_registry(&self) -> bool {
        match self {
            Self::Cron(_) | Self::Completions(_) | Self::Man(_) => false,
            #[cfg(feature = "console")]
            Self::Console(_) => false,
            _ => true,
        }
    }
}

/// Parses the command line and runs the command. An invalid command line is reported by clap, which then exits.
pub(crate) fn run(supervisor: Supervisor) -> Result<(), Error> {
    let Options { mut global, command } = Options::parse();
    if command.uses_registry() {
        global.load_registry()?;
    }
    match command {
        Command::Run(run) => run.run(&global, supervisor),
        Command::Dev(dev) => dev.run(&global, supervisor),
        Command::DemoWorker(worker) => worker.run(&global, supervisor),
        #[cfg(feature = "console")]
        Command::Console(console) => console.run(&global),
        Command::Job(job) => job.run(&global),
        Command::Shard(shard) => shard.run(&global),
        Command::Trigger(trigger) => trigger.run(&global),
        Command::Server(server) => server.run(&global),
        Command::History(history) => history.run(&global),
        Command::Doctor(doctor) => doctor.run(&global),
        Command::Cron(cron) => cron.run(&global),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_valid_and_help_names_the_default_registry() {
        Options::command().debug_assert();

        let help = Options::command().render_long_help().to_string();

        assert!(help.contains(DEFAULT_REGISTRY), "{help}");
    }
}
