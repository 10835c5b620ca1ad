//! The words of the command line. One file for each noun; here are the words all of them share.

mod completions;
#[cfg(feature = "console")]
mod console;
mod cron;
mod dev;
mod doctor;
#[cfg(test)]
mod golden;
mod history;
mod job;
mod kept;
mod man;
mod run;
mod server;
mod shard;
mod site;
mod usual;

use clap::{Parser, Subcommand};
use elasticjob::execution::Supervisor;

use crate::{error::Error, logs::LogFormat, output::Format};

/// Where a registry is if nobody says anything.
const DEFAULT_REGISTRY: &str = "zookeeper://127.0.0.1:2181/elasticjob";

const REGISTRY: &str = "Where the instances meet [default: zookeeper://127.0.0.1:2181/elasticjob]";

/// Jobs that many machines share, without a centre.
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
    10 something was found (apply --dry-run, doctor), 20 the run that was waited for failed";

/// What every command understands.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    // The URL may hold a password, so the help does not show what the variable says.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ELASTICJOB_REGISTRY",
        hide_env_values = true, help = REGISTRY
    )]
    registry: Option<String>,
    /// In which form data is printed
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// In which form logs are written
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Logs without colours, as with `NO_COLOR`
    #[arg(long, global = true)]
    no_color: bool,
}

impl Global {
    /// Which registry is meant: what was said, else what a file says, else the usual one.
    fn registry(&self, filed: Option<&str>) -> String {
        self.said_registry().or(filed).unwrap_or(DEFAULT_REGISTRY).to_owned()
    }

    /// Which registry was said, if one was.
    fn said_registry(&self) -> Option<&str> {
        self.registry.as_deref().filter(|url| !url.is_empty())
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the jobs of files: scripts and HTTP requests
    Run(run::Run),
    /// Starts a registry on this machine, and with `--demo` workers to watch
    Dev(dev::Dev),
    /// One worker of the demonstration
    #[command(hide = true)]
    DemoWorker(dev::DemoWorker),
    /// Serves the console: an API and web pages to look at registries and steer what runs there
    #[cfg(feature = "console")]
    Console(console::Console),
    /// Shows and steers jobs
    #[command(subcommand)]
    Job(job::Job),
    /// Shows and steers the shards of a job
    #[command(subcommand)]
    Shard(shard::Shard),
    /// Shows and steers the machines that jobs run on
    #[command(subcommand)]
    Server(server::Server),
    /// Shows what ran, how it ended and what it printed
    #[command(subcommand)]
    History(history::History),
    /// Looks for what is wrong in a registry, and says what to do about it
    Doctor(doctor::Doctor),
    /// Reads cron expressions as Quartz does
    #[command(subcommand)]
    Cron(cron::Cron),
    /// Prints completions for a shell
    Completions(completions::Completions),
    /// Prints the manual page of a command
    Man(man::Man),
}

/// Does what the command line says. What is wrong with the command line itself is said, and ends the process, right here.
pub(crate) fn run(supervisor: Supervisor) -> Result<(), Error> {
    let Options { global, command } = Options::parse();
    match command {
        Command::Run(run) => run.run(&global, supervisor),
        Command::Dev(dev) => dev.run(&global, supervisor),
        Command::DemoWorker(worker) => worker.run(&global, supervisor),
        #[cfg(feature = "console")]
        Command::Console(console) => console.run(&global),
        Command::Job(job) => job.run(&global),
        Command::Shard(shard) => shard.run(&global),
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
    fn the_grammar_is_sound_and_the_help_names_the_default_registry() {
        Options::command().debug_assert();

        let help = Options::command().render_long_help().to_string();

        assert!(help.contains(DEFAULT_REGISTRY), "{help}");
    }
}
